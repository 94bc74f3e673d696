"""The rules for faults of the proxy: the menu of them, and rules that are typed."""

from collections.abc import Iterator
from typing import ClassVar

from textual.binding import Binding

from dissector.capture.fault_counts import FiredFault
from dissector.capture.live.commands import RefusedError
from dissector.core.text import clean
from dissector.proxy_server.controls import ProxyControls
from dissector.proxy_server.faults import FaultError
from tui.command_line import LineCommand
from tui.feature import CAPTURE, ScreenFeature, work
from tui.proxy_rows import go_to_row
from tui.screens.dialog import Prompt
from tui.screens.faults_screen import FaultsScreen, FaultsState
from tui.screens.live_screen import LiveScreen
from tui.threads import call_on_ui


class FaultsFeature(ScreenFeature[LiveScreen]):
    """! shows the rules."""

    GROUP = CAPTURE
    NEEDS_ROWS = False
    BINDINGS: ClassVar[list[Binding]] = [
        Binding("exclamation_mark", "faults", "Faults", key_display="!", id="main.faults",
                tooltip="Fault rules: which are armed and how often they fired; arm, disarm or add rules"),
    ]  # fmt: skip

    def commands(self) -> Iterator[LineCommand]:
        yield LineCommand("fault", "arm a fault rule", self._add, "RULE", needs_argument=True)

    def action_faults(self) -> None:
        recording = self.screen.recording

        def go(fired: FiredFault | None) -> None:
            if fired is not None:
                self._find(fired)

        def look() -> FaultsState:
            return FaultsState(tuple(recording.faults), tuple(recording.fired))

        self.app.push_screen(FaultsScreen(look, self._arm, self._ask), go)

    def _ask(self, text: str = "", error: str = "") -> None:
        """Ask for a rule; again with what was wrong with it."""
        title = error or "A rule, as for --fault: api == Produce: error NOT_LEADER_OR_FOLLOWER, first 3"

        def take(typed: str | None) -> None:
            if typed and typed.strip():
                self._add(typed.strip())

        self.app.push_screen(Prompt(title, text), take)

    @work(group="control", thread=True)
    def _add(self, rule: str) -> None:
        try:
            ProxyControls(self.screen.recording).add_fault(rule)
        except FaultError as error:
            call_on_ui(self.screen.app.screen, self._ask, rule, str(error))
        except RefusedError as error:
            call_on_ui(self.screen.app.screen, self.notify, str(error), severity="error")
        else:
            call_on_ui(self.screen.app.screen, self.notify, clean(f"armed: {rule}"), timeout=3)

    @work(group="control", thread=True)
    def _arm(self, number: int, armed: bool) -> None:
        controls = ProxyControls(self.screen.recording)
        try:
            controls.arm(number, armed=armed)
            self.screen.recording.faults = controls.fault_counts()
        except RefusedError as error:
            call_on_ui(self.screen.app.screen, self.notify, str(error), severity="error")

    @work(group="control", thread=True)
    def _find(self, fired: FiredFault) -> None:
        go_to_row(self.screen, (fired.client, fired.correlation_id), "its row is no longer there, or not yet")
