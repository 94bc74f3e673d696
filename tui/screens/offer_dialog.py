"""A dialog that offers things by name: what is typed narrows them, Enter takes the first."""

from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from tui.screens.dialog import Dialog
from tui.widgets.options import Options

MOST_SHOWN: Final = 500
"""Offers that are listed at once; what is typed finds the others."""


class DialogOffer(NamedTuple):
    """What can be chosen. `name` and `words`, in a fainter color, are shown as they are: clean."""

    id: str
    """What the dialog returns; no two offers have the same."""
    name: str
    words: str
    found_by: str
    """What a part of is typed to find it."""


class OfferDialog(Dialog[str | None]):
    """Returns the id of the offer that was chosen; None if cancelled."""

    DEFAULT_CSS = """
    OfferDialog { align: center middle; }
    #ask { width: 76; max-width: 96%; height: auto; max-height: 80%; border: round $primary; background: $panel; }
    #ask-path { border: none; height: 1; background: $boost; padding: 0 1; }
    #ask-offers { height: auto; max-height: 14; border: none; background: $panel; scrollbar-size: 1 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Close", tooltip="Cancel", id="compare.close"),
        Binding("down", "offers", "Suggestions", show=False, id="compare.offers"),
    ]

    def __init__(self, title: str, hint: str, offers: Sequence[DialogOffer]) -> None:
        """`hint` says what can be typed. Both are shown as they are: clean."""
        super().__init__()
        self.heading = title
        self._hint = hint
        self._all = offers
        self.offers = offers
        """Those that contain what was typed."""
        self._typed = ""

    def compose(self) -> ComposeResult:
        with Vertical(id="ask") as box:
            yield Input(placeholder=self._hint, id="ask-path")
            yield Options(*map(_option, self.offers[:MOST_SHOWN]), id="ask-offers", markup=False)
        box.border_title = Text(self.heading)

    def offer(self, offers: Sequence[DialogOffer]) -> None:
        """Offer other things."""
        self._all = offers
        self._narrow()

    def _narrow(self) -> None:
        self.offers = [each for each in self._all if self._typed in each.found_by.lower()]
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(map(_option, self.offers[:MOST_SHOWN]))

    def on_input_changed(self, event: Input.Changed) -> None:
        self._typed = event.value.strip().lower()
        self._narrow()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.submit(event.value.strip())

    def submit(self, typed: str) -> None:
        """Take the first offer that contains what was typed, if there is one."""
        if self.offers:
            self.dismiss(self.offers[0].id)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_id)  # by its id: others may be offered since

    def action_offers(self) -> None:
        self.query_one(OptionList).focus()


def _option(offer: DialogOffer) -> Option:
    return Option(Text(offer.name).append(f"  {offer.words}", "dim"), id=offer.id)
