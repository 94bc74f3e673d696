"""Records of all exchanges that a filter leaves, of any topic: a list, and below it all of the one under the cursor."""

import re
import time
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

import numpy as np
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.timer import Timer
from textual.widgets import Static
from textual.worker import Worker, get_current_worker

from dissector.analysis.record_list import RecordList, RecordPlaces
from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.core.text import clean, counted
from dissector.filter import Filter, FilterError, complete, parse
from dissector.records.record_text import value_text
from dissector.tui.recents import FILTERS, remember
from dissector.tui.record_labels import Pieces, record_lines
from dissector.tui.record_paths import paths_in
from dissector.tui.record_search import find_record
from dissector.tui.record_writing import RECORD_FORMATS, record_chunks
from dissector.tui.records_model import SORTABLE, RecordsModel
from dissector.tui.screens.menu import Choice, Menu
from dissector.tui.screens.prompt import Prompt
from dissector.tui.screens.snapshot_screen import SnapshotScreen
from dissector.tui.screens.write_dialog import WriteDialog
from dissector.tui.ui_thread import call_on_ui
from dissector.tui.widgets.cell_list import CellList
from dissector.tui.widgets.filter_bar import FilterBar, Offer
from dissector.tui.widgets.key_footer import KeyFooter
from dissector.tui.widgets.record_list import RecordLines
from dissector.tui.widgets.record_pane import RecordPane

REPORT_SECONDS: Final = 0.1
"""Between two updates of the list, and between two looks whether the capture is read by now."""
TYPING_PAUSE: Final = 0.4
"""Seconds without a key after which what is typed is checked."""
SAMPLED: Final = 40
"""Records whose names are offered while a filter is typed."""


class OpenedRecord(NamedTuple):
    """A record that was opened: the row that carries it, from 0, and which of the row's records it is."""

    row: int
    place: int


class RecordsScreen(SnapshotScreen[OpenedRecord | None]):
    """Returns the record that was opened; None if none was."""

    DEFAULT_CSS = """
    RecordsScreen #records { height: 9fr; }
    RecordsScreen #record { height: 11fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "escape", "Back", tooltip="Stop what runs; then clear the filter; then go back",
                id="records.escape"),
        Binding("q", "dismiss", "Back", show=False, tooltip="Back to the exchanges", id="records.back"),
        Binding("question_mark", "app.help", "Help", key_display="?", tooltip="Show the keys", id="records.help"),
        Binding("tab", "app.focus_next", "Pane", show=False, tooltip="Next pane", id="records.next_pane"),
        Binding("shift+tab", "app.focus_previous", "Previous pane", show=False, tooltip="Previous pane",
                id="records.previous_pane"),
        Binding("slash", "filter", "Filter", key_display="/", id="records.filter",
                tooltip="Show only records that match a filter: record.value.order.id == 17"),
        Binding("ctrl+f", "find", "Find", tooltip="Find text in keys, values and headers", id="records.find"),
        Binding("n", "hit(1)", "Next hit", show=False, tooltip="Next hit of the search", id="records.next_hit"),
        Binding("N", "hit(-1)", "Previous hit", show=False, tooltip="Previous hit of the search",
                id="records.previous_hit"),
        Binding("b", "hex", "Hex", tooltip="Show key and value as bytes; again: decoded", id="records.hex"),
        Binding("z", "sort", "Sort", show=False, tooltip="Sort the records by a column", id="records.sort"),
        Binding("Z", "reverse", "Reverse order", show=False, tooltip="Reverse the sort order", id="records.reverse"),
        Binding("x", "export", "Export", tooltip="Write the listed records to a file", id="records.export"),
        Binding("y", "copy", "Copy value", show=False, tooltip="Copy the value", id="records.copy"),
    ]  # fmt: skip

    def __init__(self, capture: Capture, *, waits: bool, filter_text: str = "", row: int | None = None) -> None:
        """List records that match the filter, with the cursor on the first one of a row. If it `waits`, it fills when
        the capture is read."""
        super().__init__(capture)
        self._goes_on = self._goes_on and not waits
        self._waits = waits
        self._model = RecordsModel(capture)
        self._filter_text = filter_text
        self._filter: Filter | None = None
        self._row = row
        self._hex = False
        self._query = ""
        self._typing: Timer | None = None
        self._working = ""
        """What runs, in words."""

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield FilterBar(id="filter")
        yield Static(id="empty", markup=False)
        yield RecordLines(self._model, id="records")
        yield RecordPane(id="record")
        yield KeyFooter()

    @property
    def _list(self) -> RecordLines:
        return self.query_one(RecordLines)

    @property
    def _bar(self) -> FilterBar:
        return self.query_one(FilterBar)

    def on_resize(self) -> None:
        self.draw_title()

    def on_mount(self) -> None:
        self._list.focus()
        self._bar.rest(self._filter_text)
        if self._waits:
            self._timer = self.set_interval(REPORT_SECONDS, self._look)
        else:
            self._start(self._filter_text)

    def _look(self) -> None:
        """Begin once the capture is read."""
        if self._capture.is_read:
            self._timer.stop()
            self._take_snapshot()
            self._start(self._filter_text)
        else:
            self.say("○ waiting until the capture is read")

    def heading(self) -> Text:
        names = clean(", ".join(name.rpartition("/")[2] for name in self._capture.names))
        topics = len(np.unique(self._model.places.topic))
        words = f" · {counted(len(self._model), 'record')} of {counted(topics, 'topic')}" if topics else ""
        return Text("Records", "bold").append(f" · {names}{words}")

    def begin(self) -> None:
        self._start(self._filter_text)

    # Listing.

    def _start(self, text: str) -> None:
        """List the records that match a filter; an invalid one stays in the bar for correction."""
        self._stop_typing()
        try:
            wanted = parse(text, self._capture.opener) if text.strip() else None
        except FilterError as error:
            self._bar.edit(text, error.column)
            self._complain(error)
            return
        self._filter, self._filter_text = wanted, text.strip()
        self._bar.rest(self._filter_text)
        if self._bar.is_open or self.focused is None:
            self._list.focus()
        if len(self._model):
            self._row = self._model.row(self._list.cursor) if self._row is None else self._row
        self._model.clear()
        self._list.show(0)
        self._say_working("listing")
        self._read(wanted, self._count)

    @work(thread=True, exclusive=True, group="read")
    def _read(self, wanted: Filter | None, stop: int) -> None:
        worker = get_current_worker()
        if wanted is not None and wanted.reads_findings and self._capture.is_read:
            for _ in self._capture.examine():
                if worker.is_cancelled:
                    return
        listed = RecordList(self._capture, wanted)
        parts: list[RecordPlaces] = []
        reported = 0.0
        for step in listed.steps(stop=stop):
            if worker.is_cancelled:
                return
            parts.append(step.places)
            if time.monotonic() - reported > REPORT_SECONDS:
                reported = time.monotonic()
                share = 100 * step.upto // max(1, stop)
                call_on_ui(self, self._add, worker, RecordPlaces.joined(parts), listed, share)
                parts = []
        call_on_ui(self, self._add, worker, RecordPlaces.joined(parts), listed, 100)
        call_on_ui(self, self._listed_all, worker)

    def _add(self, worker: Worker[None], more: RecordPlaces, listed: RecordList, share: int) -> None:
        if worker.is_cancelled:
            return
        first = not len(self._model)
        if len(more.row):
            self._model.add(more, listed)
            self._list.grow(len(self._model))
        self._place_cursor()
        if first and len(self._model):
            self._draw_record()
        self._say_working(f"listing {share} %")

    def _place_cursor(self) -> None:
        """Go to the first record of the row that the list was opened at, once it is there."""
        position = self._model.first_of(self._row) if self._row is not None else None
        if position is not None:
            self._row = None
            self._list.cursor = position

    def _listed_all(self, worker: Worker[None]) -> None:
        if worker.is_cancelled:
            return
        self._row = None
        self._say_working("")
        empty = self.query_one("#empty", Static)
        words = "No record matches the filter.\n\n/ changes it, esc clears it."
        if not self._filter_text:
            words = "These exchanges carry no records.\n\nProduce, Fetch and log segments do."
        empty.update(Text(words, justify="center"))
        for each, shown in ((empty, not len(self._model)), (self._list, False)):
            each.set_class(shown, "shown")
        for selector in ("#records", "#record"):
            self.query_one(selector).set_class(not len(self._model), "hidden")
        if len(self._model):
            self._draw_record()
            if self._model.sorting:
                self._order(self._model.sorting)

    def _say_working(self, words: str) -> None:
        self._working = words
        self.say(f"○ {words}" if words else f"● {len(self._model):,}")

    # The record under the cursor.

    def on_cell_list_line_chosen(self, event: CellList.LineChosen) -> None:
        if event.is_current:
            self._draw_record()

    def _draw_record(self) -> None:
        position = self._list.cursor
        record = self._model.record(position) if position < len(self._model) else None
        if record is None:
            self.query_one(RecordPane).show(lambda _: ())
            return
        row, as_hex = self._model.row(position), self._hex
        [[api]] = self._capture.columns(["api"], range(row, row + 1))
        carried = f"{clean(str(api))} {row + 1:,}" if api else f"row {row + 1:,}"

        def build(width: int) -> list[Pieces]:
            return record_lines(record, carried, width, as_hex=as_hex)

        self.query_one(RecordPane).show(build)
        if self._model.wanted:
            self._fetch_schemas()

    @work(thread=True, exclusive=True, group="schemas")
    def _fetch_schemas(self) -> None:
        """Ask a registry for schemas that drawn records need, and draw these again."""
        worker = get_current_worker()
        while self._model.wanted and not worker.is_cancelled:
            self._capture.opener.fetch(self._model.wanted.pop())
        call_on_ui(self, self._redraw, worker)

    def _redraw(self, worker: Worker[None]) -> None:
        if not worker.is_cancelled:
            self._model.forget()
            self._list.redraw()
            self._draw_record()

    def action_hex(self) -> None:
        self._hex = not self._hex
        self._draw_record()

    def action_copy(self) -> None:
        if len(self._model) and (record := self._model.record(self._list.cursor)) is not None:
            self.app.copy_to_clipboard(value_text(record.opened_value, 1 << 20))
            self.notify("copied the value", timeout=2)

    def on_cell_list_line_opened(self, event: CellList.LineOpened) -> None:
        if event.number < len(self._model):
            self.dismiss(OpenedRecord(self._model.row(event.number), self._model.place(event.number)))

    # Filter.

    def action_filter(self) -> None:
        text = self._filter_text
        self._bar.edit(text)
        self._complete(text, len(text))

    def on_filter_bar_applied(self, event: FilterBar.Applied) -> None:
        if event.text.strip() and event.text.strip() != self._filter_text:
            remember(FILTERS, event.text.strip())
        self._start(event.text)

    def on_filter_bar_cancelled(self) -> None:
        self._stop_typing()
        self._bar.rest(self._filter_text)
        self._list.focus()

    def on_filter_bar_typed(self, event: FilterBar.Typed) -> None:
        self._stop_typing()
        self._bar.complain(None)
        self._typing = self.set_timer(TYPING_PAUSE, lambda: self._check(event.text))
        self._complete(event.text, event.cursor)

    def _stop_typing(self) -> None:
        self.workers.cancel_group(self, "complete")
        if self._typing is not None:
            self._typing.stop()

    def _check(self, text: str) -> None:
        try:
            if text.strip():
                parse(text)
        except FilterError as error:
            if not self._bar.may_become(error.column):
                self._complain(error)

    def _complain(self, error: FilterError) -> None:
        near = f"; did you mean {', '.join(error.near)}" if error.near else ""
        self._bar.complain((error.column, error.message + near))

    @work(thread=True, exclusive=True, group="complete")
    def _complete(self, text: str, cursor: int) -> None:
        worker = get_current_worker()
        first = self._list.scroll_offset.y
        records = [self._model.record(at) for at in range(first, min(first + SAMPLED, len(self._model)))]
        offers = [Offer(*each) for each in complete(text, cursor, paths_in(records))]
        if not worker.is_cancelled:
            call_on_ui(self, self._offer, worker, text, offers)

    def _offer(self, worker: Worker[None], text: str, offers: list[Offer]) -> None:
        if not worker.is_cancelled and self._bar.is_open and self._bar.text == text:
            self._bar.offer([each for each in offers if text[each.start : each.end] != each.text])

    def action_escape(self) -> None:
        """Stop what runs; then clear the filter; then go back."""
        if self._working:
            for group in ("read", "find", "sort"):
                self.workers.cancel_group(self, group)
            self._say_working("")
        elif self._filter_text:
            self._start("")
        else:
            self.dismiss()

    # Find.

    def action_find(self) -> None:
        """Ask what to find, and go to the next record that has it."""

        def begin(given: str | None) -> None:
            if given:
                self._query = given
                self.action_hit(1)

        self.app.push_screen(Prompt("Find in keys, values and headers", self._query), begin)

    def action_hit(self, step: int) -> None:
        if not self._query:
            self.action_find()
        elif len(self._model):
            self._say_working(f"searching for {clean(self._query)}, esc stops")
            self._search(self._query, self._list.cursor, step)

    @work(thread=True, exclusive=True, group="find")
    def _search(self, query: str, start: int, step: int) -> None:
        worker = get_current_worker()
        found = find_record(self._model, query, start, step, lambda: worker.is_cancelled)
        call_on_ui(self, self._found, worker, query, found)

    def _found(self, worker: Worker[None], query: str, found: int | None) -> None:
        if worker.is_cancelled:
            return
        self._say_working("")
        if found is None:
            self.notify(f"no record has {clean(query)}", timeout=3, markup=False)
        else:
            self._list.cursor = found

    # Order.

    def action_sort(self) -> None:
        choices = [Choice("Unsorted", "in the order of the capture"), *(Choice(name) for name in SORTABLE)]
        at = SORTABLE.index(self._model.sorting) + 1 if self._model.sorting else 0

        def chosen(which: int | None) -> None:
            if which is not None:
                self._sort("" if which == 0 else SORTABLE[which - 1], descending=False)

        self.app.push_screen(Menu("Sort by", choices, at), chosen)

    def action_reverse(self) -> None:
        self._sort(self._model.sorting, descending=not self._model.descending)

    def on_record_lines_heading_clicked(self, event: RecordLines.HeadingClicked) -> None:
        """The first click sorts, the second reverses, the third restores the order."""
        if event.column not in SORTABLE:
            self.notify(f"can't sort by {event.column}", timeout=2)
        elif self._model.sorting != event.column:
            self._sort(event.column, descending=False)
        elif not self._model.descending:
            self._sort(event.column, descending=True)
        else:
            self._sort("", descending=False)

    def _sort(self, column: str, *, descending: bool) -> None:
        self._model.sorting, self._model.descending = column, descending
        if column:
            self._say_working("sorting")
            self._order(column)
        else:
            self._sorted(None, None)

    @work(thread=True, exclusive=True, group="sort")
    def _order(self, column: str) -> None:
        worker = get_current_worker()
        order = self._model.ordered(column, lambda: worker.is_cancelled)
        if order is not None:
            call_on_ui(self, self._sorted, worker, order)

    def _sorted(self, worker: Worker[None] | None, order: Int64 | None) -> None:
        if worker is not None and worker.is_cancelled:
            return
        if order is not None and len(order) != len(self._model):
            return
        model, at = self._model, self._list.cursor
        here = (model.row(at), model.place(at)) if len(model) else None
        model.sort(model.sorting, order, descending=model.descending)
        self._list.show(len(model), (model.position_of(*here) if here is not None else None) or 0)
        self._say_working("")

    # Export.

    @work(group="export", exclusive=True)
    async def action_export(self) -> None:
        """Ask for the format and the file; then write."""
        if not len(self._model) or self._working:
            return
        choices = [Choice(form.entry.label, form.entry.description) for form in RECORD_FORMATS]
        count = counted(len(self._model), "record")
        at = await self.app.push_screen_wait(Menu(f"Write {count} as", choices))
        if at is None:
            return
        form = RECORD_FORMATS[at]
        stem = re.sub(r"[^\w.-]", "-", Path(self._capture.names[0]).stem)[:60].lstrip("-.") or "capture"
        given = await self.app.push_screen_wait(Prompt(f"Write {count} to", f"{stem}-records{form.entry.suffix}"))
        if given is None or not given.strip():
            return
        chunks = record_chunks(self._model, form)
        outcome = await self.app.push_screen_wait(WriteDialog(Path(given.strip()), chunks))
        self.notify(outcome or "stopped: nothing written", markup=False, timeout=8)
