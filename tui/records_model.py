"""The records that the record view lists, without a screen: their places, their order, contents of those looked at,
text that is found in them, and names in them, to be offered while a filter is typed.

Invariants:
  * only records that are drawn, searched or sorted by contents are read; a bounded number of exchanges stays decoded;
  * a schema that only a registry has is never waited for here: the value is drawn unopened until it is there.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np

from dissector.analysis.record_list import RecordList, RecordPlaces
from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.records.record import PLAIN_OPENER, ExchangeRecord, records_of
from dissector.records.record_text import headers_text, value_text
from dissector.records.values.schema_reference import SchemaKey

KEPT_RECORDS: Final = 50_000
"""Records of decoded exchanges that are kept, but for those of the last one."""
SORTABLE: Final = ("Offset", "Time", "Topic", "Key", "Value", "Size")
_BY_CONTENT: Final = ("Key", "Value")


class RecordsModel:
    """Records by their positions in the list, from 0."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.places = RecordPlaces.none()
        self.topics: list[str] = []
        self.sorting = ""
        """The column that the list is sorted by; none for the order of exchanges."""
        self.descending = False
        self.wanted: set[SchemaKey] = set()
        """Schemas that a registry has to be asked for."""
        self._order: Int64 | None = None
        self._parts: list[RecordPlaces] = []
        self._decoded: OrderedDict[int, list[ExchangeRecord]] = OrderedDict()
        self._kept = 0

    def __len__(self) -> int:
        return len(self.places.row)

    def clear(self) -> None:
        """List nothing."""
        self.places, self._parts, self._order = RecordPlaces.none(), [], None

    def add(self, more: RecordPlaces, listed: RecordList) -> None:
        """List more records, behind the others."""
        self._parts = [RecordPlaces.joined([*self._parts, more])]
        self.places, self.topics = self._parts[0], listed.topics
        self._order = None

    def at(self, position: int) -> int:
        """Return which record of the places is at a position of the list."""
        return position if self._order is None else int(self._order[position])

    def row(self, position: int) -> int:
        """Return the row that carries a record."""
        return int(self.places.row[self.at(position)])

    def place(self, position: int) -> int:
        """Return which record of its row it is."""
        return int(self.places.place[self.at(position)])

    def first_of(self, row: int) -> int | None:
        """Return the position of the first record of a row; None if it has none here."""
        found = np.flatnonzero(self.places.row == row)
        if not len(found):
            return None
        return int(found[0]) if self._order is None else int(np.flatnonzero(np.isin(self._order, found))[0])

    def position_of(self, row: int, place: int) -> int | None:
        """Return where a record of a row is in the list; None if it is not."""
        found = np.flatnonzero((self.places.row == row) & (self.places.place == place))
        if len(found) and self._order is not None:
            found = np.flatnonzero(self._order == found[0])
        return int(found[0]) if len(found) else None

    def record(self, position: int) -> ExchangeRecord | None:
        """Return a record with its contents; None if its exchange does not have it any more."""
        found = self.read(self.row(position), self.place(position))
        return None if found is None else self._openable(found)

    def read(self, row: int, place: int) -> ExchangeRecord | None:
        """Return a record of a row, which may ask a registry when it is opened."""
        records = self._decoded.get(row)
        if records is None:
            records = records_of(self.capture.exchange(row), self.capture.opener)
            self._decoded[row] = records
            self._kept += len(records)
            while self._kept > KEPT_RECORDS and len(self._decoded) > 1:
                self._kept -= len(self._decoded.popitem(last=False)[1])
        else:
            self._decoded.move_to_end(row)
        return records[place] if place < len(records) else None

    def _openable(self, record: ExchangeRecord) -> ExchangeRecord:
        """Return a record that opens at once: if a registry has to be asked first, one that opens without schemas."""
        missing = record.missing_schemas()
        if not missing:
            return record
        self.wanted |= missing
        return record.opened_by(PLAIN_OPENER)

    def forget(self) -> None:
        """Decode again what is drawn: there are schemas now."""
        self._decoded.clear()
        self._kept = 0

    # Order. It is computed in a thread.

    def ordered(self, column: str, is_cancelled: Callable[[], bool]) -> Int64 | None:
        """Return the records in ascending order of a column; None if that was cancelled."""
        places = self.places
        if column in _BY_CONTENT:
            return self._ordered_by_content(column, places, is_cancelled)
        columns = {"Offset": places.offset, "Time": places.timestamp, "Size": places.value_size}
        if column == "Topic":
            names = sorted(range(len(self.topics)), key=self.topics.__getitem__)
            rank = np.empty(len(names), np.int64)
            rank[names] = np.arange(len(names))
            topic = rank[places.topic] if len(names) else places.topic
            order: Int64 = np.lexsort((places.offset, places.partition, topic))
            return order
        return np.argsort(columns[column], kind="stable")

    def _ordered_by_content(self, column: str, places: RecordPlaces, is_cancelled: Callable[[], bool]) -> Int64 | None:
        wanted = {pair: at for at, pair in enumerate(zip(places.row.tolist(), places.place.tolist(), strict=True))}
        contents = [b""] * len(wanted)
        listed = RecordList(self.capture)
        for found in listed.of_rows(np.unique(places.row)):
            at = wanted.get((found.row, found.place))
            if at is not None:
                contents[at] = (found.record.key if column == "Key" else found.record.value) or b""
            if is_cancelled():
                return None
        return np.array(sorted(range(len(contents)), key=contents.__getitem__), np.int64)

    def sort(self, column: str, order: Int64 | None, *, descending: bool) -> None:
        """List the records in an order; without one as they were carried."""
        self.sorting, self.descending = column, descending
        if order is not None:
            self._order = order[::-1].copy() if descending else order
        else:
            self._order = np.arange(len(self))[::-1].copy() if descending else None


_WHOLE = 1 << 20


def find_record(model: RecordsModel, query: str, start: int, step: int, is_cancelled: Callable[[], bool]) -> int | None:
    """Return the position of the next record that has a text, around the end; None if there is none, or if that was
    cancelled."""
    text = query.casefold()
    count = len(model)
    for distance in range(1, count + 1):
        position = (start + step * distance) % count
        if is_cancelled():
            return None
        record = model.record(position)
        if record is not None and _has(record, text):
            return position
    return None


def _has(record: ExchangeRecord, text: str) -> bool:
    for data in (record.key, record.value):
        if data is not None and text in data.decode("utf-8", "replace").casefold():
            return True
    opened = (record.opened_key, record.opened_value)
    return any(each.is_structure and text in value_text(each, _WHOLE).casefold() for each in opened) or (
        bool(record.headers) and text in headers_text(record, _WHOLE).casefold()
    )


MOST: Final = 200
DEEPEST: Final = 6
_ELEMENTS: Final = 3
"""Elements of an array that are looked at."""


def paths_in(records: Iterable[ExchangeRecord | None]) -> list[str]:
    """Return paths such as ``value.order.id`` and ``headers.tenant``, each once."""
    found: dict[str, None] = {}
    for record in records:
        if record is None:
            continue
        for path in _paths(record):
            if len(found) >= MOST:
                return list(found)
            found[path] = None
    return list(found)


def _paths(record: ExchangeRecord) -> Iterator[str]:
    for name, opened in (("value", record.opened_value), ("key", record.opened_key)):
        yield from _inside(opened.inner, name, 0)
    for name, _ in record.headers:
        if name.isprintable() and " " not in name:
            yield f"headers.{name}"


def _inside(value: object, path: str, depth: int) -> Iterator[str]:
    if depth < DEEPEST and isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(name, str) and name.isprintable() and not set(name) & set(" (){},&|!<>=\"'"):
                yield f"{path}.{name}"
                yield from _inside(inner, f"{path}.{name}", depth + 1)
    elif depth < DEEPEST and isinstance(value, list):
        for each in value[:_ELEMENTS]:
            yield from _inside(each, path, depth + 1)
