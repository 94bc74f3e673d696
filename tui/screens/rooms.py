"""How much room each pane has."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from tui.screens.core import CoreScreen

SLIM, NARROW = 76, 130
"""Screen widths below which the bytes get less room."""
LIST_SHARES, LIST_SHARE = (4, 6, 9, 13, 16), 2
BYTES_WIDTHS = {"slim": 26, "narrow": 42, "wide": 75}
STEP = 8


class Rooms(CoreScreen):
    """Panes grow, shrink, stand alone."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "backslash", "maximise_pane", "Maximise", key_display="\\", show=False,
            tooltip="The focused pane alone, and back", id="main.maximise",
        ),
        Binding("plus", "list_room(1)", "More list", key_display="+", show=False, tooltip="More room for the list",
                id="main.more_list"),
        Binding("minus", "list_room(-1)", "Less list", key_display="-", show=False, tooltip="More room for the fields",
                id="main.less_list"),
        Binding("less_than_sign", "bytes_room(1)", "More bytes", key_display="<", show=False,
                tooltip="More room for the bytes", id="main.more_bytes"),
        Binding("greater_than_sign", "bytes_room(-1)", "Less bytes", key_display=">", show=False,
                tooltip="More room for the fields beside the bytes", id="main.less_bytes"),
    ]  # fmt: skip

    _share = LIST_SHARE
    _bytes_extra = 0

    def action_maximise_pane(self) -> None:
        """The focused pane alone, and back."""
        panes: list[Widget] = [self._list, self._fields, self._bytes]
        alone = any(pane.has_class("hidden") for pane in panes)
        lower = self.query_one("#lower")
        for pane in panes:
            pane.set_class(not alone and pane is not self.focused, "hidden")
        lower.set_class(not alone and self.focused is self._list, "hidden")
        self._bytes.styles.width = "1fr" if not alone and self.focused is self._bytes else None
        self._draw_widths()

    def action_list_room(self, step: int) -> None:
        self._share = max(0, min(len(LIST_SHARES) - 1, self._share + step))
        share = LIST_SHARES[self._share]
        self._list.styles.height, self.query_one("#lower").styles.height = f"{share}fr", f"{20 - share}fr"

    def action_bytes_room(self, step: int) -> None:
        self._bytes_extra += step * STEP
        self._draw_widths()

    def on_resize(self) -> None:
        self._draw_widths()
        self._draw_title()

    def _draw_widths(self) -> None:
        width = self.app.size.width
        if self._fields.has_class("hidden"):
            return
        usual = BYTES_WIDTHS["slim" if width < SLIM else "narrow" if width < NARROW else "wide"]
        self._bytes.styles.width = max(20, min(width - 20, usual + self._bytes_extra))
