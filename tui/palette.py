"""The command palette (ctrl+p): commands in the groups of the help, recent filters and captures, columns, themes.

Textual's provider takes titles for markup; here they are plain text, wherever they come from.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from typing import Final

from rich.text import Text
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import ActiveBinding
from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Provider
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widgets import OptionList

from dissector.core.text import clean
from tui.feature import place
from tui.messages import ApplyFilter
from tui.recents import FILTERS, capture_words, recent, recent_captures
from tui.screens.dialog import ResultScreen
from tui.screens.help_screen import feature_of
from tui.screens.main_screen import MainScreen
from tui.widgets.options import Options, has_room

OF_WORDS: Final = 1_000.0
"""Of a command that has all words that are typed: more than letters score."""
_KEYS: Final = re.compile(r" \([^()]*\)$")
_WORD: Final = re.compile(r"[^\W_]+")
OFFERED: Final = 20
"""Recent filters and recent captures."""


class _CommandOptions(CommandList, Options, can_focus=False):
    """The commands, in a list that bears clicks on those that are gone while more is typed."""


class Commands(CommandPalette, ResultScreen[None]):
    """The palette's screen. It runs a command once, however often it is clicked."""

    def compose(self) -> ComposeResult:
        """Compose Textual's screen with our list."""
        for widget in super().compose():
            yield _CommandOptions() if isinstance(widget, CommandList) else widget

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        if self.app.screen is not self:
            event.stop()
            event.prevent_default()

    def _action_command_list(self, action: str) -> None:
        if has_room(self.query_one(CommandList)):
            super()._action_command_list(action)


class Palette(Provider):
    """The commands of the application, found by words of their titles, then of what they say that they do, then by
    letters of their titles."""

    async def discover(self) -> AsyncIterator[DiscoveryHit | Hit]:
        """Yield all of them while nothing is typed."""
        for title, words, run, shown in self.app.get_system_commands(self.screen):
            if shown:
                yield DiscoveryHit(Text(clean(title)), run, clean(title), _plain(words))

    async def search(self, query: str) -> AsyncIterator[DiscoveryHit | Hit]:
        """Yield those that match what is typed."""
        matcher, typed = self.matcher(query), query.lower().split()
        for title, words, run, _ in self.app.get_system_commands(self.screen):
            in_title, in_all = (all(word in text.lower() for word in typed) for text in (title, f"{title} {words}"))
            score = matcher.match(title) + OF_WORDS * (in_title + in_all + naming(title, typed))
            if score > 0:
                yield Hit(score, Text(clean(title)), run, clean(title), _plain(words))


def naming(title: str, typed: Sequence[str]) -> int:
    """Return how well what is typed names a command: 3 for its name, 2 for the name's beginning, 1 for whole words of
    it, 0 for less."""
    name = _KEYS.sub("", title.partition(": ")[2] or title).lower()
    whole = " ".join(typed)
    return 3 if name == whole else 2 if name.startswith(whole) else int(set(typed) <= set(_WORD.findall(name)))


def _plain(words: str) -> str:
    """Return words that stay words where they are taken for markup."""
    return clean(words).replace("[", "\\[")


def action_commands(app: App[None], screen: Screen[object]) -> list[SystemCommand]:
    """A command for each action of a screen, with all its keys, by group."""
    return sorted(_actions(app, screen), key=lambda command: place(command.title.partition(": ")[0]))


def _actions(app: App[None], screen: Screen[object]) -> Iterator[SystemCommand]:
    """Actions with a key that is not a movement in a pane."""
    actions: dict[tuple[DOMNode, str], list[ActiveBinding]] = {}
    for active in screen.active_bindings.values():
        binding = active.binding
        if binding.description and active.enabled and binding.id is not None and not binding.system:
            actions.setdefault((active.node, binding.action), []).append(active)
    for (node, action), found in actions.items():
        keys = " ".join(dict.fromkeys(app.get_key_display(each.binding) for each in found))
        title = f"{feature_of(found[0])}: {found[0].binding.description} ({keys})"
        yield SystemCommand(title, found[0].tooltip, partial(app.run_action, action, node))


def choice_commands(screen: MainScreen, open_files: Callable[[Sequence[str]], object]) -> Iterator[SystemCommand]:
    """Commands for recent filters, columns and recent captures."""
    for text in recent(FILTERS)[:OFFERED]:
        again = partial(screen.post_message, ApplyFilter(text))
        yield SystemCommand(f"Filter: {text}", "Apply this filter again", again)
    for column in screen.list_appearance.offered_columns():
        toggle = partial(screen.list_appearance.toggle_column, column.name)
        yield SystemCommand(f"Column: {column.name}", "Show or hide this column", toggle)
    for paths in recent_captures()[:OFFERED]:
        name, folder = capture_words(paths)
        yield SystemCommand(f"Open: {name}", f"Open this capture in {folder}", partial(open_files, paths))
