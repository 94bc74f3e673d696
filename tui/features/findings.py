"""F lists all findings of the capture, i explains those of an exchange."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from dissector.core.finding import Finding
from dissector.exchange.info_column import ERROR_CODES, ERROR_RESPONSE
from tui.features.findings_analysis import FindingsAnalysis
from tui.key_groups import OVERALL
from tui.location_history import Location
from tui.screens.finding_dialog import FindingDialog
from tui.screens.findings_screen import FindingsScreen


class FindingsFeature(FindingsAnalysis):
    """The findings of the capture, and of an exchange."""

    FEATURE = OVERALL

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("F", "findings", "Findings", tooltip="List all findings of this capture, by kind",
                id="main.findings"),
        Binding("i", "explain_row", "Explain", show=False, tooltip="Explain the findings of this exchange",
                id="main.explain"),
    ]  # fmt: skip

    def action_findings(self) -> None:
        """Show the findings so far; more are added as they are found."""

        def go(chosen: tuple[int, Finding] | None) -> None:
            if chosen is not None:
                row, finding = chosen
                side, _, path = finding.path.partition(".")
                self.go_to_place(Location(row, side or None, path), lambda: self._choose_error(finding))

        self.app.push_screen(FindingsScreen(self.findings), go)

    def _choose_error(self, finding: Finding) -> None:
        """Select the field that has the error of a finding, which names the body that it is in."""
        if finding.code != ERROR_RESPONSE or self.model.traced is None:
            return
        name = finding.message.partition(":")[0].partition(" (")[0]
        fields = self.model.traced.message.tree.walk()
        node = next((each for each in fields if each.name in ERROR_CODES and each.note == name), None)
        if node is not None:
            self.choose_field(node)

    def action_explain_row(self) -> None:
        exchange = self.model.exchange
        findings = exchange.findings if exchange is not None else []
        if exchange is None or not findings:
            self.notify("this exchange has no findings; e goes to the next error, F shows all", timeout=2)
            return
        self.app.push_screen(FindingDialog(f"Exchange {exchange.row.number} · {exchange.row.api}", findings))
