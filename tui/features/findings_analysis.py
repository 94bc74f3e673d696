"""Analyzes all rows for findings in a thread, once they are read, so that list and findings screen have them. A live
capture is analyzed at intervals.

It works half of the time and sleeps the other half, so that the screen responds quickly; it works all of the time while
another screen is in front, such as the findings screen, which waits for it.
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
"""Between two reports of progress."""
CALM: Final = 2.0
"""Seconds between the end of an analysis and the start of the next one."""


class FindingsAnalysis(CoreScreen):
    """Runs one analysis at a time."""

    def __init__(self, capture: Capture) -> None:
        super().__init__(capture)
        self.findings = FindingsModel(capture)
        self._is_running = False
        self._ended_at = 0.0
        """When the last analysis ended."""

    def _rows_added(self, *, done: bool) -> None:
        super()._rows_added(done=done)
        if done or (not self.RENUMBERS_ROWS and time.monotonic() - self._ended_at > CALM):
            self._start_analysis()

    def _start_analysis(self) -> None:
        if not self._is_running and self.findings.needs_analysis:
            self._is_running = True
            self._analyze()

    @work(thread=True, exclusive=True, group="analyze")
    def _analyze(self) -> None:
        worker = get_current_worker()
        reported = begun = time.monotonic()
        for has_found in self.findings.analyze():
            now = time.monotonic()
            if self.is_current:
                time.sleep(now - begun)
            if worker.is_cancelled:
                return
            if has_found or now - reported > SECONDS_BETWEEN:
                reported = now
                call_on_ui(self, self._step_done, worker, has_found=has_found)
            begun = time.monotonic()
        call_on_ui(self, self._analysis_done, worker)

    def _step_done(self, worker: Worker[None], *, has_found: bool) -> None:
        """Show the progress of a step."""
        if worker.is_cancelled:
            return
        if has_found:
            self._list.update_rows(scrolled=False)  # rows have more findings than before
            if self.model.number is not None and self.model.number in self.findings.cross_message_rows:
                self.model.exchange = self.capture.exchange(self.model.number)
                self._draw_inspector()
        self._draw_title()

    def _analysis_done(self, worker: Worker[None]) -> None:
        if worker.is_cancelled:
            return
        self._is_running, self._ended_at = False, time.monotonic()
        self._draw_title()
        if self._done:  # of a live capture the last rows may have come meanwhile
            self._start_analysis()

    def _status_words(self) -> str:
        model = self.findings
        share = 100 * model.done // max(1, model.total)
        return f" · analyzing {share} %" if self._is_running else ""
