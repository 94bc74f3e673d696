"""The help: the keys that work where the user is, made from the bindings that are active there."""

from collections.abc import Iterable, Iterator
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

Keys = dict[str, list[tuple[str, str]]]
"""Keys and what they do, by where they work."""


class HelpScreen(ModalScreen[None]):
    """Shows keys; any of its own closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter", "dismiss", "Close", id="help.close"),
    ]

    def __init__(self, keys: Keys) -> None:
        super().__init__()
        self._keys = keys

    def compose(self) -> ComposeResult:
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True)
        table.add_column()
        for title, keys in self._keys.items():
            table.add_row(Text(title, "bold underline"), "")
            for key, words in keys:
                table.add_row(Text(key, "bold"), Text(words))
            table.add_row("", "")
        table.add_row(Text("esc", "bold"), Text("close"))
        with VerticalScroll(id="help"):
            yield Static(table)


def keys_of(screen: Screen[object]) -> Keys:
    """The keys that work on a screen as it is now."""
    where: dict[str, list[ActiveBinding]] = {"In this pane": [], "On this screen": [], "Everywhere": []}
    for active in screen.active_bindings.values():
        if active.binding.description and active.enabled:
            place = "In this pane" if active.node is screen.focused else "On this screen"
            where["Everywhere" if active.node is screen.app else place].append(active)
    return {title: list(_lines(screen, found)) for title, found in where.items() if found}


def _lines(screen: Screen[object], found: Iterable[ActiveBinding]) -> Iterator[tuple[str, str]]:
    """One line an action, with all its keys."""
    keys: dict[tuple[str, str], list[str]] = {}
    for _, binding, _, tooltip in found:
        told = keys.setdefault((binding.action, tooltip or binding.description), [])
        told.append(screen.app.get_key_display(binding))
    yield from ((" ".join(dict.fromkeys(shown)), words) for (_, words), shown in keys.items())
