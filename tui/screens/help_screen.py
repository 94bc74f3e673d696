"""The help: the keys that work on the current screen, made from its active bindings, as the user mapped them.

The ten that matter most come first, then those of the focused pane, then groups by what one wants to do. Two keys that
go to the next and to the previous of something are one line.
"""

import re
from collections.abc import Iterable, Iterator
from typing import ClassVar, Final

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from dissector.core.text import clean
from tui.feature import FIRST, PROGRAM, grouped_keys, place
from tui.row_states import RowState
from tui.screens.dialog import Dialog

Keys = dict[str, list[tuple[str, str]]]
"""Keys with their descriptions, by heading."""
START, PANE = "Start with these", "In this pane"
WIDE: Final = 120
"""Screen width from which on there are two columns."""
_MARKS: Final = (
    (RowState.REFUSED.mark, "an error, or another warning"), (RowState.UNANSWERED.mark, "there was no response"),
    (RowState.WAITING.mark, "the response may still arrive"), (RowState.HELD.mark, "held by kdissect proxy"),
    (RowState.ORPHAN.mark, "the request was not captured"),
    (RowState.DAMAGED.mark, "damaged, not captured in full, closed"), (RowState.NOTED.mark, "a note"),
    ("◆ ✎", "marked, commented"),
)  # fmt: skip
MARKS: Final = "Marks beside rows"
_KEY_WIDTH: Final = 13
"""Cells of a line's keys; if they need more they take several lines."""
_OWN: Final = frozenset(" jkq?/")
"""What does not begin a word: keys of the screen, and a space."""
_DIRECTION: Final = re.compile(r"\(-?([\d.]+)\)$")
"""How far an action goes: back if it is negative."""


class HelpScreen(Dialog[None]):
    """Shows keys; closes on Escape, q, ? and Enter. What is typed finds keys by their words: any letter but those of
    its own keys begins that, / as well; Escape first shows all keys again."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter", "back", "Close", id="help.close"),
        Binding("q,question_mark", "dismiss", "Close", show=False, id="help.quit"),
        Binding("slash", "find", "Find", show=False, id="help.find"),
        Binding("j", "scroll(1)", "Down", show=False, id="help.down"),
        Binding("k", "scroll(-1)", "Up", show=False, id="help.up"),
    ]

    def __init__(self, keys: Keys) -> None:
        super().__init__()
        self._keys = keys
        self._typed: str | None = None
        """What is looked for; None before it begins."""

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help") as box:
            box.border_title = "Keys"
            box.border_subtitle = "type to find · esc closes · ctrl+p runs any command"
            yield Static(id="help-keys")

    def on_resize(self) -> None:
        wide = self.app.size.width >= WIDE
        self.query_one("#help").set_class(wide, "wide")
        self._draw()

    def _draw(self) -> None:
        box = self.query_one("#help", VerticalScroll)
        keys = found_keys(self._keys, self._typed or "")
        box.border_title = "Keys" if self._typed is None else f"Keys: {clean(self._typed)}▏"
        wide = self.app.size.width >= WIDE
        self.query_one(Static).update(_table(keys, 2 if wide else 1) if keys else Text("no key matches"))
        box.scroll_home(animate=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a word is typed, its letters are no keys."""
        return self._typed is None if action in ("dismiss", "scroll", "find") else True

    def on_key(self, event: events.Key) -> None:
        typed, own = self._typed, event.character in _OWN
        if typed is not None and event.key == "backspace":
            self._find(typed[:-1] if typed else None)
        elif event.is_printable and event.character is not None and (typed is not None or not own):
            self._find((typed or "") + event.character)
        else:
            return
        event.stop()

    def _find(self, typed: str | None) -> None:
        self._typed = typed
        self.refresh_bindings()
        self._draw()

    def action_find(self) -> None:
        self._find("")

    def action_back(self) -> None:
        if self._typed is None:
            self.dismiss()
        else:
            self._find(None)

    def action_scroll(self, lines: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)


def found_keys(keys: Keys, typed: str) -> Keys:
    """Return the keys with all words that are typed in their description, in their group's title, or as the key."""
    words = typed.lower().split()
    if not words:
        return keys
    found = {
        title: [
            (key, said) for key, said in lines
            if all(word in f"{title} {said}".lower() or word in key.lower().split() for word in words)
        ]
        for title, lines in keys.items()
    }  # fmt: skip
    return {title: lines for title, lines in found.items() if lines}


def _table(keys: Keys, count: int) -> Table:
    """Return all keys in so many columns of about the same length."""
    table = Table.grid(padding=(0, 4))
    columns: list[list[tuple[str, list[tuple[str, str]]]]] = [[] for _ in range(count)]
    for group in keys.items():
        shortest = min(columns, key=lambda groups: sum(len(lines) + 2 for _, lines in groups))
        shortest.append(group)
    table.add_row(*(_column(groups) for groups in columns))
    return table


def _column(groups: list[tuple[str, list[tuple[str, str]]]]) -> Group:
    width = max((cell_len(key) for _, lines in groups for key, _ in lines), default=1)
    parts: list[RenderableType] = []
    for title, lines in groups:
        table = Table.grid(padding=(0, 2))
        table.add_column(width=min(width, _KEY_WIDTH))
        table.add_column()
        for key, words in lines:
            table.add_row(Text(key, "bold"), Text(words))
        parts += [Text(title, "bold underline"), table, Text()]
    return Group(*parts)


def keys_of(screen: Screen[object]) -> Keys:
    """Return the keys of a screen as it is now. Each key is there once."""
    ours = [
        active for active in screen.active_bindings.values()
        if active.binding.description and active.enabled and active.binding.id is not None
    ]  # fmt: skip
    first = sorted((each for each in ours if each.binding.id in FIRST), key=_first_place)
    groups: dict[str, list[ActiveBinding]] = {START: first, PANE: []}
    for active in ours:
        if active not in first:
            pane = active.node is screen.focused
            groups.setdefault(PANE if pane else feature_of(active), []).append(active)
    titles = [START, PANE, *sorted(set(groups) - {START, PANE}, key=place)]
    keys = {title: list(_lines(screen, groups[title])) for title in titles if groups[title]}
    return keys | ({MARKS: list(_MARKS)} if first else {})


def _first_place(active: ActiveBinding) -> int:
    return FIRST.index(str(active.binding.id))


def feature_of(active: ActiveBinding) -> str:
    """Return the group of a key: that of the feature or the class that declares it."""
    declared = (each for kind in type(active.node).__mro__ for each in grouped_keys(kind))
    return next((group for group, key in declared if key.id == active.binding.id), PROGRAM)


def _lines(screen: Screen[object], found: Iterable[ActiveBinding]) -> Iterator[tuple[str, str]]:
    """Yield a line for each action, with all its keys; for one with its opposite, both."""
    keys: dict[str, list[str]] = {}
    words: dict[str, list[str]] = {}
    for _, binding, _, tooltip in found:
        action = _DIRECTION.sub(r"(\1)", binding.action)
        keys.setdefault(action, []).append(screen.app.get_key_display(binding))
        words.setdefault(action, []).append(tooltip or binding.description)
    for action, shown in keys.items():
        said = list(dict.fromkeys(words[action]))
        text = said[0] if len(said) == 1 else _both(said)
        yield " ".join(dict.fromkeys(shown)), text


def _both(said: list[str]) -> str:
    """Return the words for two directions: of what is next, and of what is not."""
    following = next((words for words in said if words.startswith("Next ")), None)
    if following is not None:
        return following.replace("Next ", "Next, previous ", 1)
    return ", ".join([said[0], *(f"{words[0].lower()}{words[1:]}" for words in said[1:])])
