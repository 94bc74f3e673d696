"""A list of lines of styled text, some of which can be selected: the widget of overview and timelines.

Lines are made for a width, and again when it changes. Their text must be clean.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Final, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from tui.fitted_text import first_part
from tui.widgets.scrolling import CursorLines

ROLES: Final = ("head", "bar", "bad", "warning", "good", "dim", "name")
"""The roles of text, besides plain: each has a color of the theme."""
LEAST_TEXT: Final = 20
"""Cells for text from which on it continues below its own beginning, and not at `INDENT`."""
INDENT: Final = 10


class StyledLine(NamedTuple):
    """Pieces of text, each with its role or none; the target that Enter opens, None if the line can't be selected."""

    pieces: tuple[tuple[str, str], ...] = ()
    target: object = None
    is_head: bool = False
    """Whether a section begins here."""


def broken_line(line: StyledLine, width: int) -> Iterator[StyledLine]:
    """Yield a line in lines of `width` cells: what does not fit continues below the beginning of its piece. The first
    line alone can be selected."""
    room, used = width - 1, 0
    indent = min(room // 2, INDENT)
    pieces: list[tuple[str, str]] = []
    target, is_head = line.target, line.is_head
    for text, role in line.pieces:
        indent = used if room - used >= LEAST_TEXT else indent
        rest = text
        while cell_len(rest) > room - used and rest.strip():
            is_below = used > indent and room - used < LEAST_TEXT
            first, rest = ("", rest.lstrip()) if is_below else first_part(rest, room - used)
            yield StyledLine((*pieces, (first, role)), target, is_head)
            pieces, used, target, is_head = [(" " * indent, "")], indent, None, False
        pieces.append((rest, role))
        used += cell_len(rest)
    yield StyledLine(tuple(pieces), target, is_head)


Build = Callable[[int], Sequence[StyledLine]]
"""Makes the lines for a width in cells."""


class LineList(CursorLines):
    """Lines, with a cursor on those that can be selected."""

    HEADS = 0
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"lines--{role}" for role in (*ROLES, "cursor")}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "Down", show=False, tooltip="Next line", id="lines.down"),
        Binding("up,k", "move(-1)", "Up", show=False, tooltip="Previous line", id="lines.up"),
        Binding("pagedown,ctrl+d", "page(1)", "Page down", show=False, tooltip="Next page", id="lines.page_down"),
        Binding("pageup,ctrl+u", "page(-1)", "Page up", show=False, tooltip="Previous page", id="lines.page_up"),
        Binding("g,home", "end(-1)", "First", show=False, tooltip="First line", id="lines.first"),
        Binding("G,end", "end(1)", "Last", show=False, tooltip="Last line", id="lines.last"),
        Binding("right_curly_bracket,J", "section(1)", "Next section", show=False, tooltip="Next section",
                id="lines.next_part"),
        Binding("left_curly_bracket,K", "section(-1)", "Previous section", show=False, tooltip="Previous section",
                id="lines.previous_part"),
        Binding("enter", "open", "Open", tooltip="Open what the line refers to", id="lines.open"),
    ]  # fmt: skip

    class TargetOpened(Message):
        """A line was opened."""

        def __init__(self, target: object) -> None:
            super().__init__()
            self.target = target

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._build: Build = lambda _: ()
        self._lines: Sequence[StyledLine] = ()

    def show(self, build: Build, *, restart: bool = False) -> None:
        """Show other lines; with `restart` from the beginning, else the cursor stays on the same target."""
        chosen = self.target
        self._build = build
        self._lay()
        if restart:
            self.cursor = 0
            self.scroll_to(y=0, animate=False, force=True)
        same = next((at for at, line in enumerate(self._lines) if chosen is not None and line.target == chosen), None)
        self.cursor = self._near(self.cursor if restart or same is None else same, 1)

    @property
    def target(self) -> object:
        """The target of the line under the cursor."""
        return self._lines[self.cursor].target if self.cursor < len(self._lines) else None

    @property
    def count(self) -> int:
        return len(self._lines)

    def _lay(self) -> None:
        across = self._across
        self._lines = self._build(across) if across > 0 else ()
        if len(self._lines) > self.size.height and not self.show_vertical_scrollbar and across > 1:
            across -= self.styles.scrollbar_size_vertical  # that of the scroll bar that these lines bring
            self._lines = self._build(across)
        self.virtual_size = Size(across, len(self._lines))
        self.redraw()

    def line_strip(self, number: int, *, chosen: bool) -> Strip:
        line = self._lines[number]
        style = self.rich_style
        chosen = chosen and line.target is not None
        if chosen:
            style += self.get_component_rich_style("lines--cursor")
            style += Style(bold=True, reverse=self.app.no_color)
        segments = [Segment("▸" if chosen else " ", style)]
        room = self._across - 1
        for text, role in line.pieces:
            width = cell_len(text)
            shown = text if width <= room else set_cell_size(text, max(0, room - 1)) + "…" if room > 0 else ""
            own = self.get_component_rich_style(f"lines--{role}", partial=True) if role else Style.null()
            segments.append(Segment(shown, style + own))
            room -= min(room, width)
        return Strip(segments).adjust_cell_length(self._across, style)

    def on_resize(self) -> None:
        self.show(self._build)  # the line under the cursor may have another number

    def _into_view(self) -> None:
        """Scroll the cursor's line into view, with the heading above it if the cursor is on the first line of a
        section."""
        above = self.cursor - 1 if self.cursor and self._lines[self.cursor - 1 : self.cursor] else self.cursor
        top = above if above < len(self._lines) and self._lines[above].target is None else self.cursor
        if top < self.scroll_offset.y:
            self.scroll_to(y=top, animate=False, force=True)
        elif self.size.height and self.cursor >= self.scroll_offset.y + self.size.height:
            self.scroll_to(y=self.cursor - self.size.height + 1, animate=False, force=True)

    def _near(self, at: int, step: int) -> int:
        """Return the line at a place, or the next one that can be selected, or the previous one."""
        ways = (range(max(0, at), len(self._lines)), range(min(at, len(self._lines) - 1), -1, -1))
        for way in ways if step > 0 else ways[::-1]:
            for number in way:
                if self._lines[number].target is not None:
                    return number
        return self.cursor

    def action_move(self, step: int) -> None:
        self.cursor = self._near(self.cursor + step, step)

    def action_page(self, pages: float) -> None:
        step = int(pages)
        self.cursor = self._near(self.cursor + step * max(1, self.size.height - 1), step)

    def action_end(self, step: int) -> None:
        self.cursor = self._near(len(self._lines) - 1 if step > 0 else 0, -step)
        if step < 0:
            self.scroll_to(y=0, animate=False, force=True)

    def action_section(self, step: int) -> None:
        heads = [at for at, line in enumerate(self._lines) if line.is_head]
        here = max((at for at in heads if at <= self.cursor), default=-1)
        found = [at for at in heads if (at > here if step > 0 else at < here)]
        if found:
            head = found[0] if step > 0 else found[-1]
            self.cursor = self._near(head, 1)
            self.scroll_to(y=head, animate=False, force=True)

    def action_open(self) -> None:
        if self.target is not None:
            self.post_message(self.TargetOpened(self.target))

    def on_click(self, event: events.Click) -> None:
        at = self.scroll_offset.y + event.y
        if at < len(self._lines) and self._lines[at].target is not None:
            self.cursor = at
            if event.chain > 1:
                self.action_open()
