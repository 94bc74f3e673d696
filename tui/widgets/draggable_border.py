"""Borders between panes that are dragged with the mouse: Textual has none. They take no cell: the border of the pane is
dragged."""

from textual import events
from textual.message import Message
from textual.widget import Widget


class DraggableBorder(Widget):
    """A pane whose upper border can be dragged, and its left one if it has one."""

    has_left_border = False

    class Dragged(Message):
        """The left border was dragged to a column of the screen, or the upper one to a row. None: to its default."""

        def __init__(self, pane: "DraggableBorder", *, left: bool, at: int | None) -> None:
            super().__init__()
            self.pane = pane
            self.left = left
            self.at = at

    _dragged: bool | None = None
    """Whether the left border is being dragged; None if no border is."""

    def _border_at(self, event: events.MouseEvent) -> bool | None:
        """Return which border is there: the left one (True), the upper one (False), none."""
        if event.y == 0:
            return False
        return True if self.has_left_border and event.x == 0 else None

    def _takes(self, event: events.MouseDown) -> bool:
        """Return whether the pane takes all mouse events until the button is released."""
        return self._border_at(event) is not None

    def post_message(self, message: Message) -> bool:
        """Capture the mouse when a press is posted, and release it when its release is posted, not when they are
        handled: a fast hand moves and releases before that, and its events would go to whatever lies below the mouse.
        """
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
            self.post_message(self.Dragged(self, left=self._dragged, at=int(at)))

    def on_mouse_up(self) -> None:
        self._dragged = None

    def on_click(self, event: events.Click) -> None:
        """A double click restores the default."""
        border = self._border_at(event)
        if border is not None and event.chain > 1:
            self.post_message(self.Dragged(self, left=border, at=None))
