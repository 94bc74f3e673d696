"""Looks at all rows beside the screen, once they are read, for what is wrong with them: so that the list shows it, and
who asks for it has it at once. Live it goes on with what has come, at calm intervals.

It works half of the time and rests the other half, so that the screen stays quick; all of the time while another screen
is over this one, as that of the findings, which waits for it.
"""

import time
from typing import Final

from textual import work
from textual.worker import Worker, get_current_worker

from dissector.capture_session import Capture
from tui.findings_model import FindingsModel
from tui.screens.core_screen import CoreScreen
from tui.ui_thread import call_on_ui

SECONDS_BETWEEN: Final = 0.5
"""Between two words about how far it is."""
CALM: Final = 2.0
"""Seconds between the end of one look and the beginning of the next one."""


class FindingsAnalysis(CoreScreen):
    """One look at a time."""

    def __init__(self, capture: Capture) -> None:
        super().__init__(capture)
        self.troubles = FindingsModel(capture)
        self._looks = False
        self._looked = 0.0
        """When the last look ended."""

    def _rows_added(self, *, done: bool) -> None:
        super()._rows_added(done=done)
        if done or (not self.RENUMBERS_ROWS and time.monotonic() - self._looked > CALM):
            self._examine_on()

    def _examine_on(self) -> None:
        if not self._looks and self.troubles.has_new:
            self._looks = True
            self._examine_all()

    @work(thread=True, exclusive=True, group="examine")
    def _examine_all(self) -> None:
        worker = get_current_worker()
        told = begun = time.monotonic()
        for has_found in self.troubles.look():
            now = time.monotonic()
            if self.is_current:
                time.sleep(now - begun)
            if worker.is_cancelled:
                return
            if has_found or now - told > SECONDS_BETWEEN:
                told = now
                call_on_ui(self, self._examined, worker, has_found=has_found)
            begun = time.monotonic()
        call_on_ui(self, self._examined_all, worker)

    def _examined(self, worker: Worker[None], *, has_found: bool) -> None:
        """A step further."""
        if worker.is_cancelled:
            return
        if has_found:
            self._list.rearranged(scrolled=False)  # rows have more findings than before
            if self.model.number is not None and self.model.number in self.troubles.told:
                self.model.exchange = self.capture.exchange(self.model.number)
                self._draw_inspector()
        self._draw_title()

    def _examined_all(self, worker: Worker[None]) -> None:
        if worker.is_cancelled:
            return
        self._looks, self._looked = False, time.monotonic()
        self._draw_title()
        if self._done:  # live, the last rows may have come meanwhile
            self._examine_on()

    def _status_words(self) -> str:
        troubles = self.troubles
        share = 100 * troubles.done // max(1, troubles.total)
        return f" · examining {share} %" if self._looks else ""
