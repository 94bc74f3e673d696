"""What became of rules or of the lines of a baseline in one capture: a list whose lines go to the exchange and its
bytes."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static
from textual.worker import get_current_worker

from tui.labels import with_state
from tui.location_history import Location
from tui.screens.dialog import ResultScreen
from tui.threads import Stopped, call_on_ui
from tui.widgets.key_footer import KeyFooter
from tui.widgets.line_list import LineList, StyledLine, broken_line

Watch = Callable[[int], None]
"""Called with the number of each exchange; raises `Stopped` if the screen is closed."""
Lines = Callable[[bool], Sequence[StyledLine]]
"""The lines: one for what is said several times, or, if true, each of them."""
Judge = Callable[[Watch], tuple[str, Lines]]
"""Reads the capture, in a thread; returns the result in a few words, and the lines."""


class VerdictsScreen(ResultScreen[Location | None]):
    """Returns the location that was opened; None if none was."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Back", tooltip="Back to the exchanges", id="verdicts.back"),
        Binding("question_mark", "app.help", "Help", key_display="?", tooltip="Show the keys", id="verdicts.help"),
        Binding("m", "whole", "All", tooltip="Show every message, or one line for all with the same result",
                id="verdicts.whole"),
    ]  # fmt: skip

    def __init__(self, title: str, judge: Judge, exchanges: int) -> None:
        """`exchanges` is how many there are, for the progress."""
        super().__init__()
        self._title = title
        self._judge = judge
        self._exchanges = exchanges

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield LineList(id="lines")
        yield KeyFooter()

    def on_mount(self) -> None:
        self.query_one(LineList).focus()
        self._draw_title("○ reading")
        self._read()

    def _draw_title(self, state: str) -> None:
        title = Text().append(self._title, "bold")
        self.query_one("#title", Static).update(with_state(title, state, self.app.size.width - 2))

    @work(thread=True, exclusive=True, group="judge")
    def _read(self) -> None:
        worker = get_current_worker()
        reported = 0

        def watch(number: int) -> None:
            nonlocal reported
            if worker.is_cancelled:
                raise Stopped
            share = 100 * number // max(1, self._exchanges)
            if share >= reported + 10:
                reported = share
                call_on_ui(self, self._draw_title, f"○ {share} %")

        try:
            state, lines = self._judge(watch)
        except Stopped:
            return
        call_on_ui(self, self._show, state, lines)

    def _show(self, state: str, lines: Lines) -> None:
        if self.is_mounted:
            self._state, self._lines = state, lines
            self._draw_title(state)
            self._draw_lines()

    def _draw_lines(self) -> None:
        if self._lines is not None:
            lines = self._lines(self._whole)
            self.query_one(LineList).show(lambda width: [part for line in lines for part in broken_line(line, width)])

    def action_whole(self) -> None:
        self._whole = not self._whole
        self._draw_lines()

    def on_resize(self) -> None:
        if self._state:
            self._draw_title(self._state)

    _state = ""
    """The result, once it is there."""
    _lines: Lines | None = None
    _whole = False

    def on_line_list_target_opened(self, event: LineList.TargetOpened) -> None:
        assert isinstance(event.target, Location)
        self.dismiss(event.target)
