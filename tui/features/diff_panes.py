"""The size of the bytes panes on the diff screen."""

from typing import ClassVar, Final

from textual.binding import Binding

from tui.feature import ScreenFeature
from tui.screens.diff_core_screen import DiffCoreScreen
from tui.widgets.draggable_border import DraggableBorder

LEAST_HEIGHT, LEAST_WIDTH = 22, 70
"""Of a screen that shows bytes by default."""
FOOT: Final = 2
"""Lines below the bytes."""
LEAST_LISTS, LEAST_BYTES, LEAST_ACROSS = 10, 3, 20
"""Limits for dragging: lines for the lists, lines for the bytes, cells for the bytes of a side."""


class DiffPanesFeature(ScreenFeature[DiffCoreScreen]):
    """Shows and hides the bytes, and resizes them."""

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("b", "bytes", "Bytes", show=False, tooltip="Show or hide the bytes of both sides", id="diff.bytes"),
    ]
    _shows_bytes: bool | None = None
    """None: by the size of the screen."""

    def resized(self) -> None:
        self._draw_room()

    def _draw_room(self) -> None:
        """Show the bytes if there is room, unless the user decided."""
        size = self.app.size
        room = size.height >= LEAST_HEIGHT and size.width >= LEAST_WIDTH
        self.screen.query_one("#both").display = room if self._shows_bytes is None else self._shows_bytes

    def action_bytes(self) -> None:
        self._shows_bytes = not self.screen.query_one("#both").display
        self._draw_room()

    def on_draggable_border_dragged(self, event: DraggableBorder.Dragged) -> None:
        """Resize the bytes, or those of A and of B."""
        size, both = self.app.size, self.screen.query_one("#both")
        if not event.left:
            below = size.height - FOOT
            both.styles.height = (
                None if event.at is None else below - max(LEAST_LISTS, min(event.at, below - LEAST_BYTES))
            )
        elif event.at is None or event.at > 0:  # the left border of A is that of the screen
            width = None if event.at is None else max(LEAST_ACROSS, min(event.at, size.width - LEAST_ACROSS))
            self.screen.panes[0].styles.width = width
