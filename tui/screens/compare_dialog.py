"""The dialog that asks for a capture to compare with."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from dissector.core.text import clean
from tui.recents import recent_captures
from tui.screens.dialog import Dialog
from tui.widgets.options import Options

CAPTURES: Final = ("*.pcap*", "*.cap*")
MOST_OFFERED: Final = 100


class CompareDialog(Dialog[str | None]):
    """Returns the path of a capture, typed or chosen; None if cancelled."""

    DEFAULT_CSS = """
    CompareDialog { align: center middle; }
    #ask { width: 76; max-width: 96%; height: auto; max-height: 80%; border: round $primary; background: $panel; }
    #ask-path { border: none; height: 1; background: $boost; padding: 0 1; }
    #ask-offers { height: auto; max-height: 14; border: none; background: $panel; scrollbar-size: 1 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Close", tooltip="Cancel", id="compare.close"),
        Binding("down", "offers", "Suggestions", show=False, id="compare.offers"),
    ]

    def __init__(self, offers: Sequence[str]) -> None:
        """The paths to suggest."""
        super().__init__()
        self._all = offers
        self._offers = offers
        """Those that contain what was typed."""

    def compose(self) -> ComposeResult:
        with Vertical(id="ask") as box:
            yield Input(placeholder="a path, or part of a name below", id="ask-path")
            yield Options(*map(_option, self._offers), id="ask-offers", markup=False)
        box.border_title = "Compare with capture"

    def on_input_changed(self, event: Input.Changed) -> None:
        part = event.value.strip().lower()
        self._offers = [path for path in self._all if part in path.lower()]
        offers = self.query_one(OptionList)
        offers.clear_options()
        offers.add_options(map(_option, self._offers))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take what was typed, if it is a file or if no suggestion contains it; else the first suggestion."""
        typed = event.value.strip()
        path = str(Path(typed).expanduser())
        if not typed:
            self.dismiss(None)
        elif self._offers and not os.path.isfile(path):  # noqa: PTH113  # no error for odd names
            self.dismiss(self._offers[0])
        else:
            self.dismiss(path)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_id)  # by its path: others may be offered since

    def action_offers(self) -> None:
        self.query_one(OptionList).focus()


def _option(path: str) -> Option:
    """Return an option: the name, and the folder in a fainter color."""
    one = Path(path)
    return Option(Text(clean(one.name)).append(f"  {clean(str(one.parent))}", "dim"), id=path)


def offered(path: str) -> list[str]:
    """Return captures to compare with: those in the same folder, then recent ones."""
    one = Path(path)
    try:
        beside = sorted(str(each) for pattern in CAPTURES for each in one.parent.glob(pattern))
    except OSError:
        beside = []
    lately = [path for paths in recent_captures() for path in paths]
    found = dict.fromkeys((*beside[:MOST_OFFERED], *lately))
    return [each for each in found if Path(each) != one]
