"""Both sides of a connection as text: read on as the user scrolls, searched, written to a file.

Invariants: a message is decoded in a thread, when the user comes near it or searches it; lines are only added at the
end.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static
from textual.worker import get_current_worker

from dissector.capture_session import Capture
from dissector.core.text import clean, counted
from tui.connection_text import SIDES, ConnectionText, TextLine, folded
from tui.location_history import Location
from tui.screens.dialog import Prompt
from tui.screens.snapshot_screen import SnapshotScreen
from tui.screens.write_dialog import WriteDialog
from tui.threads import call_on_ui
from tui.widgets.key_footer import KeyFooter
from tui.widgets.line_list import LineList, StyledLine

AHEAD: Final = 400
"""Lines that are made before the user comes to them."""
MESSAGES_AT_ONCE: Final = 32
MOST_LINES: Final = 500_000
"""Lines that are kept; export writes all."""
LOOK_SECONDS: Final = 0.1
ROLES: Final = {"request": "bar", "response": "good"}


class Target(NamedTuple):
    """What a line opens; `at` makes it different from those of all other lines."""

    at: int
    place: Location
    folds: bool = False
    """Whether it stands for lines after `at` that are not shown."""


class FollowScreen(SnapshotScreen[Location | None]):
    """Returns the field that was opened; None if none was."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,V", "dismiss", "Back", tooltip="Back to the exchanges", id="follow.back"),
        Binding("question_mark", "app.help", "Help", key_display="?", tooltip="Show the keys", id="follow.help"),
        Binding("ctrl+f,slash", "search", "Find", key_display="/", tooltip="Find text in both sides",
                id="follow.search"),
        Binding("n", "hit(1)", "Next", show=False, tooltip="Next hit", id="follow.next_hit"),
        Binding("N", "hit(-1)", "Previous", show=False, tooltip="Previous hit", id="follow.previous_hit"),
        Binding("s", "side", "Side", tooltip="Show both sides, the client's, or the broker's", id="follow.side"),
        Binding("m", "whole", "All", tooltip="Show all elements of long arrays, or the first ones", id="follow.whole"),
        Binding("x", "export", "Export", tooltip="Write the text of the whole connection to a file",
                id="follow.export"),
    ]  # fmt: skip

    def __init__(self, capture: Capture, connection: int, number: int) -> None:
        """`number` is the row to begin at, from 0."""
        super().__init__(capture)
        self._connection = connection
        self._number = number
        self._text: ConnectionText | None = None
        self._made = 0
        """Messages that are lines."""
        self._lines: list[TextLine] = []
        self._shown: list[StyledLine] = []
        self._wanted = AHEAD
        self._sides: tuple[str, ...] = SIDES
        self._word = ""
        self._whole = False

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield LineList(id="lines")
        yield KeyFooter()

    @property
    def _list(self) -> LineList:
        return self.query_one(LineList)

    def on_mount(self) -> None:
        self._list.focus()
        self.begin()
        self.set_interval(LOOK_SECONDS, self._look)

    def heading(self) -> Text:
        client, server = self._capture.connections.ends(self._connection)
        title = Text(f"C{self._connection}", "bold").append(clean(f" · {client} → {server}"))
        if self._text is not None:
            title.append(f" · {counted(len(self._text), 'message')}")
        return title.append("" if self._sides == SIDES else f" · {self._sides[0]}s only")

    def begin(self) -> None:
        self._made, self._lines, self._shown, self._wanted = 0, [], [], AHEAD
        self._list.show(lambda _: self._shown, restart=True)
        self.say("○ reading")
        self._read(restart=True)

    @work(thread=True, exclusive=True, group="read")
    def _read(self, *, restart: bool = False, word: str = "") -> None:
        """Make lines of messages until there are enough; with a `word` until it is found."""
        worker = get_current_worker()
        if restart or self._text is None:
            self._text = ConnectionText(self._capture, self._connection)
            self._wanted = max(self._wanted, AHEAD)
        text, at, count = self._text, self._made, len(self._lines)
        until = text.index_of(self._number) + 1 if restart else 0
        while at < len(text) and count < MOST_LINES and (count < self._wanted or at < until or word):
            found: list[TextLine] = []
            for number in range(at, min(at + MESSAGES_AT_ONCE, len(text))):
                if worker.is_cancelled:
                    return
                found += text.message(number)
                at = number + 1
            count += len(found)
            if word and any(word in line.text.casefold() for line in found):
                word = ""
                call_on_ui(self, self._add, found, at)
                call_on_ui(self, self.action_hit, 1)
                return
            call_on_ui(self, self._add, found, at)
        if word:
            call_on_ui(self, self.notify, f"no more {clean(word)!r}", timeout=2, markup=False)
        if restart:
            call_on_ui(self, self._go_to_row)

    def _add(self, lines: list[TextLine], made: int) -> None:
        if not self.is_mounted:
            return
        first = len(self._lines)
        self._lines += lines
        self._shown += self._styled(lines, first)
        self._made = made
        self._list.show(lambda _: self._shown)
        total = len(self._text or ())
        self.say("● all read" if made == total else f"○ {made:,} of {total:,} read")

    def _styled(self, lines: list[TextLine], first: int) -> Iterator[StyledLine]:
        """Lines of whole messages; `first` is the place of the first one."""
        found = ((at, line, False) for at, line in enumerate(lines)) if self._whole else folded(lines)
        for at, line, folds in found:
            if line.side in self._sides:
                role = ROLES[line.side] if line.is_head else "bad" if line.text.startswith("  ! ") else "name"
                role = "dim" if folds else role
                target = Target(first + at, Location(line.number, line.side, line.path), folds)
                yield StyledLine(((line.text, role),), target, is_head=line.is_head)

    def _look(self) -> None:
        """Read on if the user comes near the end of what is read."""
        lines = self._list
        seen = max(lines.cursor, lines.scroll_offset.y + lines.size.height) + AHEAD // 2
        busy = any(worker.group == "read" and not worker.is_finished for worker in self.workers)
        if not busy and self._text is not None and self._made < len(self._text) and seen > len(self._shown):
            self._wanted = len(self._lines) + AHEAD
            self._read()

    def _go_to_row(self) -> None:
        """Put the cursor on the row that the user came from."""
        at = next((n for n, line in enumerate(self._shown) if self._place(line).number >= self._number), 0)
        self._list.cursor = at

    def _place(self, line: StyledLine) -> Location:
        assert isinstance(line.target, Target)
        return line.target.place

    def action_side(self) -> None:
        """Show the next side, or both."""
        ways: tuple[tuple[str, ...], ...] = (SIDES, SIDES[:1], SIDES[1:])
        self._sides = ways[(ways.index(self._sides) + 1) % len(ways)]
        self._draw_lines(restart=True)
        self.draw_title()

    def _draw_lines(self, *, restart: bool = False) -> None:
        self._shown = [*self._styled(self._lines, 0)]
        self._list.show(lambda _: self._shown, restart=restart)

    def action_whole(self) -> None:
        """Show all elements of long arrays, or only the first ones."""
        at = self._line
        self._whole = not self._whole
        self._draw_lines()
        self._go_to_line(at)

    @property
    def _line(self) -> int:
        """The place of the line under the cursor among all lines."""
        target = self._list.target
        return target.at if isinstance(target, Target) else 0

    def _go_to_line(self, at: int) -> None:
        """Put the cursor on the last line that is shown up to a place."""
        places = [line.target.at for line in self._shown if isinstance(line.target, Target)]
        self._list.cursor = max(0, bisect_right(places, at) - 1)

    def action_search(self) -> None:
        def begin(typed: str | None) -> None:
            if typed:
                self._word = typed.casefold()
                self.action_hit(1)

        self.app.push_screen(Prompt("Find", self._word), begin)

    def action_hit(self, step: int) -> None:
        """Go to the next line with the word; read on to find it."""
        if not self._word:
            self.action_search()
            return
        here = self._line
        ahead = range(here + 1, len(self._lines)) if step > 0 else range(here - 1, -1, -1)
        found = next((at for at in ahead if self._has_word(self._lines[at])), None)
        if found is not None:
            self._go_to_line(found)
            if self._line != found:  # it is folded
                self._whole = True
                self._draw_lines()
                self._go_to_line(found)
        elif step > 0 and self._text is not None and self._made < len(self._text):
            self._read(word=self._word)
        else:
            words = f"no {'more' if step > 0 else 'earlier'} {clean(self._word)!r}"
            self.notify(words, timeout=2, markup=False)

    def _has_word(self, line: TextLine) -> bool:
        return line.side in self._sides and self._word in line.text.casefold()

    @work(group="export", exclusive=True)
    async def action_export(self) -> None:
        name = f"connection-{self._connection}.txt"
        given = await self.app.push_screen_wait(Prompt("Write the text of the connection to", name))
        if given is None or not given.strip():
            return
        text = ConnectionText(self._capture, self._connection)

        def pieces(_report: Callable[[str], None]) -> Iterator[bytes]:
            return (f"{line}\n".encode() for line in text.text())

        outcome = await self.app.push_screen_wait(WriteDialog(Path(given.strip()), pieces))
        self.notify(outcome or "stopped: nothing written", markup=False, timeout=8)

    def on_line_list_target_opened(self, event: LineList.TargetOpened) -> None:
        if isinstance(event.target, Target) and event.target.folds:
            self.action_whole()
        elif isinstance(event.target, Target):
            self.dismiss(event.target.place)
