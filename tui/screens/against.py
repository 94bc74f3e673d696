"""This capture against another one: asks for it, and opens the diff screen."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList

from dissector.text import clean
from tui.messages import CompareWith
from tui.recents import recent_captures
from tui.screens.core import CoreScreen

CAPTURES: Final = ("*.pcap*", "*.cap*")
MOST_OFFERED: Final = 100


class AskCapture(ModalScreen[str | None]):
    """Gives the path of a capture, typed or chosen; None where the user left."""

    DEFAULT_CSS = """
    AskCapture { align: center middle; background: $background 60%; }
    #ask { width: 76; max-width: 96%; height: auto; max-height: 80%; border: round $primary; background: $panel; }
    #ask-path { border: none; height: 1; background: $boost; padding: 0 1; }
    #ask-offers { height: auto; max-height: 14; border: none; background: $panel; scrollbar-size: 1 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Close", tooltip="Compare with nothing", id="ask.close"),
        Binding("down", "offers", "Offers", show=False, id="ask.offers"),
    ]

    def __init__(self, offers: Sequence[str]) -> None:
        super().__init__()
        self._offers = offers

    def compose(self) -> ComposeResult:
        with Vertical(id="ask") as box:
            yield Input(placeholder="a path, or one of these", id="ask-path")
            yield OptionList(*(clean(path) for path in self._offers), id="ask-offers", markup=False)
        box.border_title = "Compare with the capture"

    def on_input_submitted(self, event: Input.Submitted) -> None:
        path = event.value.strip()
        self.dismiss(str(Path(path).expanduser()) if path else None)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._offers[event.option_index])

    def action_offers(self) -> None:
        self.query_one(OptionList).focus()


class Against(CoreScreen):
    """Compares the capture with another one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "compare", "Diff", tooltip="Compare with another capture", id="main.diff"),
    ]

    def action_compare(self) -> None:
        if self.capture.is_read:
            self.app.push_screen(AskCapture(offered(self.capture.names[0])), self._compare)
        else:
            self.notify("the capture is still being read", timeout=2)

    def _compare(self, path: str | None) -> None:
        if path is not None:
            self.post_message(CompareWith(self.capture, path))


def offered(path: str) -> list[str]:
    """Captures that one may be compared with: those beside it, then those that were opened lately."""
    one = Path(path)
    try:
        beside = sorted(str(each) for pattern in CAPTURES for each in one.parent.glob(pattern))
    except OSError:
        beside = []
    lately = [path for paths in recent_captures() for path in paths]
    found = dict.fromkeys((*beside[:MOST_OFFERED], *lately))
    return [each for each in found if Path(each) != one]
