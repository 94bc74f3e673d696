"""To exchanges that took longer than their like."""

from functools import partial
from typing import ClassVar

import numpy as np
from textual.binding import Binding, BindingType

from dissector.analysis.slow_exchanges import slow_rows
from dissector.core.arrays import Int64
from tui.features.row_search import Go, RowSearch


class SlowExchangesFeature(RowSearch):
    """s and S."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "slow(1)", "Slow", show=False, id="main.next_slow",
                tooltip="The next exchange slower than 99 in 100 of its API and connection"),
        Binding("S", "slow(-1)", "Previous slow", show=False, id="main.previous_slow",
                tooltip="The exchange before slower than 99 in 100 of its API and connection"),
    ]  # fmt: skip

    _slow: tuple[int, Int64] | None = None
    """Those of the rows, and of the findings, that there were so many of."""

    def action_slow(self, step: int) -> None:
        """What is slow is worked out once, beside the screen."""

        def find(rows: Int64) -> Go | None:
            troubles = self.capture.findings.cross_message()
            count = len(self.capture) + len(troubles)
            if self._slow is None or self._slow[0] != count:
                told = [row for row, finding in troubles if finding.code == "slow"]
                self._slow = count, np.union1d(slow_rows(self.capture), np.array(told, np.int64))
            found = np.flatnonzero(np.isin(rows, self._slow[1]))
            return partial(self.go_to, int(rows[found[0]])) if len(found) else None

        self.seek(step, find, "exchange slower than its like")
