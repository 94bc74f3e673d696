"""Searches a row in a thread: along the list, in steps, with progress; Escape stops it."""

import sys
import time
from collections.abc import Callable
from copy import copy
from typing import Final

import numpy as np
from textual.worker import get_current_worker

from dissector.core.arrays import Int64
from tui.feature import ScreenFeature, work
from tui.screens.core_screen import CoreScreen
from tui.threads import SWITCH_SECONDS, Pace, call_on_ui, gc_paused

Go = Callable[[], object]
"""Goes to what was found."""
Find = Callable[[Int64], Go | None]
"""Searches the first match among rows, from 0, in the given order; None if there is none."""
_FIRST, _MOST = 16, 1 << 14
"""Rows of a step."""
_SHORT, _LONG = 0.02, 0.05
"""Seconds of a step: short enough to stop at once, long enough to be worth it."""
_SECONDS_BETWEEN: Final = 0.2
_WRAPPED: Final = ("continued from the end of the list", "continued from the start of the list")


class RowSearchFeature(ScreenFeature[CoreScreen]):
    """Runs one search at a time; a new one replaces it."""

    _searched = ""
    """What is searched, in words; empty if nothing is."""

    def stop(self) -> bool:
        """Stop the search that runs."""
        words = self._searched
        if not words:
            return False
        self.stop_work("seek")
        self._end_search()
        self.notify(f"stopped searching for {words}", timeout=2)
        return True

    def search(
        self,
        step: int,
        find: Find,
        words: str,
        *,
        around: bool = False,
        here: Callable[[], Go | None] | None = None,
    ) -> None:
        """Go to the next row along the list (`step` 1, or -1 for the previous one) that `find` finds, in a thread; with
        `around`, continue from the other end. `words` say what is searched. What `here` finds in the row that is shown
        comes first."""
        self._searched = words
        self.screen.draw_inspector(f"searching for {words}, esc stops")
        self._search(step, find, words, around=around, here=here)

    @work(group="seek", thread=True, exclusive=True)
    def _search(self, step: int, find: Find, words: str, *, around: bool, here: Callable[[], Go | None] | None) -> None:
        sys.setswitchinterval(SWITCH_SECONDS)
        worker = get_current_worker()
        with gc_paused():
            go = here() if here is not None else None
        if worker.is_cancelled:
            return
        if go is not None:
            call_on_ui(self.screen, self._found_row, go, "")
            return
        view = copy(self.screen.view)  # as it is now, whatever happens to the list
        ahead, behind = _ways(len(view), min(self.screen.exchange_list.cursor, len(view) - 1), step)
        total = len(ahead) + (len(behind) if around else 0)
        done, pace = 0, Pace(_SECONDS_BETWEEN, at_once=False)
        for turn, positions in enumerate((ahead, behind) if around else (ahead,)):
            count, at = _FIRST, 0
            while at < len(positions):
                begun = time.monotonic()
                rows = np.array([view.number(position) for position in positions[at : at + count]], np.int64)
                with gc_paused():
                    go = find(rows)
                if worker.is_cancelled:
                    return
                if go is not None:
                    call_on_ui(self.screen, self._found_row, go, "" if not turn else _WRAPPED[step > 0])
                    return
                at, done = at + count, done + count
                spent = time.monotonic() - begun
                count = min(_MOST, count * 2) if spent < _SHORT else max(1, count // 2) if spent > _LONG else count
                if pace.is_due():
                    call_on_ui(self.screen, self._show_progress, f"{words} {100 * done // total} %")
        call_on_ui(self.screen, self._found_nothing, step, words, around=around)

    def _show_progress(self, words: str) -> None:
        self.screen.draw_inspector(f"searching for {words}, esc stops")

    def _found_row(self, go: Go, wrapped: str) -> None:
        self._end_search()
        go()
        if wrapped:
            self.notify(wrapped, timeout=2)

    def _found_nothing(self, step: int, words: str, *, around: bool) -> None:
        self._end_search()
        self.notify(f"no {'' if around else 'more ' if step > 0 else 'earlier '}{words}", timeout=2)

    def _end_search(self) -> None:
        self._searched = ""
        self.screen.draw_inspector()


def _ways(count: int, start: int, step: int) -> tuple[range, range]:
    """Return the positions of a list to search from `start` to its end, and those from its other end to `start`."""
    if not count:  # a filter hides all rows
        return range(0), range(0)
    if step > 0:
        return range(start + 1, count), range(start + 1)
    return range(start - 1, -1, -1), range(count - 1, start - 1, -1)
