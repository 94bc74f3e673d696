"""The filter of the list: typed in its bar, looked for beside the screen, its rows shown as they are found.

While the capture is read, or is live, the filter goes on with new rows; those that were answered since they were looked
at are looked at again. When rows get their final order all is gone through once more, and what is shown stays until
that is done.
"""

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from rich.text import Text
from textual import work
from textual.binding import Binding, BindingType
from textual.timer import Timer
from textual.worker import Worker, get_current_worker

from dissector.core.arrays import Int64
from dissector.core.text import clean
from tui.messages import ApplyFilter
from tui.recents import FILTERS, recent, remember
from tui.screens.core_screen import CoreScreen
from tui.screens.menu import Choice, Menu
from tui.time_format import TimeFormat
from tui.ui_thread import call_on_ui
from tui.widgets.filter_bar import FilterBar, Offer

if TYPE_CHECKING:  # the engine takes a tenth of a second to import: only who filters pays for it
    from dissector.filter import Filter, FilterError

PAUSE: Final = 0.4
"""Seconds without a key after which it is said what is wrong."""
TELL_SECONDS: Final = 0.1
MOST_WAITING: Final = 10_000
"""Rows without an answer that are looked at again; the newest."""


@dataclass
class FilterRun:
    """A filter at work."""

    filter: "Filter"
    upto: int = 0
    """Rows before this one have been looked at."""
    total: int = 0
    working: bool = False
    stopped: bool = False
    """By the user: it does not go on with new rows."""
    waiting: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    """Rows that were looked at before all of them was there."""

    def state(self, shown: int, count: int) -> Text:
        """How far it is."""
        told = f"{shown:,} of {count:,}"
        share = f"{100 * self.upto // max(1, self.total)} %"
        if self.working:
            return Text(f"○ {share} · {told}", "bold")
        return Text(f"■ stopped at {share} · {told}" if self.stopped else f"✔ {told}", "bold")


class FilterFeature(CoreScreen):
    """Type, apply, stop, clear; recent filters; the connection of a row."""

    FEATURE = "Filter"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", key_display="/", tooltip="Show only the exchanges that fit a filter",
                id="main.filter"),
        Binding("ctrl+r", "recent_filters", "Recent filters", show=False, tooltip="Choose among filters used before",
                id="main.recent_filters"),
        Binding("f", "follow", "Follow", show=False,
                tooltip="Only this connection; again: back to what was shown before",
                id="main.follow"),
    ]  # fmt: skip

    _run: FilterRun | None = None
    _worker: Worker[None] | None = None
    _typing: Timer | None = None
    _before_following = ""
    _followed = ""
    """The filter that following a connection made."""

    @property
    def _bar(self) -> FilterBar:
        return self.query_one(FilterBar)

    def action_filter(self) -> None:
        """Type one; the one that is there is to be changed."""
        self.prepare_filter(self._run.filter.text if self._run is not None else "")

    def prepare_filter(self, text: str) -> None:
        """Put a filter into the bar, to be changed before it is applied."""
        self._bar.edit(text)
        self._complete(text, len(text))

    def on_apply_filter(self, event: ApplyFilter) -> None:
        if event.prepare:
            self.prepare_filter(event.text)
        else:
            self.apply_filter(event.text)

    def on_filter_bar_applied(self, event: FilterBar.Applied) -> None:
        self.apply_filter(event.text)

    def apply_filter(self, text: str) -> None:
        """Show what fits; all rows where there is no text. What is no filter is left in the bar, to be mended."""
        from dissector.filter import FilterError, parse

        self._stop_typing()
        try:
            wanted = parse(text) if text else None
        except FilterError as error:
            self._bar.edit(text, error.column)
            self._complain(error)
            return
        self.workers.cancel_group(self, "filter")
        self._run = None if wanted is None else FilterRun(wanted)
        self.view.keep(None if wanted is None else np.zeros(0, np.int64))
        self._bar.rest(text)
        if self._bar.is_open or self.focused is None:
            self._list.focus()
        self._list.rearranged()
        self._draw_title()
        if self._run is not None:
            remember(FILTERS, text)
            self._work(self._run)

    def on_filter_bar_cancelled(self) -> None:
        self._stop_typing()
        self._bar.rest(self._run.filter.text if self._run is not None else "")
        self._draw_filter()
        self._list.focus()

    def stop_filter(self) -> bool:
        """Stop the filter that runs; what it found stays."""
        run = self._run
        if run is None or not run.working:
            return False
        self.workers.cancel_group(self, "filter")
        run.working, run.stopped = False, True
        self._draw_filter()
        return True

    def clear_filter(self) -> bool:
        """Remove the filter: show all rows."""
        filtered = self._run is not None
        if filtered:
            self.apply_filter("")
        return filtered

    def action_recent_filters(self) -> None:
        filters = recent(FILTERS)
        if not filters:
            self.notify("no filter has been used yet", timeout=2)
            return

        def chosen(number: int | None) -> None:
            if number is not None:
                self.apply_filter(filters[number])

        self.app.push_screen(Menu("Recent filters", [Choice(clean(text)) for text in filters]), chosen)

    def action_follow(self) -> None:
        """This row's connection alone, and back."""
        now = self._run.filter.text if self._run is not None else ""
        if now and now == self._followed:
            self.apply_filter(self._before_following)
        elif len(self.view):
            self._before_following = now
            self._followed = f"conn == {self.capture.connection_of(self.number)}"
            self.apply_filter(self._followed)

    # While it is typed: what could follow, what is wrong.

    def on_filter_bar_typed(self, event: FilterBar.Typed) -> None:
        self._stop_typing()
        self._bar.complain(None)
        self._typing = self.set_timer(PAUSE, lambda: self._check(event.text))
        self._complete(event.text, event.cursor)

    @work(thread=True, exclusive=True, group="complete")
    def _complete(self, text: str, cursor: int) -> None:
        """Beside the screen: the first time it reads all tables of the schema."""
        from dissector.filter import complete

        worker = get_current_worker()
        offers = [Offer(*each) for each in complete(text, cursor)]
        if not worker.is_cancelled:
            call_on_ui(self, self._offer, worker, text, offers)

    def _offer(self, worker: Worker[None], text: str, offers: list[Offer]) -> None:
        # What stands there as it is needs no offer.
        if not worker.is_cancelled and self._bar.is_open and self._bar.text == text:
            self._bar.offer([each for each in offers if text[each.start : each.end] != each.text])

    def _stop_typing(self) -> None:
        self.workers.cancel_group(self, "complete")
        if self._typing is not None:
            self._typing.stop()

    def _check(self, text: str) -> None:
        from dissector.filter import FilterError, parse

        try:
            if text.strip():
                parse(text)
        except FilterError as error:
            if not self._bar.may_become(error.column):
                self._complain(error)

    def _complain(self, error: "FilterError") -> None:
        near = f"; near it: {', '.join(error.near)}" if error.near else ""
        self._bar.complain((error.column, error.message + near))

    # While it is looked for.

    @work(thread=True, exclusive=True, group="filter")
    def _look_on(self, run: FilterRun, *, anew: bool = False) -> None:
        """Look at the rows that have not been looked at; with `anew` at all of them, to be shown when that is done."""
        worker = get_current_worker()
        if run.filter.asks_findings and self._done and not self._examine(worker):
            return
        capture, start, stop = self.capture, 0 if anew else run.upto, len(self.capture)
        waiting = run.waiting if not anew else run.waiting[:0]
        answered = waiting[capture.is_complete(waiting)]
        corrected = capture.matching(run.filter, answered) if len(answered) else answered
        rest = np.setdiff1d(waiting, answered, assume_unique=True)
        new = np.arange(start, stop)
        waiting = np.concatenate([rest, new[~capture.is_complete(new)]])[-MOST_WAITING:]
        found, told = [new[:0]], 0.0
        for step in capture.select(run.filter, start, stop):
            if worker.is_cancelled:
                return
            found.append(step.rows)
            if time.monotonic() - told > TELL_SECONDS:
                told = time.monotonic()
                rows = new[:0] if anew else np.concatenate(found)
                call_on_ui(self, self._found, worker, run, rows, step.upto, stop)
                found = found if anew else [new[:0]]
        again = answered, corrected
        call_on_ui(self, self._ended, worker, run, np.concatenate(found), stop, again, waiting, anew)

    def _examine(self, worker: Worker[None]) -> bool:
        """Have found what only several rows together tell; whether nobody stopped it."""
        return all(not worker.is_cancelled for _ in self.capture.examine())

    def _found(self, worker: Worker[None], run: FilterRun, rows: Int64, upto: int, total: int) -> None:
        """A step further."""
        if not worker.is_cancelled:
            run.upto, run.total = upto, total
            self.view.add(rows)
            self._show_found()

    def _ended(
        self,
        worker: Worker[None],
        run: FilterRun,
        rows: Int64,
        stop: int,
        again: tuple[Int64, Int64],
        waiting: Int64,
        anew: bool,
    ) -> None:
        """All rows that there were have been looked at; there may be more by now."""
        if worker.is_cancelled:
            return
        if anew:
            self.view.keep(rows)
        else:
            self.view.correct(*again)
            self.view.add(rows)
        run.upto = run.total = stop
        run.waiting, run.working = waiting, False
        self._show_found()
        if len(self.capture) > stop:
            self._work(run)

    def _show_found(self) -> None:
        # Rows that were drawn look as before, but for the time since the row above them.
        self._list.rearranged(anew=self.appearance.time is TimeFormat.PREVIOUS)
        self._draw_filter()
        self._draw_title()

    def _work(self, run: FilterRun, *, anew: bool = False) -> None:
        run.working, run.total = True, len(self.capture)
        if anew:
            run.upto = 0
        self._draw_filter()
        self._look_on(run, anew=anew)

    def _rows_added(self, *, done: bool) -> None:
        """New rows are looked at too; all of them again when they have their final order."""
        super()._rows_added(done=done)
        run = self._run
        if run is None or run.stopped:
            return
        if done and self.RENUMBERS_ROWS:
            self._work(run, anew=True)
        elif not run.working and (len(self.capture) > run.upto or len(run.waiting)):
            self._work(run)

    def _draw_filter(self) -> None:
        if self._run is not None:
            self._bar.say(self._run.state(len(self.view), len(self.capture)))
