"""The bytes of a message: offsets, hex, characters; the selected field bright, its ancestors in fainter shades.

Of TLS records all but the ciphertext has colors, adjacent parts different ones.
"""

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui.exchange_model import DEEPEST_SHADE, ExchangeModel
from tui.record_source import PART_COLORS
from tui.widgets.draggable_border import DraggableBorder
from tui.widgets.scrolling import PlacedScrollBar

OFFSET_WIDTH = 7
"""Cells before the bytes: the first is empty, as what is at the left of the pane may end in a number."""
GROUP = 8


class BytesPane(ScrollView, PlacedScrollBar, DraggableBorder, can_focus=True):
    """A hex view with a cursor."""

    has_left_border = True
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "bytes--offset", "bytes--plain", "bytes--cursor", "bytes--lit", "bytes--selected",
        *(f"bytes--shade{n}" for n in range(DEEPEST_SHADE + 1)), *(f"bytes--part{n}" for n in range(PART_COLORS)),
    }  # fmt: skip
    DEFAULT_CSS = """
    BytesPane > .bytes--lit { background: $notice; color: $warning; text-style: underline bold; }
    BytesPane > .bytes--selected { background: $warning; color: $background; text-style: bold underline; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "move(1)", "Next byte", show=False, id="bytes.right"),
        Binding("left,h", "move(-1)", "Previous byte", show=False, id="bytes.left"),
        Binding("down,j", "line(1)", "Down", show=False, id="bytes.down"),
        Binding("up,k", "line(-1)", "Up", show=False, id="bytes.up"),
        Binding("pagedown,ctrl+d", "page(1)", "Page down", show=False, id="bytes.page_down"),
        Binding("pageup,ctrl+u", "page(-1)", "Page up", show=False, id="bytes.page_up"),
        Binding("g,home", "go(0)", "First", show=False, tooltip="First byte", id="bytes.first"),
        Binding("G,end", "go(-1)", "Last", show=False, tooltip="Last byte", id="bytes.last"),
        Binding("shift+right", "extend(1)", "Select", show=False, tooltip="Select bytes", id="bytes.select_right"),
        Binding("shift+left", "extend(-1)", "Select back", show=False, tooltip="Select bytes", id="bytes.select_left"),
        Binding("shift+down", "extend_line(1)", "Select line", show=False, tooltip="Select bytes",
                id="bytes.select_down"),
        Binding("shift+up", "extend_line(-1)", "Select line back", show=False, tooltip="Select bytes",
                id="bytes.select_up"),
    ]  # fmt: skip
    cursor: reactive[int] = reactive(0, repaint=False)

    class ByteChosen(Message):
        """The cursor moved to the byte at `offset` of `data`, which the pane may not show any more."""

        def __init__(self, pane: "BytesPane", data: bytes, offset: int) -> None:
            super().__init__()
            self.pane = pane
            self.data = data
            self.offset = offset

    class RangeChosen(Message):
        """Bytes of `data` were selected, with the mouse or with shift: they are the model's selection."""

        def __init__(self, data: bytes, selection: range) -> None:
            super().__init__()
            self.data = data
            self.selection = selection

    class Focused(Message):
        """The pane got the focus."""

    _anchor: int | None = None
    """Where the selection began, while the mouse is down or shift extends it."""
    _selecting = False
    """Whether the mouse moved to another byte since it went down."""

    def __init__(self, model: ExchangeModel, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._model = model

    def set_model(self, model: ExchangeModel) -> None:
        """Show the selection of another model."""
        self._model = model
        self.update()

    @property
    def per_line(self) -> int:
        """Bytes per line, as many as fit: 16, 8 or 4. Whether a scroll bar takes some of the width is computed from the
        bytes, and not read from the bar: it appears a frame later, and the cursor would be out of view by then."""
        room = self.content_region
        count = self._most(room.width)
        bar = self.styles.scrollbar_size_vertical
        return count if len(self._data) <= count * room.height else self._most(room.width - bar)

    def _most(self, width: int) -> int:
        return next((count for count in (16, 8) if width >= self._width(count)), 4)

    def _width(self, count: int) -> int:
        return OFFSET_WIDTH + count * 3 + count // GROUP + 1 + count

    @property
    def _data(self) -> bytes:
        source = self._model.source
        return source.data if source is not None else b""

    def update(self) -> None:
        """Another message, source or field was selected: scroll it into view."""
        self._measure()
        self._anchor = None
        first = self._model.first_byte
        if first is not None:
            self.cursor = first
            self._into_view(first)
        else:
            self.cursor = 0
            self.scroll_to(y=0, animate=False, force=True)
        self.refresh()

    def show_at(self, offset: int) -> None:
        """Scroll a byte of the shown source into view."""
        self.cursor = offset
        self._into_view(offset)
        self.refresh()

    def _measure(self) -> None:
        self.virtual_size = Size(self._across, -(-len(self._data) // self.per_line))

    def on_resize(self) -> None:
        self._measure()
        self._into_view(self.cursor)
        self.refresh()

    @property
    def _across(self) -> int:
        """Cells of a line, without the scroll bar's."""
        return self.scrollable_content_region.width

    def render_line(self, y: int) -> Strip:
        """Return one line of the dump."""
        count = self.per_line
        start = (self.scroll_offset.y + y) * count
        data = self._data[start : start + count]
        plain = self.rich_style
        if not data:
            return Strip.blank(self._across, plain)
        styles = [self._style(start + n, shade) for n, shade in enumerate(self._model.shades(start, start + len(data)))]
        segments = [Segment(f" {start:04x}".ljust(OFFSET_WIDTH), self.get_component_rich_style("bytes--offset"))]
        for n, byte in enumerate(data):
            segments.append(Segment(f"{byte:02x}", styles[n]))
            segments.append(Segment("  " if n % GROUP == GROUP - 1 else " ", _between(styles[n : n + 2]) or plain))
        missing = count - len(data)
        gap = missing * 3 + (1 if missing and len(data) <= GROUP < count else 0) + (1 if len(data) % GROUP else 0)
        segments.append(Segment(" " * gap, plain))
        segments += [Segment(chr(byte) if 32 <= byte < 127 else "·", styles[n]) for n, byte in enumerate(data)]
        return Strip(segments).adjust_cell_length(self._across, plain)

    def _style(self, offset: int, shade: int | None) -> Style:
        part = self._model.records.part_color(offset) if self._model.records is not None else None
        name = "bytes--plain" if shade is None else f"bytes--shade{shade}"
        selection = self._model.selection
        selected = selection is not None and offset in selection
        if selected:
            name = "bytes--selected"
        elif self._model.is_lit(offset):
            name = "bytes--lit"
        style = self.get_component_rich_style(name)
        if part is not None and shade != 0 and not selected:
            style += self.get_component_rich_style(f"bytes--part{part}", partial=True)
        if selected and self.app.no_color:
            style += Style(reverse=True, underline=True)
        elif shade == 0 and self.app.no_color:
            style += Style(reverse=True)
        if self.has_focus and offset == self.cursor:
            style += Style(underline=True, bold=True) + self.get_component_rich_style("bytes--cursor", partial=True)
        return style

    def _into_view(self, offset: int) -> None:
        line = offset // self.per_line
        if not self.scroll_offset.y <= line < self.scroll_offset.y + self.size.height:
            self.scroll_to(y=max(0, line - 1), animate=False, force=True)

    def _go(self, offset: int) -> None:
        if self._data:
            self.cursor = max(0, min(offset, len(self._data) - 1))
            self._into_view(self.cursor)
            self._anchor = None
            self.refresh()
            self.post_message(self.ByteChosen(self, self._data, self.cursor))

    def _select_to(self, offset: int) -> None:
        """Select the bytes from the anchor to this one."""
        if self._anchor is None or not self._data:
            return
        self.cursor = max(0, min(offset, len(self._data) - 1))
        low, high = sorted((self._anchor, self.cursor))
        self._model.selection = selection = range(low, high + 1)
        self._into_view(self.cursor)
        self.refresh()
        self.post_message(self.RangeChosen(self._data, selection))

    def action_extend(self, count: int) -> None:
        """With shift: extend the selection, or begin one at the cursor."""
        if self._anchor is None or self._model.selection is None:
            self._anchor = self.cursor
        self._select_to(self.cursor + count)

    def action_extend_line(self, count: int) -> None:
        self.action_extend(count * self.per_line)

    def action_move(self, count: int) -> None:
        self._go(self.cursor + count)

    def action_line(self, count: int) -> None:
        self._go(self.cursor + count * self.per_line)

    def action_page(self, count: int) -> None:
        self._go(self.cursor + count * self.per_line * max(1, self.size.height - 1))

    def action_go(self, offset: int) -> None:
        self._go(offset if offset >= 0 else len(self._data) - 1)

    def offset_at(self, x: int, y: int) -> int | None:
        """Return the byte that is drawn at a place of the pane, in the hex or in the characters."""
        count = self.per_line
        text_at = self._width(count) - count - (count >= GROUP)
        column: int | None = None
        if x >= text_at:
            column = x - text_at
        elif x >= OFFSET_WIDTH:
            column = next((n for n in range(count) if x < OFFSET_WIDTH + (n + 1) * 3 + (n + 1) // GROUP), None)
        offset = None if column is None or column >= count else (self.scroll_offset.y + y) * count + column
        return offset if offset is not None and offset < len(self._data) else None

    def _byte_under(self, event: events.MouseEvent) -> int | None:
        place = event.get_content_offset(self)
        return self.offset_at(place.x, place.y) if place is not None else None

    def _takes(self, event: events.MouseDown) -> bool:
        return super()._takes(event) or self._byte_under(event) is not None

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._anchor, self._selecting = self._byte_under(event), False

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Select bytes while the button is down."""
        offset = self._byte_under(event)
        if (
            event.button
            and self._anchor is not None
            and offset is not None
            and (self._selecting or offset != self._anchor)
        ):
            self._selecting = True
            self._select_to(offset)

    def on_click(self, event: events.Click) -> None:
        offset = self._byte_under(event)
        if offset is not None and not self._selecting:
            self._go(offset)

    def on_focus(self) -> None:
        self.refresh()
        self.post_message(self.Focused())

    def on_blur(self) -> None:
        self.refresh()


def _between(styles: list[Style]) -> Style | None:
    """Return the style of the space between two bytes: that of both, or their background; None at a line's end."""
    if len(styles) < 2 or styles[0].bgcolor != styles[1].bgcolor:
        return None
    return styles[0] if styles[0] == styles[1] else Style(bgcolor=styles[0].bgcolor)
