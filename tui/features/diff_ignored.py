"""Lists the differences that a comparison ignores, and what was not captured and so not compared."""

from collections.abc import Sequence
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from dissector.core.text import clean
from tui.feature import ScreenFeature
from tui.screens.dialog import Dialog
from tui.screens.diff_core_screen import DiffCoreScreen


class IgnoredDialog(Dialog[None]):
    """Lists of sentences; closes on Escape, q, i and Enter."""

    DEFAULT_CSS = """
    IgnoredDialog { align: center middle; }
    #ignored {
      width: 84; max-width: 96%; height: auto; max-height: 92%; border: round $primary; background: $panel;
      padding: 1 2;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,i,enter", "dismiss", "Close", id="ignored.close"),
    ]

    def __init__(self, not_compared: Sequence[str], ignored: Sequence[str]) -> None:
        super().__init__()
        self._lists = {"Not compared": not_compared, "Ignored differences": ignored}

    def compose(self) -> ComposeResult:
        table = Table.grid(padding=(0, 1))
        table.add_column(no_wrap=True)
        table.add_column()
        for title, sentences in self._lists.items():
            if not sentences:
                continue
            table.add_row("", Text(title, "bold underline"))
            for words in sentences:
                table.add_row("·", Text(clean(words)))
            table.add_row("", "")
        table.add_row("", Text("esc  close", "bold"))
        with VerticalScroll(id="ignored"):
            yield Static(table)


class DiffIgnoredFeature(ScreenFeature[DiffCoreScreen]):
    """i lists them."""

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("i", "ignored", "Ignored", show=False, tooltip="List ignored differences", id="diff.ignored"),
    ]

    def action_ignored(self) -> None:
        comparison = self.screen.comparison
        if comparison is not None:
            self.app.push_screen(IgnoredDialog(comparison.not_compared, comparison.ignored))
