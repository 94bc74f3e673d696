"""The command palette (ctrl+p): commands in the groups of the help, recent filters and captures, columns, themes.

Textual's provider takes titles for markup; here they are plain text, wherever they come from.
"""

from collections.abc import AsyncIterator

from rich.text import Text
from textual.command import CommandPalette, DiscoveryHit, Hit, Provider
from textual.widgets import OptionList

from dissector.core.text import clean
from dissector.tui.screens.dialog import ResultScreen


class Commands(CommandPalette, ResultScreen[None]):
    """The palette's screen. It runs a command once, however often it is clicked."""

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        if self.app.screen is not self:
            event.stop()
            event.prevent_default()


class Palette(Provider):
    """The commands of the application, found by any of their letters."""

    async def discover(self) -> AsyncIterator[DiscoveryHit | Hit]:
        """Yield all of them while nothing is typed."""
        for title, words, run, shown in self.app.get_system_commands(self.screen):
            if shown:
                yield DiscoveryHit(Text(clean(title)), run, clean(title), _plain(words))

    async def search(self, query: str) -> AsyncIterator[DiscoveryHit | Hit]:
        """Yield those that match what is typed."""
        matcher = self.matcher(query)
        for title, words, run, _ in self.app.get_system_commands(self.screen):
            score = matcher.match(title)
            if score > 0:
                yield Hit(score, Text(clean(title)), run, clean(title), _plain(words))


def _plain(words: str) -> str:
    """Return words that stay words where they are taken for markup."""
    return clean(words).replace("[", "\\[")
