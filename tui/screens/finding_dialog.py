"""The dialog that explains findings: what was seen, why it happens, what to do."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from dissector.core.finding import Finding
from dissector.core.text import clean
from dissector.findings.codes import explain
from tui.labels import MARKS
from tui.screens.dialog import Dialog


def explanation(finding: Finding) -> Text:
    """Return where a finding is, and the explanation of its code."""
    text = Text()
    if finding.path:
        text.append(f"{clean(finding.path)}\n", "dim")
    known = explain(finding.code)
    if known is not None:
        text.append(f"\n{known.title} ({finding.code})\n", "bold underline")
        text.append(f"{known.what}\n")
        text.append("\nWhy  ", "bold").append(f"{known.why}\n")
        text.append("\nWhat to do  ", "bold").append(f"{known.what_to_do}\n")
    return text


class FindingDialog(Dialog[None]):
    """One finding, or all of a row."""

    DEFAULT_CSS = """
    FindingDialog { align: center middle; }
    #explained { width: 90; max-width: 96%; height: auto; max-height: 90%; background: $panel;
                 border: round $primary; padding: 0 1; scrollbar-size: 1 1; }
    #explained .note, #explained .warning, #explained .error { text-style: bold; }
    #explained .warning { color: $warning; }
    #explained .error { color: $error; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,i,question_mark,enter", "dismiss", "Close", id="finding.close"),
    ]

    def __init__(self, title: str, findings: Sequence[Finding]) -> None:
        super().__init__()
        self._title = title
        self._findings = findings

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="explained") as box:
            box.border_title = clean(self._title).replace("[", "\\[")
            box.border_subtitle = "esc closes"
            for finding in self._findings:
                heading = f"{MARKS[finding.severity.value]} {clean(finding.message)}"
                yield Static(Text(heading), markup=False, classes=finding.severity.value)
                yield Static(explanation(finding), markup=False)
