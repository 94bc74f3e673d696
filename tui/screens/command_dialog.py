"""The line at the bottom of the screen in which a command is typed; completions above it."""

from collections.abc import Callable
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from dissector.core.text import clean
from tui.screens.dialog import Dialog
from tui.threads import call_on_ui
from tui.widgets.filter_bar import MOST_OFFERED, Offer
from tui.widgets.options import Options


class CommandDialog(Dialog[str | None]):
    """Returns what was typed; None if cancelled. `complete` runs in a thread."""

    DEFAULT_CSS = """
    CommandDialog { align: left bottom; background: transparent; }
    CommandDialog Vertical { height: auto; width: 100%; }
    #command-offers {
      width: auto; min-width: 20; max-width: 100%; height: auto; max-height: 12; background: $panel; border: none;
      scrollbar-size: 1 1; text-wrap: nowrap; text-overflow: ellipsis; display: none;
    }
    #command-offers.shown { display: block; }
    #command-line { height: 1; background: $boost; }
    #command-sign { width: 2; color: $accent; text-style: bold; }
    #command { border: none; background: $boost; padding: 0; height: 1; width: 1fr; }
    #command-error { width: auto; color: $warning; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Close", tooltip="Close the completions, then the line", id="command.close"),
        Binding("tab", "take", "Complete", priority=True, tooltip="Take the completion", id="command.complete"),
        Binding("down", "offer(1)", "Next completion", show=False, tooltip="Next completion", id="command.down"),
        Binding("up", "offer(-1)", "Previous completion", show=False, tooltip="Previous completion", id="command.up"),
    ]

    def __init__(self, complete: Callable[[str, int], list[Offer]], text: str = "", error: str = "") -> None:
        """`error` is what was wrong with the text."""
        super().__init__()
        self._complete = complete
        self._text = text
        self._error = error
        self._offers: list[Offer] = []
        self._chosen = False
        """Whether the user chose a completion: then Enter takes it."""

    def compose(self) -> ComposeResult:
        with Vertical():
            offers = Options(id="command-offers", compact=True, markup=False)
            offers.can_focus = False
            yield offers
            with Horizontal(id="command-line"):
                yield Static(" :", id="command-sign", markup=False)
                yield Input(self._text, id="command", compact=True, select_on_focus=False)
                yield Static(clean(self._error) + " " if self._error else "", id="command-error", markup=False)

    @property
    def _input(self) -> Input:
        return self.query_one("#command", Input)

    @property
    def _list(self) -> OptionList:
        return self.query_one("#command-offers", OptionList)

    def on_mount(self) -> None:
        self._input.focus()
        self._input.cursor_position = len(self._text)
        self._find(self._text, len(self._text))

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.value != self._text:
            self._text = event.value
            self.query_one("#command-error", Static).update("")
        self._find(event.value, self._input.cursor_position)

    @work(thread=True, exclusive=True, group="complete")
    def _find(self, text: str, cursor: int) -> None:
        offers = [each for each in self._complete(text, cursor) if text[each.start : each.end] != each.text.rstrip()]
        call_on_ui(self, self._offer, text, offers[:MOST_OFFERED])

    def _offer(self, text: str, offers: list[Offer]) -> None:
        if not self.is_mounted or self._input.value != text:
            return
        self._show(offers)

    def _show(self, offers: list[Offer]) -> None:
        self._offers, self._chosen = offers, False
        options = self._list
        options.clear_options()
        width = max((cell_len(clean(offer.text)) for offer in offers), default=0)
        options.add_options(
            Option(
                Text.assemble((" " + set_cell_size(clean(offer.text), width + 2), "bold"), (clean(offer.words), "dim"))
            )
            for offer in offers
        )
        options.set_class(bool(offers), "shown")
        options.highlighted = 0 if offers else None

    def action_leave(self) -> None:
        if self._chosen:
            self._show([])
        else:
            self.dismiss(None)

    def action_offer(self, step: int) -> None:
        if self._offers:
            self._list.action_cursor_down() if step > 0 else self._list.action_cursor_up()
            self._chosen = True

    def action_take(self) -> None:
        self._take(self._list.highlighted)

    def _take(self, number: int | None) -> None:
        if number is not None and number < len(self._offers):
            self._chosen = False
            self._offers[number].put_into(self._input)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option in event.option_list.options:
            self._take(event.option_index)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if self._chosen:
            self._take(self._list.highlighted)
        else:
            self.dismiss(event.value)
