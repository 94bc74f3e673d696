"""The dialog of the search for text, bytes or a field."""

from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from dissector.analysis.search import SearchError, SearchKind, SearchQuery, search_query
from dissector.core.text import clean
from tui.screens.dialog import Dialog
from tui.theme import bold


class SearchDialog(Dialog[SearchQuery | None]):
    """Asks what to search."""

    DEFAULT_CSS = """
    SearchDialog { align: center bottom; }
    SearchDialog Vertical { height: auto; background: $panel; border: round $primary; padding: 0 1; }
    #query { border: none; background: $panel; padding: 0; height: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Close", id="search.close"),
        Binding("tab", "kind", "Kind", priority=True, tooltip="Text, hex or field", id="search.kind"),
        Binding("shift+tab", "records", "Records", priority=True, id="search.records",
                tooltip="Search compressed records of all exchanges too"),
    ]  # fmt: skip

    def __init__(self, before: SearchQuery | None) -> None:
        super().__init__()
        self._kind = before.kind if before is not None else SearchKind.TEXT
        self._text = before.text if before is not None else ""
        self._opens_records = before is not None and before.opens_records

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Input(self._text, placeholder="text · 00 2a · topics.name", id="query")
            yield Static(id="how", markup=False)

    def on_mount(self) -> None:
        self._draw()

    def _draw(self, error: str = "") -> None:
        words = Text("tab  ", "bold")
        for kind in SearchKind:
            words.append(f"[{kind}]" if kind is self._kind else f" {kind} ", "bold" if kind is self._kind else "dim")
        words.append("  shift+tab ", "bold").append(" compressed records ", "dim not bold")
        words.append("searched" if self._opens_records else "not searched", "bold" if self._opens_records else "dim")
        if error:
            words = Text(clean(error), bold(self.app.theme_variables["error"]))
        self.query_one("#how", Static).update(words)

    def action_kind(self) -> None:
        kinds = list(SearchKind)
        self._kind = kinds[(kinds.index(self._kind) + 1) % len(kinds)]
        self._draw()

    def action_records(self) -> None:
        self._opens_records = not self._opens_records
        self._draw()

    def on_click(self, event: events.Click) -> None:
        """A click on the line below switches."""
        if event.widget is self.query_one("#how"):
            at = event.x - 10
            if 0 <= at < sum(len(kind) + 2 for kind in SearchKind):
                self.action_kind()
            else:
                self.action_records()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        try:
            self.dismiss(search_query(event.value, self._kind, opens_records=self._opens_records))
        except SearchError as error:
            self._draw(str(error))
