"""Screens that return a result: dialogs, among them those that ask for a line of text or offer a short menu."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen, Screen, ScreenResultType
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from tui.widgets.options import Options


class ResultScreen(Screen[ScreenResultType]):
    """Invariant: it returns one result. A second click on a choice arrives before the first one has removed the screen,
    and `dismiss` removes whatever is on top."""

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        if self.app.screen is not self:
            return AwaitComplete()
        return super().dismiss(result)


class Dialog(ModalScreen[ScreenResultType], ResultScreen[ScreenResultType]):
    """One that leaves what is below visible. Textual takes the styles of the first base only."""


class Prompt(Dialog[str | None]):
    """Returns what was typed; None if cancelled."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Cancel", tooltip="Cancel", id="prompt.close"),
    ]

    def __init__(self, title: str, text: str = "") -> None:
        """Both are shown as they are: clean."""
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        line = Input(self._text, id="prompt", select_on_focus=False)
        line.border_title = self._title
        yield line

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)


class Choice(NamedTuple):
    """A choice, and what it is in a few words. Both are shown as they are: clean."""

    name: str
    words: str = ""
    key: str = ""
    """A letter that chooses it at once. In a menu with such letters j and k don't move."""


class Menu(Dialog[int | None]):
    """Returns the index of the choice, from 0; None if cancelled."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Close", tooltip="Cancel", id="menu.close"),
        Binding("j", "down", "Down", show=False, id="menu.down"),
        Binding("k", "up", "Up", show=False, id="menu.up"),
    ]

    def __init__(self, title: str, choices: Sequence[Choice], at: int = 0) -> None:
        super().__init__()
        self._title = title
        self._choices = choices
        self._at = at

    def compose(self) -> ComposeResult:
        width = max((cell_len(choice.name) for choice in self._choices), default=0)
        lines = [
            Text.assemble(
                (f" {c.key}  " if c.key else "", "bold"), (set_cell_size(c.name, width + 2), "bold"), (c.words, "dim")
            )
            for c in self._choices
        ]
        options = Options(*(Option(line) for line in lines), id="menu", markup=False)
        options.border_title = self._title
        yield options

    def on_mount(self) -> None:
        options = self.query_one(OptionList)
        options.highlighted = self._at if self._choices else None
        options.focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_index)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        return action not in ("down", "up") or not any(choice.key for choice in self._choices)

    def on_key(self, event: events.Key) -> None:
        """Choose by the key of a choice; in a menu without such keys, go to the next choice that begins with a letter.
        j and k move, but J and K are letters."""
        chosen = [n for n, choice in enumerate(self._choices) if choice.key and choice.key == event.character]
        if chosen:
            event.stop()
            self.dismiss(chosen[0])
        elif event.is_printable and event.character not in (None, "j", "k") and not any(c.key for c in self._choices):
            self._go_to(event.character.casefold())

    def _go_to(self, letter: str) -> None:
        options = self.query_one(OptionList)
        found = [n for n, choice in enumerate(self._choices) if choice.name.casefold().startswith(letter)]
        if found:
            at = options.highlighted
            options.highlighted = next((n for n in found if at is not None and n > at), found[0])

    def action_down(self) -> None:
        self.query_one(OptionList).action_cursor_down()

    def action_up(self) -> None:
        self.query_one(OptionList).action_cursor_up()
