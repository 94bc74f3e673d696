"""The sizes of the panes, saved in the state folder as JSON.

It is no error if the file can't be read or written: the panes have their default sizes then.
"""

import json
import math
from contextlib import suppress
from typing import ClassVar, Final, NamedTuple

from textual.binding import Binding
from textual.widget import Widget

from tui.appearance import PaneLayout
from tui.feature import PANES, ScreenFeature
from tui.folders import state_folder, write_file
from tui.messages import SavePreference
from tui.screens.core_screen import CoreScreen
from tui.settings import LAYOUT
from tui.widgets.draggable_border import DraggableBorder

LIST_SHARE: Final = 0.45
"""The list's share of the height of list and lower panes."""
_FILE: Final = "panes.json"


class PaneSizes(NamedTuple):
    """The list's share of the height, and that of the bytes pane of the width; None: its default width. In columns, the
    list's share of the width."""

    list_share: float = LIST_SHARE
    bytes_share: float | None = None
    column_share: float = LIST_SHARE


def load_pane_sizes() -> PaneSizes:
    """Return the saved sizes."""
    try:
        value = json.loads((state_folder() / _FILE).read_bytes())
        height, width = float(value["list_share"]), value.get("bytes_share")
        width, column = None if width is None else float(width), float(value.get("column_share", LIST_SHARE))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return PaneSizes()
    if not all(map(math.isfinite, (height, column, width or 0))):
        return PaneSizes()
    return PaneSizes(_share(height), None if width is None else _share(width), _share(column))


def _share(value: float) -> float:
    return max(0.0, min(1.0, value))


def save_pane_sizes(panes: PaneSizes) -> None:
    """Save sizes for the next start."""
    with suppress(OSError):
        write_file(state_folder() / _FILE, json.dumps(panes._asdict()).encode())


SLIM, NARROW = 76, 130
"""Screen widths below which the bytes pane is narrower, unless the fields leave room."""
COLUMNS_FROM, WIDE_COLUMNS = 150, 240
"""Screen widths from which there is room for three columns, and for 16 bytes in a line beside two others."""
LIST_STEP = 0.15
LEAST_LINES, LEAST_CELLS = 4, 20
"""Of a pane."""
BYTES_WIDTHS = {"slim": 27, "narrow": 43, "wide": 76}
MEASURED: Final = BYTES_WIDTHS["wide"] + 36
"""The screen width from which fields can have room beside lines of 16 bytes."""
STEP = 8


class PanesFeature(ScreenFeature[CoreScreen]):
    """Resizes and maximizes panes."""

    GROUP = PANES

    BINDINGS: ClassVar[list[Binding]] = [
        Binding(
            "backslash", "maximize_pane", "Maximize", key_display="\\", show=False,
            tooltip="Maximize the focused pane, or restore all", id="main.maximize",
        ),
        Binding("plus", "list_room(1)", "More list", key_display="+", show=False, tooltip="Enlarge the list",
                id="main.more_list"),
        Binding("minus", "list_room(-1)", "Less list", key_display="-", show=False, tooltip="Shrink the list",
                id="main.less_list"),
        Binding("less_than_sign", "bytes_room(1)", "More bytes", key_display="<", show=False,
                tooltip="Widen the bytes pane", id="main.more_bytes"),
        Binding("greater_than_sign", "bytes_room(-1)", "Less bytes", key_display=">", show=False,
                tooltip="Narrow the bytes pane", id="main.less_bytes"),
        Binding("vertical_line", "layout", "Layout", key_display="|", show=False, id="main.layout",
                tooltip="List, fields and bytes side by side; again: the list above"),
        Binding("O", "encoding", "Encoding", show=False, id="main.encoding",
                tooltip="Show or hide counts, sizes and empty tagged fields, as they are on the wire"),
    ]  # fmt: skip

    def __init__(self, screen: CoreScreen) -> None:
        super().__init__(screen)
        self._panes = load_pane_sizes()
        self._fields_need_room = False

    def mounted(self) -> None:
        self._draw_layout()

    @property
    def _in_columns(self) -> bool:
        return self.screen.appearance.layout is PaneLayout.COLUMNS and self.app.size.width >= COLUMNS_FROM

    def _draw_layout(self) -> None:
        self.screen.query_one("#panes").set_class(self._in_columns, "columns")
        self.screen.field_tree.has_left_border = self._in_columns
        self._draw_share()
        self._measure_fields()

    def action_layout(self) -> None:
        """Put the panes side by side, or the list above the others again."""
        if self.app.size.width < COLUMNS_FROM:
            self.notify(f"three columns need {COLUMNS_FROM} cells; this terminal has {self.app.size.width}", timeout=4)
            return
        layout = PaneLayout.ROWS if self._in_columns else PaneLayout.COLUMNS
        self.screen.appearance.layout = layout
        self.screen.post_message(SavePreference(LAYOUT, None if layout is PaneLayout.ROWS else layout.value))
        self._draw_layout()

    def on_unmount(self) -> None:
        if self._panes != load_pane_sizes():
            save_pane_sizes(self._panes)

    def action_maximize_pane(self) -> None:
        """Maximize the focused pane, or restore all."""
        panes: list[Widget] = [self.screen.exchange_list, self.screen.field_tree, self.screen.bytes_pane]
        alone = any(pane.has_class("hidden") for pane in panes)
        lower = self.screen.query_one("#lower")
        for pane in panes:
            pane.set_class(not alone and pane is not self.screen.focused, "hidden")
        lower.set_class(not alone and self.screen.focused is self.screen.exchange_list, "hidden")
        self.screen.bytes_pane.styles.width = (
            "1fr" if not alone and self.screen.focused is self.screen.bytes_pane else None
        )
        self._draw_widths()

    def action_encoding(self) -> None:
        """Show the parts of the encoding in the tree, or hide them."""
        shown = not self.screen.field_tree.shows_encoding
        self.screen.field_tree.show_encoding(shown=shown)
        self.notify(f"counts, sizes and empty tagged fields are {'shown' if shown else 'hidden'}", timeout=2)

    def action_list_room(self, step: int) -> None:
        panes = self._panes
        self._give_list((panes.column_share if self._in_columns else panes.list_share) + step * LIST_STEP)

    def _give_list(self, share: float) -> None:
        """Share the height, or in columns the width, between the list and the other panes; each keeps a few cells."""
        if self._in_columns:
            least = LEAST_CELLS / self.app.size.width
            self._panes = self._panes._replace(column_share=max(least, min(1 - 2 * least, share)))
            self._draw_share()
            self._draw_widths()
            return
        least = min(
            0.5,
            LEAST_LINES / max(1, self.screen.exchange_list.size.height + self.screen.query_one("#lower").size.height),
        )
        self._panes = self._panes._replace(list_share=max(least, min(1 - least, share)))
        self._draw_share()

    def _draw_share(self) -> None:
        columns, above, below = (
            self._in_columns,
            self.screen.exchange_list.styles,
            self.screen.query_one("#lower").styles,
        )
        share = self._panes.column_share if columns else self._panes.list_share
        parts, whole = (f"{share:.4f}fr", f"{1 - share:.4f}fr"), ("100%", "100%")
        (above.width, below.width), (above.height, below.height) = (parts, whole) if columns else (whole, parts)

    def on_draggable_border_dragged(self, event: DraggableBorder.Dragged) -> None:
        """Move a border to where it was dragged."""
        width = self.app.size.width
        if event.left and event.pane is self.screen.field_tree:
            self._give_list(LIST_SHARE if event.at is None else event.at / max(1, width))
        elif event.left:
            self._give_bytes(None if event.at is None else width - event.at)
        elif self._in_columns:
            return
        elif event.at is None:
            self._give_list(LIST_SHARE)
        else:
            both = self.screen.exchange_list.size.height + self.screen.query_one("#lower").size.height
            above = (
                self.screen.query_one("#lower").region.y
                - self.screen.exchange_list.region.y
                - self.screen.exchange_list.size.height
            )  # the legend
            self._give_list((event.at - above - self.screen.exchange_list.region.y) / max(1, both))

    def action_bytes_room(self, step: int) -> None:
        self._give_bytes(self._bytes_width() + step * STEP)

    def _give_bytes(self, cells: int | None) -> None:
        """Give the bytes pane a width, kept as a share of the screen's; its default width for None."""
        share = None if cells is None else self._within(cells) / max(1, self.app.size.width)
        self._panes = self._panes._replace(bytes_share=share)
        self._measure_fields()

    def resized(self) -> None:
        self._draw_layout()

    def message_drawn(self) -> None:
        """The fields of another message may need more room."""
        self._give_fields_room()

    def on_field_tree_unfolded(self) -> None:
        self._give_fields_room()

    def on_bytes_pane_focused(self) -> None:
        """Whoever goes to the bytes wants many in a line, if the fields of this message leave room."""
        self._measure_fields()

    def _measure_fields(self) -> None:
        """Measure the fields again: bytes may get room again that fields of another message needed."""
        self._fields_need_room = False
        self._give_fields_room()
        self._draw_widths()

    def _give_fields_room(self) -> None:
        """Narrow the bytes if a line of fields is cut. They stay narrow as other messages are shown: a border that
        moved with each key would be restless."""
        if self._fields_need_room or self.screen.model.untraced is not None or not self._is_measured:
            return
        if not self.screen.field_tree.fits(self.app.size.width - BYTES_WIDTHS["wide"]):
            self._fields_need_room = True
            self._draw_widths()

    @property
    def _is_measured(self) -> bool:
        """Whether the default width depends on the fields."""
        return MEASURED <= self.app.size.width < NARROW and not self._in_columns and self._panes.bytes_share is None

    def _draw_widths(self) -> None:
        if not self.screen.field_tree.has_class("hidden"):
            self.screen.bytes_pane.styles.width = self._bytes_width()

    def _bytes_width(self) -> int:
        """Return the width of the bytes pane on a screen of this size."""
        width, share = self.app.size.width, self._panes.bytes_share
        return self._within(self._usual_width(width) if share is None else round(share * width))

    def _within(self, cells: int) -> int:
        """Return the nearest width of the bytes pane that leaves each pane a few cells, and is none too many for lines
        of 16 bytes."""
        width = self.app.size.width
        room = width - round(self._panes.column_share * width) if self._in_columns else width
        return max(LEAST_CELLS, min(room - LEAST_CELLS, BYTES_WIDTHS["wide"], cells))

    def _usual_width(self, width: int) -> int:
        """Return the default width of the bytes pane: for lines of 16 bytes where there is room for them."""
        if self._in_columns:
            return BYTES_WIDTHS["wide" if width >= WIDE_COLUMNS else "narrow"]
        if width < SLIM:
            return BYTES_WIDTHS["slim"]
        is_narrow = width < MEASURED or (width < NARROW and self._fields_need_room)
        return BYTES_WIDTHS["narrow" if is_narrow else "wide"]
