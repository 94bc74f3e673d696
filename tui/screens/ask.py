"""One line to write, over the screen: a file's name, say."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import Input


class Ask(ModalScreen[str | None]):
    """Gives what was written; None where nothing was."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Close", tooltip="Write nothing", id="ask.close")
    ]

    def __init__(self, title: str, given: str = "") -> None:
        super().__init__()
        self._title = title
        self._given = given

    def compose(self) -> ComposeResult:
        line = Input(self._given, id="ask")
        line.border_title = self._title
        yield line

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip() or None)
