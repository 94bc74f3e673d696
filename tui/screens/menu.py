"""A few things to choose from, each with a key of its own: chosen by that key, by arrows and enter, or by a click."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import OptionList

from dissector.text import clean


class Entry(NamedTuple):
    """One thing to choose: its key, what it is, and what it would be now."""

    key: str
    words: str
    sample: str = ""


class MenuScreen(ModalScreen[int | None]):
    """Gives the place of what was chosen among the entries; None where nothing was."""

    DEFAULT_CSS = """
    MenuScreen { align: center middle; background: $background 60%; }
    #menu { width: auto; min-width: 40; max-width: 90%; height: auto; max-height: 90%; background: $panel;
            border: round $primary; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "Close", id="menu.close")]

    def __init__(self, title: str, entries: Sequence[Entry]) -> None:
        super().__init__()
        self._title = title
        self._entries = entries

    def compose(self) -> ComposeResult:
        lines = []
        wide = max((len(clean(entry.words)) for entry in self._entries), default=0)
        for entry in self._entries:
            line = Text(f" {entry.key}  ", "bold").append(clean(entry.words).ljust(wide), "not bold")
            lines.append(line.append(f"  {clean(entry.sample)}", "dim not bold"))
        menu = OptionList(*lines, id="menu", markup=False)
        menu.border_title = clean(self._title).replace("[", "\\[")
        yield menu

    def on_key(self, event: events.Key) -> None:
        chosen = next((n for n, entry in enumerate(self._entries) if entry.key == event.character), None)
        if chosen is not None:
            event.stop()
            self.dismiss(chosen)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_index)
