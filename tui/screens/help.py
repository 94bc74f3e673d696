"""The help: the keys that work, by what they are for."""

from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

KEYS = (
    ("Move", (
        ("↑ ↓ ← →, k j h l", "in every pane"),
        ("PgUp PgDn, ctrl+u ctrl+d", "by a page, by half of one"),
        ("g G, Home End", "first, last; 42G: row 42"),
        ("Tab, shift+Tab", "next pane, previous pane"),
        ("Enter", "list: to the fields · fields: open or close"),
    )),
    ("Exchanges", (
        ("r", "request ↔ response"),
        ("[ ]", "previous, next on this connection"),
        ("e E", "next, previous with something wrong"),
        ("F7 F8, ctrl+↑ ctrl+↓", "previous, next, from any pane"),
    )),
    ("View", (
        ("\\", "this pane alone, and back"),
        ("+ -", "more room for the list, for the fields"),
        ("< >", "more room for the bytes, for the fields"),
        ("ctrl+s", "save a picture of the screen (SVG)"),
        ("ctrl+p", "all commands"),
        ("? q", "this help, quit"),
    )),
)  # fmt: skip


class HelpScreen(ModalScreen[None]):
    """Any of its keys closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter", "dismiss", "Close", id="help.close"),
    ]

    def compose(self) -> ComposeResult:
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True)
        table.add_column()
        for title, keys in KEYS:
            table.add_row(Text(title, "bold underline"), "")
            for key, words in keys:
                table.add_row(Text(key, "bold"), Text(words))
            table.add_row("", "")
        table.add_row(Text("esc", "bold"), Text("close"))
        with VerticalScroll(id="help"):
            yield Static(table)
