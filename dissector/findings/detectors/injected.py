"""What a proxy injected on purpose."""

from typing import ClassVar

from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.examined_rows import ExaminedRows


class Injected(ConnectionDetector):
    """Finds the exchanges that a fault of `kdissect proxy` changed, delayed or ended. No other detector sees them, nor
    what was under way on the same connection then (`framework/injected_rows.py`)."""

    explanation: ClassVar = Explanation(
        "injected",
        "Injected on purpose",
        Severity.NOTE,
        "A rule of kdissect proxy made this happen: an error that the broker did not send, a response that came late "
        "or never, a connection that was closed. The message names the rule and says what it did.",
        "The proxy ran with --fault or --faults, and the rule's filter matched this exchange.",
        "Look at what the client does next: -Y 'finding == \"injected\"' lists the injected faults. None of them is "
        "blamed on the broker: exchanges in progress on the same connection are not examined for causes.",
    )
    sees_injected: ClassVar = True

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Report each."""
        for row, note in self.context.injections(rows):
            self.report(row, f"by {note.by}: {note.action}; kdissect proxy did it, not the broker")
