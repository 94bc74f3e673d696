"""Goes to exchanges that are slow for their API and connection."""

from functools import partial
from typing import ClassVar

import numpy as np
from textual.binding import Binding, BindingType

from dissector.analysis.slow_exchanges import slow_rows
from dissector.core.arrays import Int64
from tui.features.row_search import Go, RowSearch
from tui.key_groups import GO


class SlowExchangesFeature(RowSearch):
    """s and S go to the next and the previous one."""

    FEATURE = GO

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "slow(1)", "Next slow", show=False, id="main.next_slow",
                tooltip="Next exchange that is slow for its API and connection"),
        Binding("S", "slow(-1)", "Previous slow", show=False, id="main.previous_slow",
                tooltip="Previous exchange that is slow for its API and connection"),
    ]  # fmt: skip

    _slow: tuple[int, Int64] | None = None
    """The slow rows, and the number of rows and findings that they were computed from."""

    def action_slow(self, step: int) -> None:
        """Slow rows are computed once, in a thread."""

        def find(rows: Int64) -> Go | None:
            findings = self.capture.findings.cross_message()
            count = len(self.capture) + len(findings)
            if self._slow is None or self._slow[0] != count:
                slow_codes = [row for row, finding in findings if finding.code == "slow"]
                self._slow = count, np.union1d(slow_rows(self.capture), np.array(slow_codes, np.int64))
            found = np.flatnonzero(np.isin(rows, self._slow[1]))
            return partial(self.go_to, int(rows[found[0]])) if len(found) else None

        self.search_rows(step, find, "slow exchanges")
