"""The overview: clients, topics, versions, latencies and errors at a glance.

It counts in a thread and draws a few times a second; closing the screen stops it. The main screen keeps a complete
count.
"""

import time
from typing import ClassVar, Final

from rich.text import Text
from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static
from textual.worker import get_current_worker

from dissector.analysis.stats.statistics_pass import StatisticsPass
from dissector.capture_session import Capture
from dissector.core.text import counted
from tui.overview_connections import connection_ends
from tui.overview_model import PAGES, OverviewSnapshot, PageTab, overview_lines, overview_snapshot, tabs
from tui.screens.snapshot_screen import SnapshotScreen
from tui.threads import call_on_ui
from tui.widgets.key_footer import KeyFooter
from tui.widgets.line_list import LineList

SECONDS_BETWEEN: Final = 0.4
"""Between two drawings at least; and drawing takes a tenth of the time at most."""


class OverviewScreen(SnapshotScreen[str | int | None]):
    """Returns a filter for the opened line, or its row, from 0; None if none was opened."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,o", "dismiss", "Back", tooltip="Back to the exchanges", id="overview.back"),
        Binding("question_mark", "app.help", "Help", key_display="?", tooltip="Show the keys", id="overview.help"),
        Binding("right,l,tab", "page(1)", "Next page", tooltip="Next page", id="overview.next"),
        Binding("left,h,shift+tab", "page(-1)", "Previous page", show=False, tooltip="Previous page",
                id="overview.previous"),
        Binding("s", "stop", "Stop", show=False, tooltip="Stop counting and keep these counts", id="overview.stop"),
    ]  # fmt: skip

    def __init__(self, capture: Capture, picture: OverviewSnapshot | None = None) -> None:
        super().__init__(capture)
        self.picture = picture
        self.is_complete = picture is not None
        self._page = "summary"
        self._state = "● counted" if self.is_complete else "○ counting"

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield Static(id="pages", markup=False)
        yield LineList(id="lines")
        yield KeyFooter()

    def on_mount(self) -> None:
        self.query_one(LineList).focus()
        self._draw()
        if not self.is_complete:
            self.begin()

    def heading(self) -> Text:
        return Text("Overview", "bold").append(f" · {counted(self._count, 'row')}")

    def begin(self) -> None:
        self.is_complete = False
        self.say("○ counting")
        self._count_all()

    @work(thread=True, exclusive=True, group="count")
    def _count_all(self) -> None:
        worker = get_current_worker()
        ends = connection_ends(self._capture)  # first, or its lines would push those with the cursor down
        counting = StatisticsPass(self._capture)
        due = 0.0
        for step in counting.steps():
            if worker.is_cancelled:
                return
            if (now := time.monotonic()) > due:
                picture = overview_snapshot(counting.statistics, ends)
                call_on_ui(self, self._counted, picture, f"○ {100 * step.done // step.total} %")
                due = time.monotonic() + max(SECONDS_BETWEEN, 9 * (time.monotonic() - now))
        if not worker.is_cancelled:
            self.is_complete = True
            call_on_ui(self, self._counted, overview_snapshot(counting.statistics, ends), "● counted")

    def _counted(self, picture: OverviewSnapshot, state: str) -> None:
        if self.is_mounted:
            self.picture, self._state = picture, state
            self._draw()

    def _draw(self, *, restart: bool = False) -> None:
        self.draw_title()
        pages, shown = Text(), self._tabs
        pages.append("…" if shown[0].cells.start else "")
        for tab in shown:
            pages.append(tab.name, "reverse bold" if tab.page == self._page else "")
        pages.append("" if shown[-1].page == list(PAGES)[-1] else "…")
        self.query_one("#pages", Static).update(pages)
        picture, page = self.picture, self._page
        if picture is not None:
            self.query_one(LineList).show(lambda width: overview_lines(picture, page, width), restart=restart)

    def on_resize(self) -> None:
        self._draw()

    def action_page(self, step: int) -> None:
        pages = list(PAGES)
        self._page = pages[(pages.index(self._page) + step) % len(pages)]
        self._draw(restart=True)

    def action_stop(self) -> None:
        if not self.is_complete:
            self.workers.cancel_group(self, "count")
            self.say(f"{self._state.removeprefix('○ ').removesuffix('counting')} counted, stopped".lstrip())

    def on_click(self, event: events.Click) -> None:
        """A click on the name of a page."""
        if event.widget is self.query_one("#pages"):
            for tab in self._tabs:
                if event.get_content_offset_capture(event.widget).x in tab.cells:
                    self._page = tab.page
                    self._draw(restart=True)
                    return

    @property
    def _tabs(self) -> list[PageTab]:
        return tabs(self._page, self.app.size.width - 2)

    def on_line_list_target_opened(self, event: LineList.TargetOpened) -> None:
        assert isinstance(event.target, str | int)
        self.dismiss(event.target)
