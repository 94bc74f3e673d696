"""F lists all findings of the capture, i explains those of an exchange.

All rows are analyzed for findings in a thread, once they are read, so that list and findings screen have them; a live
capture is analyzed at intervals. The analysis works half of the time and sleeps the other half, so that the screen
responds quickly; it works all of the time while another screen is in front, such as the findings screen, which waits
for it.
"""

import time
from typing import ClassVar, Final

from textual.binding import Binding
from textual.worker import get_current_worker

from dissector.core.finding import Finding
from dissector.exchange.finding_words import ERROR_RESPONSE
from dissector.protocol.schema.field_names import ERROR_CODES
from tui.feature import OVERALL, ScreenFeature, work
from tui.findings_model import FindingsModel
from tui.location_history import Location
from tui.screens.core_screen import CoreScreen
from tui.screens.findings_screen import FindingDialog, FindingsScreen
from tui.threads import call_on_ui

SECONDS_BETWEEN: Final = 0.5
"""Between two reports of progress."""
CALM: Final = 2.0
"""Seconds between the end of an analysis and the start of the next one."""


class FindingsFeature(ScreenFeature[CoreScreen]):
    """The findings of the capture, and of an exchange."""

    GROUP = OVERALL

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("F", "findings", "Findings", tooltip="List all findings of this capture, by kind",
                id="main.findings"),
        Binding("i", "explain_row", "Explain", show=False, tooltip="Explain the findings of this exchange",
                id="main.explain"),
    ]  # fmt: skip

    def __init__(self, screen: CoreScreen) -> None:
        super().__init__(screen)
        self.model = FindingsModel(screen.capture)
        self._is_running = False
        self._ended_at = 0.0
        """When the last analysis ended."""

    def action_findings(self) -> None:
        """Show the findings so far; more are added as they are found."""

        def go(chosen: tuple[int, Finding] | None) -> None:
            if chosen is not None:
                row, finding = chosen
                side, _, path = finding.path.partition(".")
                self.screen.go_to_place(Location(row, side or None, path), lambda: self._choose_error(finding))

        self.app.push_screen(FindingsScreen(self.model), go)

    def _choose_error(self, finding: Finding) -> None:
        """Select the field that has the error of a finding, which names the body that it is in."""
        if finding.code != ERROR_RESPONSE or self.screen.model.traced is None:
            return
        name = finding.message.partition(":")[0].partition(" (")[0]
        fields = self.screen.model.traced.message.tree.walk()
        node = next((each for each in fields if each.name in ERROR_CODES and each.note == name), None)
        if node is not None:
            self.screen.choose_field(node)

    def action_explain_row(self) -> None:
        exchange = self.screen.model.exchange
        findings = exchange.findings if exchange is not None else []
        if exchange is None or not findings:
            self.notify("this exchange has no findings; e goes to the next error, F shows all", timeout=2)
            return
        self.app.push_screen(FindingDialog(f"Exchange {exchange.row.number} · {exchange.row.api}", findings))

    # The analysis: one at a time.

    def rows_added(self, *, done: bool) -> None:
        if done or (not self.screen.RENUMBERS_ROWS and time.monotonic() - self._ended_at > CALM):
            self._start_analysis()

    def _start_analysis(self) -> None:
        if not self._is_running and self.model.needs_analysis:
            self._is_running = True
            self._analyze()

    @work(group="analyze", thread=True, exclusive=True)
    def _analyze(self) -> None:
        worker = get_current_worker()
        reported = begun = time.monotonic()
        for has_found in self.model.analyze():
            now = time.monotonic()
            if self.screen.is_current:
                time.sleep(now - begun)
            if worker.is_cancelled:
                return
            if has_found or now - reported > SECONDS_BETWEEN:
                reported = now
                call_on_ui(self.screen, self._step_done, has_found=has_found)
            begun = time.monotonic()
        call_on_ui(self.screen, self._analysis_done)

    def _step_done(self, *, has_found: bool) -> None:
        """Show the progress of a step."""
        if has_found:
            self.screen.exchange_list.update_rows(scrolled=False)  # rows have more findings than before
            if self.screen.model.number is not None and self.screen.model.number in self.model.cross_message_rows:
                self.screen.model.exchange = self.screen.capture.exchange(self.screen.model.number)
                self.screen.draw_inspector()
        self.screen.draw_title()

    def _analysis_done(self) -> None:
        self._is_running, self._ended_at = False, time.monotonic()
        self.screen.draw_title()
        if self.screen.done:  # of a live capture the last rows may have come meanwhile
            self._start_analysis()

    def status_words(self) -> str:
        model = self.model
        share = 100 * model.done // max(1, model.total)
        return f" · analyzing {share} %" if self._is_running else ""
