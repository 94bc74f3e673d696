"""Looking for a row beside the screen: along the list as it is, in steps, with how far it is; esc stops it."""

import sys
import time
from collections.abc import Callable
from copy import copy
from typing import Final

import numpy as np
from textual import work
from textual.worker import Worker, get_current_worker

from dissector.core.arrays import Int64
from tui.garbage_collection import gc_paused
from tui.loader import SWITCH_SECONDS
from tui.screens.core_screen import CoreScreen
from tui.ui_thread import call_on_ui

Go = Callable[[], object]
"""What the screen does with what was found."""
Find = Callable[[Int64], Go | None]
"""Looks for the first of rows, from 0, in the order given; None where it is none of them."""
_FIRST, _MOST = 16, 1 << 14
"""Rows of a step."""
_SHORT, _LONG = 0.02, 0.05
"""Seconds of a step: it is to be stopped at once, and worth its while."""
_SECONDS_BETWEEN: Final = 0.2
_WRAPPED: Final = ("on from the end of the list", "on from the beginning of the list")


class RowSearch(CoreScreen):
    """One thing at a time is looked for; what comes later takes its place."""

    _sought = ""
    """What is being looked for, in words; empty while nothing is."""

    def stop_row_search(self) -> bool:
        """Stop the search that runs."""
        words = self._sought
        if not words:
            return False
        self.workers.cancel_group(self, "seek")
        self._seek_ends()
        self.notify(f"stopped looking for {words}", timeout=2, markup=False)
        return True

    def seek(
        self,
        step: int,
        find: Find,
        words: str,
        *,
        around: bool = False,
        here: Callable[[], Go | None] | None = None,
    ) -> None:
        """Go to the next row along the list (`step` 1, or -1 for the one before) that `find` finds, which runs in a
        thread; `around`: at the end go on from the other one. `words` say what it is. What `here` finds, in the row
        that is shown, is gone to first."""
        self._sought = words
        self._draw_inspector(f"looking for {words}, esc stops")
        self._seek(step, find, words, around=around, here=here)

    @work(thread=True, exclusive=True, group="seek")
    def _seek(self, step: int, find: Find, words: str, *, around: bool, here: Callable[[], Go | None] | None) -> None:
        sys.setswitchinterval(SWITCH_SECONDS)
        worker = get_current_worker()
        with gc_paused():
            go = here() if here is not None else None
        if worker.is_cancelled:
            return
        if go is not None:
            call_on_ui(self, self._sought_at, worker, go, "")
            return
        view = copy(self.view)  # as it is now, whatever becomes of the list
        start = self._list.cursor
        ahead = range(start + step, len(view) if step > 0 else -1, step)
        behind = range(0, start + 1) if step > 0 else range(len(view) - 1, start - 1, -1)
        total = len(ahead) + (len(behind) if around else 0)
        done, told = 0, time.monotonic()
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
                    call_on_ui(self, self._sought_at, worker, go, "" if not turn else _WRAPPED[step > 0])
                    return
                at, done = at + count, done + count
                spent = time.monotonic() - begun
                count = min(_MOST, count * 2) if spent < _SHORT else max(1, count // 2) if spent > _LONG else count
                if time.monotonic() - told > _SECONDS_BETWEEN:
                    told = time.monotonic()
                    call_on_ui(self, self._sought_so_far, worker, f"{words} {100 * done // total} %")
        call_on_ui(self, self._sought_in_vain, worker, step, words, around=around)

    def _sought_so_far(self, worker: Worker[None], words: str) -> None:
        if not worker.is_cancelled:
            self._draw_inspector(f"looking for {words}, esc stops")

    def _sought_at(self, worker: Worker[None], go: Go, wrapped: str) -> None:
        if worker.is_cancelled:
            return
        self._seek_ends()
        go()
        if wrapped:
            self.notify(wrapped, timeout=2)

    def _sought_in_vain(self, worker: Worker[None], step: int, words: str, *, around: bool) -> None:
        if worker.is_cancelled:
            return
        self._seek_ends()
        self.notify(f"no {'' if around else 'more ' if step > 0 else 'earlier '}{words}", timeout=2, markup=False)

    def _seek_ends(self) -> None:
        self._sought = ""
        self._draw_inspector()
