"""The records of many exchanges: where each is, as columns, and their contents, a few exchanges at a time.

Where a row's records can be read natively, no exchange is decoded for them; other rows (messages of before 0.11,
damaged or masked batches, responses without a request, entries of log segments) are decoded one by one.

Invariants, held by tests over recordings:
  * records come in the order of rows, and within a row in the order of the wire;
  * both ways give the records of `records_of` for each row.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from dissector.bulk.record_columns import CarriedColumns
from dissector.capture_session import Capture
from dissector.core.arrays import Bool, Int64
from dissector.core.columns import ValueNumbers, tuples
from dissector.core.expansion import AS_OBJECT, RUN
from dissector.core.grouping import cuts
from dissector.exchange.model import Exchange
from dissector.index.exchange_table import RowKind
from dissector.index.index_columns import ENTRY
from dissector.protocol.records.batch import CONTROL, RecordHeader
from dissector.protocol.records.columns import KINDS
from dissector.protocol.records.entries import RecordsEntryKind
from dissector.protocol.schema.api_keys import ApiKey
from dissector.records.record import ExchangeRecord, records_of

if TYPE_CHECKING:
    from dissector.filter import Filter

NONE: Final = -(1 << 63)
"""In place of a timestamp or a partition that a record has not."""
ROWS_TOGETHER: Final = 1 << 12
CONTENTS_TOGETHER: Final = 16 << 20
"""Bytes of records, decompressed, that are held at once, unless one row has more."""
OBJECT: Final = 400
"""Bytes of the object of a record, about."""
LARGE: Final = 1 << 12
"""Bytes of a record from which it is copied by itself: to copy small ones out of a copy of all is faster."""
BYTES_TOGETHER: Final = 1 << 23
"""Rows, and bytes of their frames, whose records are read together."""
_CARRIERS: Final = (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.SHARE_FETCH, ApiKey.FETCH_SNAPSHOT)
_MESSAGE: Final = KINDS.index(RecordsEntryKind.MESSAGE)


class RecordPlaces(NamedTuple):
    """Records, `(n,)` each."""

    row: Int64
    """The row that carries it."""
    place: Int64
    """Which of the row's records it is, from 0."""
    offset: Int64
    timestamp: Int64
    """Milliseconds since 1970, or `NONE`."""
    topic: Int64
    """A number in `RecordList.topics`."""
    partition: Int64
    key_size: Int64
    """-1 for null, as in `value_size`."""
    value_size: Int64

    @classmethod
    def none(cls) -> "RecordPlaces":
        """No records."""
        return cls(*(np.zeros(0, np.int64) for _ in cls._fields))

    def at(self, which: Int64 | Bool) -> "RecordPlaces":
        """Some of them."""
        return RecordPlaces(*(column[which] for column in self))

    @classmethod
    def joined(cls, parts: "list[RecordPlaces]") -> "RecordPlaces":
        """All records of some."""
        return cls(*map(np.concatenate, zip(*parts, strict=True))) if parts else cls.none()


class RecordStep(NamedTuple):
    """Records of some rows; all rows before `upto` are done."""

    upto: int
    places: RecordPlaces


class CarriedRecord(NamedTuple):
    """A record and the row that carries it."""

    row: int
    place: int
    record: ExchangeRecord


class RecordList:
    """The records of a capture that match a filter, or all."""

    def __init__(self, capture: Capture, filter: "Filter | None" = None) -> None:
        self._capture = capture
        self._filter = filter
        self._topics = ValueNumbers[str]()
        self.topics: Final = self._topics.values
        """Names of topics by the numbers in columns."""
        capture.connections.learn()

    def steps(self, start: int = 0, stop: int | None = None) -> Iterator[RecordStep]:
        """Find the records of the rows from `start` to before `stop`, some rows at a time."""
        per_record = self._filter is not None and self._filter.is_per_record
        for upto, rows, sure in self._parts(start, stop):
            if not per_record:
                yield RecordStep(upto, self.places(rows))
                continue
            all_of, some_of = self.places(rows[sure]), self._places_of(self._matching(rows[~sure]))
            found = RecordPlaces.joined([all_of, some_of])
            yield RecordStep(upto, found.at(np.lexsort((found.place, found.row))))

    def records(self, start: int = 0, stop: int | None = None) -> Iterator[CarriedRecord]:
        """Yield the records of these rows with their contents."""
        per_record = self._filter is not None and self._filter.is_per_record
        for _, rows, sure in self._parts(start, stop):
            if not per_record or sure.all():
                yield from self.contents(rows)
            elif not sure.any():
                yield from self._matching(rows)
            else:
                for row, is_sure in tuples(rows, sure):
                    one = np.array([row])
                    yield from self.contents(one) if is_sure else self._matching(one)

    def of_rows(self, rows: Int64) -> Iterator[CarriedRecord]:
        """Yield the records of rows, ascending, that match: of a capture that grows."""
        self._capture.connections.learn()
        if self._filter is not None:
            rows = self._capture.matching(self._filter, rows)
        for some in _cut(self._carrying(rows), self._capture.index.sizes):
            is_plain = self._filter is None or not self._filter.is_per_record
            yield from self.contents(some) if is_plain else self._matching(some)

    def _parts(self, start: int, stop: int | None) -> Iterator[tuple[int, Int64, Bool]]:
        """Yield some rows that may have records, which of them match with all of these, and the row behind them."""
        end = len(self._capture) if stop is None else min(stop, len(self._capture))
        for upto, rows, sure in self._selected(start, end):
            carrying = np.isin(rows, self._carrying(rows), assume_unique=True)
            rows, sure, at = rows[carrying], sure[carrying], 0
            for some in _cut(rows, self._capture.index.sizes):
                yield int(some[-1]) + 1, some, sure[at : at + len(some)]
                at += len(some)
            yield upto, rows[:0], sure[:0]

    def _selected(self, start: int, end: int) -> Iterator[tuple[int, Int64, Bool]]:
        """Yield rows that match, or may have records that do."""
        if self._filter is None or self._filter.is_per_record:
            for first in range(start, end, ROWS_TOGETHER):
                upto = min(first + ROWS_TOGETHER, end)
                yield upto, *self._candidates(np.arange(first, upto))
            return
        for step in self._capture.select(self._filter, start, end):
            yield step.upto, step.rows, np.ones(len(step.rows), np.bool_)

    def _candidates(self, rows: Int64) -> tuple[Int64, Bool]:
        """Return those of some rows that may have records that match, and which have no others."""
        if self._filter is None:
            return rows, np.ones(len(rows), np.bool_)
        entries, columns = self._capture.index.field_columns(rows, reads_messages=True)
        results = np.concatenate([np.ones(entries, np.int64), self._filter.evaluate_records(columns).astype(np.int64)])
        return rows[results > 0], results[results > 0] == 2

    def _carrying(self, rows: Int64) -> Int64:
        """Return those of some rows that may carry records."""
        if not len(rows):
            return rows
        columns = self._capture.index.numbers(rows)
        is_exchange = columns.kind == RowKind.EXCHANGE
        may = np.isin(columns.api_key, _CARRIERS) | (is_exchange & (columns.api_key < 0)) | (columns.kind == ENTRY)
        found: Int64 = rows[may]
        return found

    def _matching(self, rows: Int64) -> Iterator[CarriedRecord]:
        """Yield those records of rows that match."""
        assert self._filter is not None
        subject, start_ns = _Subject(self._capture), self._capture.start_ns
        for found in self.contents(rows):
            if self._filter.matches_record(subject.of(found), start_ns):
                yield found

    # Columns.

    def places(self, rows: Int64) -> RecordPlaces:
        """Return the records of rows, ascending, that may carry some, whatever the filter says."""
        if not len(rows):
            return RecordPlaces.none()
        reading, parts = _NativeReading(self._capture, rows), []
        for carried in reading.native():
            records = carried.records
            at = rows[carried.row[records.entry]]
            topics = np.array([*map(self._topics.of, carried.topic)], np.int64)
            parts.append(RecordPlaces(
                at, np.zeros(len(at), np.int64), records.offset.copy(), records.timestamp.copy(),
                topics[records.entry] if len(topics) else at[:0], carried.partition[records.entry].astype(np.int64),
                records.key_size.copy(), records.value_size.copy(),
            ))  # fmt: skip
        left = reading.rows
        native = RecordPlaces.joined(parts)
        native = native.at(~np.isin(native.row, left))
        found = RecordPlaces.joined([native, self._places_of(self._decoded(left))])
        found = found.at(np.argsort(found.row, kind="stable"))
        return found._replace(place=np.arange(len(found.row)) - np.searchsorted(found.row, found.row))

    def _places_of(self, records: Iterator[CarriedRecord]) -> RecordPlaces:
        """Return columns of records that were read."""
        rows = [
            (
                row, place, it.offset, NONE if it.timestamp is None else it.timestamp, self._topics.of(it.topic),
                NONE if it.partition is None else it.partition, -1 if it.key is None else len(it.key),
                -1 if it.value is None else len(it.value),
            )
            for row, place, it in records
        ]  # fmt: skip
        return RecordPlaces(*np.array(rows, np.int64).reshape(-1, len(RecordPlaces._fields)).T.copy())

    # Contents.

    def contents(self, rows: Int64) -> Iterator[CarriedRecord]:
        """Yield the records of rows, ascending, that may carry some, whatever the filter says."""
        start, count = 0, len(rows)
        while start < len(rows):
            some = rows[start : start + count]
            found = self._read_natively(some)
            if isinstance(found, int):
                count = found
                continue
            by_row, reading, room = found
            yield from self._in_order(some, by_row, reading)
            start += count
            if room > CONTENTS_TOGETHER // 2:
                count *= 2

    def _read_natively(self, rows: Int64) -> "tuple[dict[int, list[ExchangeRecord]], _NativeReading, int] | int":
        """Read rows: the records of those that can be read natively, the reading, and the bytes of contents for which
        there was still room. How many rows to take instead where these hold too much: what little compressed bytes hold
        is known only then."""
        reading = _NativeReading(self._capture, rows)
        by_row: dict[int, list[ExchangeRecord]] = {}
        room = CONTENTS_TOGETHER
        for carried in reading.native():
            room -= len(carried.records.data) + OBJECT * len(carried.records.entry)
            if room < 0 and len(rows) > 1 and by_row:
                return min(len(by_row), len(rows) - 1)
            for row, record in self._of_columns(carried, rows):
                by_row.setdefault(row, []).append(record)
        if by_row:
            RUN.take_read(int(self._capture.index.sizes(rows).sum()), sum(map(len, by_row.values())), AS_OBJECT)
        return by_row, reading, room

    def _in_order(
        self, rows: Int64, by_row: dict[int, list[ExchangeRecord]], reading: "_NativeReading"
    ) -> Iterator[CarriedRecord]:
        left = set(reading.rows.tolist())
        decoded = self._decoded(reading.rows)
        waiting = next(decoded, None)
        for row in rows.tolist():
            if row not in left:
                for place, record in enumerate(by_row.pop(row, ())):
                    yield CarriedRecord(row, place, record)
                continue
            while waiting is not None and waiting.row == row:
                yield waiting
                waiting = next(decoded, None)

    def _of_columns(self, carried: CarriedColumns, rows: Int64) -> Iterator[tuple[int, ExchangeRecord]]:
        records, opener = carried.records, self._capture.opener
        if not len(records.entry):
            return
        is_large = len(records.data) > LARGE * len(records.entry)
        data = records.data.data if is_large else records.data.tobytes()
        names = _contents(data, records.header_key, records.header_key_size)
        header_values = _contents(data, records.header_value, records.header_value_size)
        headers = [
            RecordHeader((name or b"").decode("utf-8", "surrogateescape"), content)
            for name, content in zip(names, header_values, strict=True)
        ]
        is_control = (records.entries["attributes"] & CONTROL != 0).tolist()
        is_produced = (self._capture.index.numbers(rows).api_key == ApiKey.PRODUCE)[carried.row].tolist()
        of_batch = list(zip(
            rows[carried.row].tolist(), carried.topic, carried.partition.tolist(), is_control, is_produced, strict=True
        ))  # fmt: skip
        columns = (records.entry, records.offset, records.timestamp, records.first_header, records.headers)
        keys = _contents(data, records.key, records.key_size)
        values = _contents(data, records.value, records.value_size)
        numbers = tuples(*columns)
        for (entry, offset, timestamp, first, count), key, value in zip(numbers, keys, values, strict=True):
            row, topic, partition, control, produced = of_batch[entry]
            yield row, ExchangeRecord(
                topic, partition, offset, timestamp, key, value, headers[first : first + count] if count else (),
                opener, is_control=control, is_produced=produced,
            )  # fmt: skip

    def _decoded(self, rows: Int64) -> Iterator[CarriedRecord]:
        """Decode rows one by one."""
        for row, exchange in zip(rows.tolist(), self._capture.at(rows), strict=True):
            for place, record in enumerate(records_of(exchange, self._capture.opener)):
                yield CarriedRecord(row, place, record)


class _NativeReading:
    """Reads rows natively, and knows afterwards which `rows` have to be decoded."""

    def __init__(self, capture: Capture, rows: Int64) -> None:
        self._capture = capture
        self._rows = rows
        columns = capture.index.numbers(rows)
        is_plain = (columns.kind == RowKind.EXCHANGE) & (columns.api_key >= 0)
        plain = np.flatnonzero(is_plain)
        self._plain = plain[capture.messages.may_read_records(rows[plain])] if len(plain) else plain
        """Places of the rows to be read natively."""
        has_side = np.where(columns.api_key == ApiKey.PRODUCE, columns.request_size, columns.response_size) >= 0
        self._needs_decoding = ~is_plain | has_side
        """Which rows must be decoded, until they turn out to be plain. One without the message has no records."""

    @property
    def rows(self) -> Int64:
        """The rows that have to be decoded."""
        found: Int64 = self._rows[self._needs_decoding]
        return found

    def native(self) -> Iterator[CarriedColumns]:
        """Yield the records of plain rows; `row` of each batch is a place among all rows."""

        def read(at: Int64) -> None:
            self._needs_decoding[self._plain[at]] = False

        for carried in self._capture.messages.records(self._rows[self._plain], read):
            placed = carried._replace(row=self._plain[carried.row])
            old = placed.row[placed.records.entries["kind"] == _MESSAGE]
            self._needs_decoding[placed.refused] = True
            self._needs_decoding[old] = True
            yield placed


class _Subject:
    """What a filter is applied to: one record after the other. An exchange is decoded once, when it is asked for."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._found: CarriedRecord | None = None
        self._decoded: Exchange | None = None

    def of(self, found: CarriedRecord) -> "_Subject":
        """Take the next record."""
        if self._found is None or self._found.row != found.row:
            self._decoded = None
        self._found = found
        return self

    @property
    def record(self) -> ExchangeRecord:
        """The record."""
        assert self._found is not None
        return self._found.record

    @property
    def exchange(self) -> Exchange:
        """Its exchange."""
        assert self._found is not None
        if self._decoded is None:
            self._decoded = self._capture.exchange(self._found.row)
        return self._decoded


def _contents(data: bytes | memoryview, starts: Int64, sizes: Int64) -> list[bytes | None]:
    pairs = tuples(starts, sizes)
    if isinstance(data, memoryview):
        return [bytes(data[start : start + size]) if size >= 0 else None for start, size in pairs]
    return [data[start : start + size] if size >= 0 else None for start, size in pairs]


def _cut(rows: Int64, sizes_of: Callable[[Int64], Int64]) -> Iterator[Int64]:
    """Yield rows in parts of a bounded size."""
    for part in np.split(rows, cuts(sizes_of(rows), BYTES_TOGETHER)) if len(rows) else ():
        for first in range(0, len(part), ROWS_TOGETHER):
            yield part[first : first + ROWS_TOGETHER]
