"""A line of a dialog with one of several choices, which keys and the mouse change in place."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget

LABEL_WIDTH = 10
NameAndWords = tuple[str, str]
"""A choice, and what it is in a few words. Both are shown as they are: clean."""


class ChoiceLine(Widget, can_focus=True):
    """Shows a label and the choice. Left and right go round the choices, a letter goes to the next that begins with it,
    a click to the next one."""

    DEFAULT_CSS = """
    ChoiceLine { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l,space", "step(1)", "Next choice", show=False, id="choice.next"),
        Binding("left,h", "step(-1)", "Previous choice", show=False, id="choice.previous"),
    ]

    class Changed(Message):
        """Another choice was made."""

        def __init__(self, line: "ChoiceLine") -> None:
            super().__init__()
            self.line = line

    def __init__(self, label: str, choices: Sequence[NameAndWords], *, id: str) -> None:
        super().__init__(id=id)
        self._label = label
        self.choices = choices
        self.at = 0
        """The index of the choice, from 0."""

    def offer(self, choices: Sequence[NameAndWords], at: int) -> None:
        """Offer other choices, one of them chosen; that is no change of the user's."""
        self.choices, self.at = choices, at
        self.refresh()

    def render(self) -> Text:
        if not self.choices:
            return Text(self._label)
        name, words = self.choices[self.at]
        arrows = ("‹ ", " ›") if len(self.choices) > 1 else ("  ", "  ")
        return Text.assemble(
            (self._label.ljust(LABEL_WIDTH), "dim"), arrows[0], (name, "bold"), arrows[1],
            (f"  {words}" if words else "", "dim"),
        )  # fmt: skip

    def action_step(self, step: int) -> None:
        if len(self.choices) > 1:
            self._choose((self.at + step) % len(self.choices))

    def _choose(self, at: int) -> None:
        self.at = at
        self.refresh()
        self.post_message(self.Changed(self))

    def on_click(self) -> None:
        self.action_step(1)

    def on_key(self, event: events.Key) -> None:
        if not event.is_printable or event.character in (None, " ", "h", "j", "k", "l"):
            return
        letter = event.character.casefold()
        later = [*range(self.at + 1, len(self.choices)), *range(self.at)]
        found = next((n for n in later if self.choices[n][0].casefold().startswith(letter)), None)
        if found is not None:
            event.stop()
            self._choose(found)
