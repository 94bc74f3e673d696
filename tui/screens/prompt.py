"""A dialog that asks for a line of text."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from tui.screens.dialog import Dialog


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
