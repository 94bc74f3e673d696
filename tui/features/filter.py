"""The filter of the list: typed in its bar, matched in a thread; rows appear as they are found.

While the capture is read, or is live, the filter continues with new rows, and matches rows again whose response came
since. When rows get their final order all are matched again, and what is shown stays until that is done.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from rich.text import Text
from textual.binding import Binding
from textual.worker import Worker, get_current_worker

from dissector.core.arrays import Int64
from dissector.core.text import clean, counted
from tui.command_line import LineCommand
from tui.feature import FIND, ScreenFeature, work
from tui.messages import ApplyFilter
from tui.recents import FILTERS, recent, remember
from tui.screens.core_screen import CoreScreen
from tui.screens.dialog import Choice, Menu
from tui.threads import Pace, call_on_ui
from tui.time_format import TimeFormat
from tui.widgets.filter_bar import FilterBar, Offer

if TYPE_CHECKING:  # the engine takes a tenth of a second to import: only for those who filter
    from dissector.filter import Filter

REPORT_SECONDS: Final = 0.1
MOST_PENDING: Final = 10_000
"""Pending rows that are matched again; the newest."""
REMEMBERED: Final = 4
"""Filters whose rows are remembered, so that they are shown at once when a filter comes back."""
MOST_REMEMBERED: Final = 1 << 20
"""Rows that are remembered of one of them."""


@dataclass
class FilterRun:
    """A filter, and how far it is."""

    filter: "Filter"
    upto: int = 0
    """Rows before this one are matched."""
    total: int = 0
    working: bool = False
    stopped: bool = False
    """By the user: it does not continue with new rows."""
    pending: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    """Rows that were pending when they were matched."""

    def state(self, shown: int, count: int) -> Text:
        """Return the progress."""
        counts = f"{shown:,} of {count:,}"
        share = f"{100 * self.upto // max(1, self.total)} %"
        if self.working:
            return Text(f"○ {share} · {counts}", "bold")
        return Text(f"■ stopped at {share} · {counts}" if self.stopped else f"✔ {counts}", "bold")


class FilterFeature(ScreenFeature[CoreScreen]):
    """Type, apply, stop, clear; recent filters; the connection of a row."""

    GROUP = FIND

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("slash", "filter", "Filter", key_display="/", tooltip="Show only exchanges that match a filter",
                id="main.filter"),
        Binding("ctrl+r", "recent_filters", "Recent filters", show=False, tooltip="Choose a recent filter",
                id="main.recent_filters"),
        Binding("u", "filter_back", "Filter back", show=False, id="main.filter_back",
                tooltip="Bring back the removed filter; again: remove it"),
        Binding("f", "connection_only", "Connection only", show=False,
                tooltip="Show only this connection; again: go back",
                id="main.connection_only"),
    ]  # fmt: skip

    first = ""
    """The filter to begin with."""
    when_matched: Callable[[], object] | None = None
    """Called once, when a filter has matched all rows."""
    _run: FilterRun | None = None
    _removed = ""
    """The filter that was removed last."""
    _filter_before = ""
    _connection_filter = ""
    """The filter for the connection that `action_connection_only` applied."""
    _remembered: Mapping[str, Int64] = {}
    """The rows of filters, the newest last. Of a file that was read: its rows stay as they are."""

    @property
    def text(self) -> str:
        """The filter that is applied; empty if none is."""
        return self._run.filter.text if self._run is not None else ""

    def commands(self) -> Iterator[LineCommand]:
        yield LineCommand("filter", "show only exchanges that match", self._filter_command, "FILTER", self._completions)

    def _filter_command(self, text: str) -> None:
        if text:
            self.apply(text)
        else:
            self.action_filter()

    def _completions(self, text: str, cursor: int) -> Iterator[Offer]:
        from dissector.filter import complete

        if not text:
            yield from (Offer(0, 0, each, "recent") for each in recent(FILTERS)[:5])
        yield from (Offer(*each) for each in complete(text, cursor))

    def mounted(self) -> None:
        if self.first:
            self.screen.call_after_refresh(self.apply, self.first)

    @property
    def _bar(self) -> FilterBar:
        return self.screen.query_one(FilterBar)

    def action_filter(self) -> None:
        """Edit the filter."""
        self.prepare(self.text)

    def prepare(self, text: str) -> None:
        """Put a filter into the bar for editing."""
        self._bar.prepare(text)

    def on_apply_filter(self, event: ApplyFilter) -> None:
        if event.prepare:
            self.prepare(event.text)
            return
        if self.screen.place is not None:  # another row may be selected after it
            self.screen.history.push(self.screen.place)
        self.apply(event.text)

    def on_filter_bar_applied(self, event: FilterBar.Applied) -> None:
        self.apply(event.text)

    def apply(self, text: str) -> None:
        """Show the rows that match; all rows for an empty text. An invalid filter stays in the bar for correction."""
        from dissector.filter import FilterError, parse

        try:
            wanted = parse(text, self.screen.capture.opener) if text else None
        except FilterError as error:
            self._bar.correct(text, error)
            return
        self.stop_work("filter")
        self._run = None if wanted is None else FilterRun(wanted)
        known = self._remembered.get(text)
        self.screen.view.keep(None if wanted is None else np.zeros(0, np.int64) if known is None else known)
        self._bar.rest(text)
        if self._bar.is_open or self.screen.focused is None:
            self.screen.exchange_list.focus()
        self.screen.exchange_list.update_rows()
        self.screen.draw_title()
        if self._run is not None:
            remember(FILTERS, text)
            if known is None:
                self._start_matching(self._run)
            else:
                self._run.upto = self._run.total = len(self.screen.capture)
                self._show_found()

    def on_filter_bar_cancelled(self) -> None:
        self._bar.rest(self.text)
        self._draw_filter()
        self.screen.exchange_list.focus()

    def stop(self) -> bool:
        """Stop the filter that runs; its rows so far stay."""
        run = self._run
        if run is None or not run.working:
            return False
        self.stop_work("filter")
        run.working, run.stopped = False, True
        self._draw_filter()
        return True

    def clear(self) -> bool:
        """Remove the filter: show all rows. It is kept for `action_filter_back`, and the user is told the key."""
        if self._run is None:
            return False
        self._removed = self._run.filter.text
        self.apply("")
        self.notify(f"filter removed; {self.screen.key_of('filter_back')} brings it back", timeout=4)
        return True

    def action_filter_back(self) -> None:
        """Bring back the filter that was removed, or remove it again."""
        if self._run is not None:
            self.clear()
        elif self._removed:
            self.apply(self._removed)
        else:
            self.notify("no filter was removed; / adds one", timeout=2)

    def action_recent_filters(self) -> None:
        filters = recent(FILTERS)
        if not filters:
            self.notify("no recent filters", timeout=2)
            return

        def chosen(number: int | None) -> None:
            if number is not None:
                self.apply(filters[number])

        self.app.push_screen(Menu("Recent filters", [Choice(clean(text)) for text in filters]), chosen)

    def action_connection_only(self) -> None:
        """Show only this row's connection, or go back."""
        now = self.text
        if now and now == self._connection_filter:
            self.apply(self._filter_before)
        elif len(self.screen.view):
            self._filter_before = now
            self._connection_filter = f"conn == {self.screen.capture.rows.connection_of(self.screen.number)}"
            self.apply(self._connection_filter)
            if self._run is not None:
                key = self.screen.key_of("follow_text")
                self.notify(f"{key} shows both sides as text; f again shows all", timeout=3)

    # While matching.

    @work(group="filter", thread=True, exclusive=True)
    def _match_rows(self, run: FilterRun, *, restart: bool = False) -> None:
        """Match the rows that are not matched yet; with `restart` all of them, to be shown when that is done."""
        worker = get_current_worker()
        if run.filter.reads_findings and self.screen.done and not self._examine(worker):
            return
        capture, start, stop = self.screen.capture, 0 if restart else run.upto, len(self.screen.capture)
        pending = run.pending if not restart else run.pending[:0]
        completed = pending[capture.index.is_complete(pending)]
        corrected = capture.matching(run.filter, completed) if len(completed) else completed
        rest = np.setdiff1d(pending, completed, assume_unique=True)
        new = np.arange(start, stop)
        pending = np.concatenate([rest, new[~capture.index.is_complete(new)]])[-MOST_PENDING:]
        found, pace = [new[:0]], Pace(REPORT_SECONDS)
        for step in capture.select(run.filter, start, stop):
            if worker.is_cancelled:
                return
            found.append(step.rows)
            if pace.is_due():
                rows = new[:0] if restart else np.concatenate(found)
                call_on_ui(self.screen, self._show_step, run, rows, step.upto, stop)
                found = found if restart else [new[:0]]
        again = completed, corrected
        call_on_ui(self.screen, self._matched_all, run, np.concatenate(found), stop, again, pending, restart)

    def _examine(self, worker: Worker[None]) -> bool:
        """Complete the cross-message findings; return whether that was not cancelled."""
        return all(not worker.is_cancelled for _ in self.screen.capture.findings.examine())

    def _show_step(self, run: FilterRun, rows: Int64, upto: int, total: int) -> None:
        """Show the rows of a step."""
        run.upto, run.total = upto, total
        self.screen.view.add(rows)
        self._show_found()

    def _matched_all(
        self,
        run: FilterRun,
        rows: Int64,
        stop: int,
        again: tuple[Int64, Int64],
        pending: Int64,
        restart: bool,
    ) -> None:
        """All rows that there were are matched; there may be more by now."""
        if restart:
            self.screen.view.keep(rows)
        else:
            self.screen.view.correct(*again)
            self.screen.view.add(rows)
        run.upto = run.total = stop
        run.pending, run.working = pending, False
        self._show_found()
        if len(self.screen.capture) > stop:
            self._start_matching(run)
        elif self.screen.done and self.screen.RENUMBERS_ROWS and not self.screen.capture.host_names.resolves:
            self._remember_rows(run.filter.text)

    def _remember_rows(self, text: str) -> None:
        kept = self.screen.view.kept
        if kept is not None and len(kept) <= MOST_REMEMBERED:
            others = [each for each in self._remembered.items() if each[0] != text]
            self._remembered = dict([*others, (text, kept)][-REMEMBERED:])

    def _show_found(self) -> None:
        # drawn rows look as before, but for the time since the previous row
        run = self._run
        self.screen.exchange_list.empty_words = self._empty_words()
        awaits = run is not None and run.working and run.upto <= self.screen.exchange_list.selected
        self.screen.exchange_list.update_rows(redraw=self.screen.appearance.time is TimeFormat.PREVIOUS, awaits=awaits)
        self._draw_filter()
        self.screen.draw_title()
        if run is not None and not run.working and not len(self.screen.view):
            self.screen.show_none()
        if run is not None and not run.working and self.when_matched is not None:
            then, self.when_matched = self.when_matched, None
            then()

    def _empty_words(self) -> str:
        """Return what to say if no row is shown, with the next keys."""
        if self._run is None or self._run.working:
            return "searching…" if self._run is not None else ""
        edits, removes = self.screen.key_of("filter"), self.screen.key_of("escape")
        count = counted(len(self.screen.capture), "exchange")
        return f"0 of {count} match · {edits} edits the filter · {removes} removes it"

    def _start_matching(self, run: FilterRun, *, restart: bool = False) -> None:
        run.working, run.total = True, len(self.screen.capture)
        if restart:
            run.upto = 0
        self._draw_filter()
        self._match_rows(run, restart=restart)

    def rows_added(self, *, done: bool) -> None:
        """Match new rows too; all of them again when they have their final order."""
        run = self._run
        if run is None or run.stopped:
            return
        if done and self.screen.RENUMBERS_ROWS:
            self._start_matching(run, restart=True)
        elif not run.working and (len(self.screen.capture) > run.upto or len(run.pending)):
            self._start_matching(run)

    def _draw_filter(self) -> None:
        if self._run is not None:
            self._bar.say(self._run.state(len(self.screen.view), len(self.screen.capture)))
