"""Borders between panes that are dragged with the mouse: Textual has none. They cost no cell: it is the pane's own
border that is dragged.
"""

from typing import ClassVar

from textual import events
from textual.message import Message
from textual.widget import Widget


class DraggableBorder(Widget):
    """A pane whose upper border can be dragged, and its left one where `LEFT` says so."""

    LEFT: ClassVar[bool] = False

    class Dragged(Message):
        """A border is wanted at a column of the screen, for the left one, or a row. None: at its usual place."""

        def __init__(self, *, left: bool, at: int | None) -> None:
            super().__init__()
            self.left = left
            self.at = at

    _dragged: bool | None = None
    """Whether it is the left border that is dragged; None while none is."""

    def _border_at(self, event: events.MouseEvent) -> bool | None:
        """Which border is there: the left one (True), the upper one (False), none."""
        if event.y == 0:
            return False
        return True if self.LEFT and event.x == 0 else None

    def _takes(self, event: events.MouseDown) -> bool:
        """Whether all that the mouse does until the button is up is for this pane."""
        return self._border_at(event) is not None

    def post_message(self, message: Message) -> bool:
        """The mouse is taken when a press is dealt out, and given back with its release, not when the pane comes to
        them: a hand may be faster, and then moves and the release would be dealt to whatever lies below the mouse."""
        if isinstance(message, events.MouseDown) and self._takes(message):
            self.capture_mouse()
        elif isinstance(message, events.MouseUp):
            self.release_mouse()
        return super().post_message(message)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._dragged = self._border_at(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._dragged is not None:
            at = event.screen_x if self._dragged else event.screen_y
            self.post_message(self.Dragged(left=self._dragged, at=int(at)))

    def on_mouse_up(self) -> None:
        self._dragged = None

    def on_click(self, event: events.Click) -> None:
        """Twice gives the usual place back."""
        border = self._border_at(event)
        if border is not None and event.chain > 1:
            self.post_message(self.Dragged(left=border, at=None))
