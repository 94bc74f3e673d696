"""What ctrl+p offers: all that has a key, filters and captures of before, columns, themes.

Textual's own provider takes what it shows for markup; here names are text, whoever gave them.
"""

from collections.abc import AsyncIterator

from rich.text import Text
from textual.command import CommandPalette, DiscoveryHit, Hit, Provider
from textual.widgets import OptionList

from dissector.core.text import clean
from tui.screens.dialog import ResultScreen


class Commands(CommandPalette, ResultScreen[None]):
    """Where one is chosen, and run: once, however often it was clicked."""

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        if self.app.screen is not self:
            event.stop()
            event.prevent_default()


class Palette(Provider):
    """The commands of the application, found by any of their letters."""

    async def discover(self) -> AsyncIterator[DiscoveryHit | Hit]:
        """All of them, as long as nothing is typed."""
        for title, words, run, shown in sorted(self.app.get_system_commands(self.screen), key=lambda each: each.title):
            if shown:
                yield DiscoveryHit(Text(clean(title)), run, clean(title), _plain(words))

    async def search(self, query: str) -> AsyncIterator[DiscoveryHit | Hit]:
        """Those that what is typed fits."""
        matcher = self.matcher(query)
        for title, words, run, _ in self.app.get_system_commands(self.screen):
            score = matcher.match(title)
            if score > 0:
                yield Hit(score, Text(clean(title)), run, clean(title), _plain(words))


def _plain(words: str) -> str:
    """Words that stay words where they are taken for markup."""
    return clean(words).replace("[", "\\[")
