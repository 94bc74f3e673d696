"""The record view: a list of records, and below it all of the one under the cursor.

What a user does with it (filter, find, sort, export) is in `records_screen.py`.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.widgets import Static
from textual.worker import get_current_worker

from dissector.analysis.record_list import RecordList, RecordPlaces
from dissector.capture_session import Capture
from dissector.core.text import clean, counted
from dissector.records.produced_offsets import produced_offset
from tui.record_labels import Pieces, record_lines
from tui.records_model import RecordsModel, paths_in
from tui.screens.snapshot_screen import SnapshotScreen
from tui.threads import Pace, call_on_ui
from tui.widgets.cell_list import CellList
from tui.widgets.filter_bar import FilterBar
from tui.widgets.key_footer import KeyFooter
from tui.widgets.records import RecordLines, RecordPane

if TYPE_CHECKING:
    from dissector.filter import Filter

REPORT_SECONDS: Final = 0.1
"""Between two updates of the list."""


SAMPLED: Final = 40
"""Records whose names are offered while a filter is typed."""


class OpenedRecord(NamedTuple):
    """A record that was opened: the row that carries it, from 0, and which of the row's records it is."""

    row: int
    place: int


class RecordsCoreScreen(SnapshotScreen[OpenedRecord | None]):
    """Lists records and shows one. Returns the record that was opened; None if none was."""

    DEFAULT_CSS = """
    RecordsCoreScreen #records { height: 9fr; }
    RecordsCoreScreen #record { height: 11fr; }
    """

    def __init__(self, capture: Capture, *, waits: bool, filter_text: str = "", row: int | None = None) -> None:
        """List records that match the filter, with the cursor on the first one of a row. If it `waits`, it fills when
        the capture is read."""
        super().__init__(capture)
        self._goes_on = self._goes_on and not waits
        self._waits = waits
        self._model = RecordsModel(capture)
        self._filter_text = filter_text
        self._row = row
        self._hex = False
        self._working = ""
        """What runs, in words."""

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield FilterBar(self._paths_shown, id="filter")
        yield Static(id="empty", markup=False)
        yield RecordLines(self._model, id="records")
        yield RecordPane(id="record")
        yield KeyFooter()

    def _paths_shown(self) -> list[str]:
        first = self._list.scroll_offset.y
        return paths_in([self._model.record(at) for at in range(first, min(first + SAMPLED, len(self._model)))])

    @property
    def _list(self) -> RecordLines:
        return self.query_one(RecordLines)

    @property
    def _bar(self) -> FilterBar:
        return self.query_one(FilterBar)

    def on_resize(self) -> None:
        self.draw_title()

    def on_mount(self) -> None:
        self._bar.rest(self._filter_text)
        self._list.focus()
        self.begin_when_read(waits=self._waits)

    def heading(self) -> Text:
        names = clean(", ".join(name.rpartition("/")[2] for name in self._capture.names))
        topics = len(np.unique(self._model.places.topic))
        words = f" · {counted(len(self._model), 'record')} of {counted(topics, 'topic')}" if topics else ""
        return Text("Records", "bold").append(f" · {names}{words}")

    # Listing.

    def _list_matching(self, wanted: "Filter | None") -> None:
        """List the records that match a filter, or all of them."""
        if len(self._model):
            self._row = self._model.row(self._list.cursor) if self._row is None else self._row
        self._model.clear()
        self._list.show(0)
        self._say_working("listing")
        self._read(wanted, self._count)

    @work(thread=True, exclusive=True, group="read")
    def _read(self, wanted: "Filter | None", stop: int) -> None:
        worker = get_current_worker()
        if wanted is not None and wanted.reads_findings and self._capture.is_read:
            for _ in self._capture.findings.examine():
                if worker.is_cancelled:
                    return
        listed = RecordList(self._capture, wanted)
        parts: list[RecordPlaces] = []
        pace = Pace(REPORT_SECONDS)
        for step in listed.steps(stop=stop):
            if worker.is_cancelled:
                return
            parts.append(step.places)
            if pace.is_due():
                share = 100 * step.upto // max(1, stop)
                call_on_ui(self, self._add, RecordPlaces.joined(parts), listed, share)
                parts = []
        call_on_ui(self, self._add, RecordPlaces.joined(parts), listed, 100)
        call_on_ui(self, self._listed_all)

    def _add(self, more: RecordPlaces, listed: RecordList, share: int) -> None:
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

    def _listed_all(self) -> None:
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
            self._all_listed()

    def _all_listed(self) -> None:
        """All records are listed. For what a user does with them."""

    def _say_working(self, words: str) -> None:
        self._working = words
        self.say(f"○ {words}" if words else "● listed")

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
        [[api]] = self._capture.index.columns(["api"], range(row, row + 1))
        carried = f"{clean(str(api))} {row + 1:,}" if api else f"row {row + 1:,}"
        if record.is_produced:
            exchange = self._capture.exchange(row)
            offset = produced_offset(exchange, record.topic, record.partition, record.offset)
            carried += f" · offset {offset} in the log" if offset is not None else ""

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
        call_on_ui(self, self._redraw)

    def _redraw(self) -> None:
        self._model.forget()
        self._list.redraw()
        self._draw_record()

    def on_cell_list_line_opened(self, event: CellList.LineOpened) -> None:
        if event.number < len(self._model):
            self.dismiss(OpenedRecord(self._model.row(event.number), self._model.place(event.number)))
