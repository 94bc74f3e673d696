"""The dialog about one connection: whose it is, and what TCP did on it. It returns a row to go to."""

from functools import partial
from typing import ClassVar

from rich.console import Group
from rich.table import Table
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from dissector.capture_session import Capture
from tui.connection_summary import ConnectionSummary, connection_summary
from tui.screens.dialog import Dialog
from tui.threads import call_on_ui


class ConnectionDialog(Dialog[int]):
    """One connection; g and G return its first and its last row."""

    DEFAULT_CSS = """
    ConnectionDialog { align: center middle; }
    #connection { width: 76; max-width: 96%; height: auto; max-height: 96%; background: $panel;
                  border: round $primary; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,W,enter", "dismiss", "Close", id="connection.close"),
        Binding("g", "first", "First row", id="connection.first"),
        Binding("G", "last", "Last row", id="connection.last"),
        Binding("j,down", "scroll(1)", "Down", show=False, id="connection.down"),
        Binding("k,up", "scroll(-1)", "Up", show=False, id="connection.up"),
    ]

    def __init__(self, capture: Capture, connection: int) -> None:
        super().__init__()
        self._capture = capture
        self._connection = connection
        self._summary: ConnectionSummary | None = None

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="connection") as box:
            box.border_title = f"Connection C{self._connection}"
            box.border_subtitle = "g first row · G last row · esc closes"
            yield Static("…", id="connection-facts", markup=False)

    def on_mount(self) -> None:
        self._look_up()

    @work(thread=True)
    def _look_up(self) -> None:
        found = connection_summary(self._capture, self._connection)
        call_on_ui(self, partial(self._show, found))

    def _show(self, found: ConnectionSummary) -> None:
        self._summary = found
        self.query_one("#connection-facts", Static).update(Group(*_tables(found)))

    def action_first(self) -> None:
        if self._summary is not None:
            self.dismiss(self._summary.first_row)

    def action_last(self) -> None:
        if self._summary is not None:
            self.dismiss(self._summary.last_row)

    def action_scroll(self, lines: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)


def _tables(found: ConnectionSummary) -> list[Table]:
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in found.facts:
        facts.add_row(name, Text(value))
    if not found.counts:
        return [facts]
    counts = Table.grid(padding=(0, 2))
    counts.add_column(style="bold", no_wrap=True)
    for _ in range(2):
        counts.add_column(justify="right", no_wrap=True)
    counts.add_row("", "", "")
    counts.add_row("", "client → broker", "broker → client")
    for name, out, back, is_trouble in found.counts:
        words = f"! {name}" if is_trouble else name
        counts.add_row(words, f"{out:,}", f"{back:,}")
    return [facts, counts]
