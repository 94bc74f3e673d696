"""A line that the user is asked for, over the screen."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from tui.screens.dialog import Dialog


class Prompt(Dialog[str | None]):
    """Gives what was typed; None where the user went away."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Leave", tooltip="Change nothing", id="asking.close"),
    ]

    def __init__(self, title: str, text: str = "") -> None:
        """Both are shown as they are: clean."""
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        line = Input(self._text, id="asked", select_on_focus=False)
        line.border_title = self._title
        yield line

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)
