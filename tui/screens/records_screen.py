"""What a user does with the records of all exchanges that a filter leaves, of any topic: filter, find, sort, export."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
from textual import work
from textual.binding import Binding, BindingType
from textual.worker import get_current_worker

from dissector.analysis.record_list import CarriedRecord, RecordList
from dissector.core.arrays import Int64
from dissector.core.text import clean, counted
from dissector.export.record_formats import RecordFormat, RecordWriting
from dissector.records.record_text import value_text
from tui.recents import FILTERS, remember
from tui.records_model import SORTABLE, RecordsModel, find_record
from tui.screens.dialog import Choice, Menu, Prompt
from tui.screens.records_core_screen import RecordsCoreScreen
from tui.screens.write_dialog import Notify, WriteDialog
from tui.threads import call_on_ui
from tui.widgets.filter_bar import FilterBar
from tui.widgets.records import RecordLines


class RecordsScreen(RecordsCoreScreen):
    """The record view with its keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "escape", "Back", tooltip="Stop the current task; then clear the filter; then go back",
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

    _query = ""
    """What was searched last."""

    def begin(self) -> None:
        self._start(self._filter_text)

    def _start(self, text: str) -> None:
        """List the records that match a filter; an invalid one stays in the bar for correction."""
        from dissector.filter import FilterError, parse

        try:
            wanted = parse(text, self._capture.opener) if text.strip() else None
        except FilterError as error:
            self._bar.correct(text, error)
            return
        self._filter_text = text.strip()
        self._bar.rest(self._filter_text)
        if self._bar.is_open or self.focused is None:
            self._list.focus()
        self._list_matching(wanted)

    def _all_listed(self) -> None:
        if self._model.sorting:
            self._order(self._model.sorting)

    # The record under the cursor.

    def action_hex(self) -> None:
        self._hex = not self._hex
        self._draw_record()

    def action_copy(self) -> None:
        if len(self._model) and (record := self._model.record(self._list.cursor)) is not None:
            self.app.copy_to_clipboard(value_text(record.opened_value, 1 << 20))
            self.notify("copied the value", timeout=2)

    # Filter.

    def action_filter(self) -> None:
        self._bar.prepare(self._filter_text)

    def on_filter_bar_applied(self, event: FilterBar.Applied) -> None:
        if event.text.strip() and event.text.strip() != self._filter_text:
            remember(FILTERS, event.text.strip())
        self._start(event.text)

    def on_filter_bar_cancelled(self) -> None:
        self._bar.rest(self._filter_text)
        self._list.focus()

    def action_escape(self) -> None:
        """Stop the current task; then clear the filter; then go back."""
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
        call_on_ui(self, self._found, query, found)

    def _found(self, query: str, found: int | None) -> None:
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
            self._sorted(None)

    @work(thread=True, exclusive=True, group="sort")
    def _order(self, column: str) -> None:
        worker = get_current_worker()
        order = self._model.ordered(column, lambda: worker.is_cancelled)
        if order is not None:
            call_on_ui(self, self._sorted, order)

    def _sorted(self, order: Int64 | None) -> None:
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


RECORD_FORMATS: Final = tuple(RecordFormat)


def record_chunks(model: RecordsModel, form: RecordFormat) -> Callable[[Notify], Iterator[bytes]]:
    """Return what writes the records that are listed now."""
    order = np.array([model.at(position) for position in range(len(model))], np.int64)
    places = model.places
    rows, numbers = places.row[order], places.place[order]

    def pieces(_report: Notify) -> Iterator[bytes]:
        return form.entry.write(model.capture, _records(model, rows, numbers), RecordWriting())

    return pieces


def _records(model: RecordsModel, rows: Int64, numbers: Int64) -> Iterator[CarriedRecord]:
    steps = np.diff(rows)
    if ((steps > 0) | ((steps == 0) & (np.diff(numbers) > 0))).all():  # not sorted: exchange by exchange
        wanted = set(zip(rows.tolist(), numbers.tolist(), strict=True))
        for found in RecordList(model.capture).of_rows(np.unique(rows)):
            if (found.row, found.place) in wanted:
                yield found
        return
    for row, number in zip(rows.tolist(), numbers.tolist(), strict=True):
        found_record = model.read(row, number)
        if found_record is not None:
            yield CarriedRecord(row, number, found_record)
