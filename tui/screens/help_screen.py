"""The help: the keys that work on the current screen, made from its active bindings, as the user mapped them."""

from collections.abc import Iterable, Iterator
from typing import ClassVar, Final

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from tui.screens.dialog import Dialog

Keys = dict[str, list[tuple[str, str]]]
"""Keys with their descriptions, by heading."""
PANE, EVERYWHERE = "In this pane", "Everywhere"
WIDE: Final = 120
"""Screen width from which on there are two columns."""


class HelpScreen(Dialog[None]):
    """Shows keys; closes on Escape, q, ? and Enter."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter", "dismiss", "Close", id="help.close"),
    ]

    def __init__(self, keys: Keys) -> None:
        super().__init__()
        self._keys = keys

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help"):
            yield Static(id="help-keys")

    def on_resize(self) -> None:
        wide = self.app.size.width >= WIDE
        self.query_one("#help").set_class(wide, "wide")
        self.query_one(Static).update(_table(self._keys, 2 if wide else 1))


def _table(keys: Keys, count: int) -> Table:
    """Return all keys in so many columns of about the same length."""
    table = Table.grid(padding=(0, 4))
    columns: list[list[tuple[str, list[tuple[str, str]]]]] = [[] for _ in range(count)]
    for group in keys.items():
        shortest = min(columns, key=lambda groups: sum(len(lines) + 2 for _, lines in groups))
        shortest.append(group)
    table.add_row(*(_column(groups) for groups in columns))
    return table


def _column(groups: list[tuple[str, list[tuple[str, str]]]]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column()
    for title, lines in groups:
        table.add_row(Text(title, "bold underline"), "")
        for key, words in lines:
            table.add_row(Text(key, "bold"), Text(words))
        table.add_row("", "")
    return table


def keys_of(screen: Screen[object]) -> Keys:
    """Return the keys of a screen as it is now, those of the focused pane first."""
    groups: dict[str, list[ActiveBinding]] = {PANE: []}
    for active in screen.active_bindings.values():
        if active.binding.description and active.enabled:
            pane = active.node is screen.focused
            groups.setdefault(PANE if pane else feature_of(active), []).append(active)
    groups[EVERYWHERE] = groups.pop(EVERYWHERE, [])  # the last
    return {title: list(_lines(screen, found)) for title, found in groups.items() if found}


def feature_of(active: ActiveBinding) -> str:
    """Return the heading of a key: the `FEATURE` of the class that binds it."""
    for kind in type(active.node).__mro__:
        own = (each.id for each in kind.__dict__.get("BINDINGS", ()) if isinstance(each, Binding))
        if active.binding.id is not None and active.binding.id in own:
            return str(kind.__dict__.get("FEATURE", EVERYWHERE))
    return EVERYWHERE


def _lines(screen: Screen[object], found: Iterable[ActiveBinding]) -> Iterator[tuple[str, str]]:
    """Yield a line for each action, with all its keys."""
    keys: dict[tuple[str, str], list[str]] = {}
    for _, binding, _, tooltip in found:
        shown_keys = keys.setdefault((binding.action, tooltip or binding.description), [])
        shown_keys.append(screen.app.get_key_display(binding))
    yield from ((" ".join(dict.fromkeys(shown)), words) for (_, words), shown in keys.items())
