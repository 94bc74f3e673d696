"""Reads the records of many `records` fields into columns, natively: the fast way for whoever reads many.
`batch.read_records` is the careful way, which makes an object of each record and says what is wrong.

Invariants, held by property tests over fields of any bytes:
  * the values are those of `batch.read_records` for the same batch, under the same budget of a frame;
  * a batch that can't be read, or has a number that 64 bits can't hold, is an error and adds no record.
Old messages (magic 0, 1) and truncated batches are entries without records, and charge no budget.

Buffers are reused: the columns of one step are valid until the next. They hold about `RECORDS` rows, more only for a
batch that has more: budgets bound those by `Limits.frame_records`, decompressed bytes by `Limits.decompressed_size`.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import numpy as np

from dissector.core import limits
from dissector.core.arrays import Int64, UInt8
from dissector.core.expansion import IN_COLUMNS, RUN
from dissector.protocol.records.batch import Batch, read_records
from dissector.protocol.records.columns import (
    ENTRY,
    HEADER_COLUMNS,
    KINDS,
    RECORD_COLUMNS,
    BatchError,
    Entries,
    RecordColumns,
    read_entries,
    split_fields,
    split_records,
)
from dissector.protocol.records.compression import DecompressionBudget, DecompressionError
from dissector.protocol.records.entries import RecordsEntryKind
from dissector.protocol.records.opened_sections import OpenedSections, within_budgets
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.wire import WireError

ENTRIES: Final = 4096
"""At most so many entries of fields in one step, ..."""
BYTES: Final = 1 << 20
"""... and no more once they have so many bytes: what a processor's cache holds."""
BYTES_BEHIND_DOUBT: Final = 1 << 14
"""The bytes of fields that are read together behind a frame that needed a closer look: the next one may as well."""
NO_LIMIT: Final = 1 << 62
RECORDS: Final = 1 << 16
HEADERS: Final = 1 << 16
_BATCH: Final = KINDS.index(RecordsEntryKind.BATCH)


class RecordReader:
    """Reads fields of many frames. It keeps its buffers for the next ones."""

    def __init__(self, bounds: limits.Limits = limits.DEFAULT) -> None:
        self._bounds = bounds
        self._entries = np.empty(ENTRIES, ENTRY)
        self._records = np.empty((RECORD_COLUMNS, RECORDS), np.int64)
        self._headers = np.empty((HEADER_COLUMNS, HEADERS), np.int64)
        self._filled = np.zeros(2, np.int64)
        self._plain = np.empty(0, np.uint8)
        self._opened = OpenedSections(bounds)

    def read(self, data: UInt8, starts: Int64, ends: Int64, frames: Int64) -> Iterator[RecordColumns]:
        """Yield the records of the fields `data[starts[n]:ends[n]]`, some at a time. `frames` are the numbers of the
        frames that the fields are in, which ascend: fields of a frame share a budget. Null is a field that ends before
        it starts.

        Raises `ValueError` if a field is not inside the data."""
        starts, ends = np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(ends, np.int64)
        edges = np.append(np.flatnonzero(np.diff(frames, prepend=frames[:1] - 1)), len(starts))
        sizes = np.append(0, np.cumsum(np.maximum(ends - starts, 0)))[edges]
        at, most = 0, BYTES
        while at < len(edges) - 1:
            stop = max(at + 1, int(np.searchsorted(sizes, sizes[at] + most, side="right")) - 1)
            done, is_doubtful, found = self._whole_frames(data, starts, ends, frames, edges[at : stop + 1])
            yield found
            at, most = at + done, min(BYTES, 2 * most)
            if is_doubtful:
                fields = range(int(edges[at]), int(edges[at + 1]))
                yield from self._within_budgets(
                    data, split_fields(data, starts, ends, fields, self._entries, BYTES), frames
                )
                at, most = at + 1, BYTES_BEHIND_DOUBT

    def _whole_frames(
        self, data: UInt8, starts: Int64, ends: Int64, frames: Int64, edges: Int64
    ) -> tuple[int, bool, RecordColumns]:
        """Read the first frames of those whose fields begin at `edges`, the last of which is their end: up to one that
        needs a closer look, or for which there is no room. Return how many, whether the next needs that look, as one
        does for which there never is room, and their records."""
        place = np.array([edges[0], -1], np.int64)
        fields = starts.ctypes.data, ends.ctypes.data, int(edges[-1]), place.ctypes.data
        into = self._entries.ctypes.data, len(self._entries), NO_LIMIT
        split = split_records()(data.ctypes.data, len(data), *fields, *into)
        if split < 0:
            raise ValueError(f"field {place[0]} is not inside the data")
        done = int(np.searchsorted(edges, place[0], side="right")) - 1
        entries = self._entries[: np.searchsorted(self._entries["field"][:split], edges[done])]
        self._filled[:] = 0
        opened = self._opened.open(data, entries)
        read = self._fill(self._opened.data, entries, 0, opened, self._bounds.frame_records)
        some = entries[:read]
        is_good = within_budgets(some, frames[some["field"]], self._bounds)
        is_good &= (some["error"] == BatchError.NONE) | (some["kind"] != _BATCH)
        good = read if is_good.all() else int(np.argmin(is_good))
        is_doubtful = good < read or read == opened < len(entries)
        if good < len(entries):
            done = int(np.searchsorted(edges, entries[good]["field"], side="right")) - 1
            kept = int(np.searchsorted(entries["field"], edges[done]))
            if kept < read:
                self._filled[:] = entries[kept]["first_record"], entries[kept]["first_header"]
            entries = entries[:kept]
        return done, is_doubtful or not done, self._columns(self._opened.data, entries)

    def _within_budgets(self, data: UInt8, steps: Iterator[Entries], frames: Int64) -> Iterator[RecordColumns]:
        """Read fields batch by batch, as the budget of each depends on those before it. Sections are copied into one
        buffer, decompressed."""
        frame, budget = None, frame_budget(self._bounds)
        for entries in steps:
            first = used = 0
            self._filled[:] = 0
            for number, entry in enumerate(entries):
                if frames[entry["field"]] != frame:
                    frame, budget = frames[entry["field"]], frame_budget(self._bounds)
                section = self._section(data, entry, budget)
                if used and used + len(section) > len(self._plain):
                    yield self._columns(self._plain, entries[first:number])
                    first, used, self._filled[:] = number, 0, 0
                if len(section) > len(self._plain):
                    self._plain = np.empty(max(BYTES, len(section)), np.uint8)
                self._plain[used : used + len(section)] = section
                entry["section_start"], entry["section_end"] = used, used + len(section)
                used += len(section)
                while not self._added(entries[first : number + 1], budget.parts):
                    if number > first:
                        yield self._columns(self._plain, entries[first:number])
                        first, self._filled[:] = number, 0
                    else:
                        self._grow(entry)
                self._charge(entry, data, section, budget)
            yield self._columns(self._plain, entries[first:])

    def _section(self, data: UInt8, entry: Any, budget: DecompressionBudget) -> UInt8:
        """Return the plain section of a batch; an error is noted, and leaves nothing to read."""
        if entry["kind"] == _BATCH:
            batch = Batch.read(data[entry["start"] : entry["end"]].tobytes())
            if not batch.is_masked:
                try:
                    return np.frombuffer(batch.decompressed(budget), np.uint8)
                except DecompressionError:
                    pass
            entry["error"], entry["error_at"] = BatchError.REFUSED, entry["section_start"]
        return np.empty(0, np.uint8)

    def _added(self, entries: Entries, most_headers: int) -> bool:
        """Whether there was room for the records of the last entry, whose section is among the decompressed."""
        return self._fill(self._plain, entries, len(entries) - 1, len(entries), most_headers) == len(entries)

    @staticmethod
    def _charge(entry: Any, data: UInt8, section: UInt8, budget: DecompressionBudget) -> None:
        """Charge the headers of a batch, also of one that only the careful way reads."""
        if entry["error"] != BatchError.TOO_WIDE:
            budget.admit_parts(int(entry["headers"]), int(entry["start"]))
            return
        with suppress(WireError):
            read_records(section.tobytes(), Batch.read(data[entry["start"] : entry["end"]].tobytes()), budget)

    def _fill(self, data: UInt8, entries: Entries, first: int, end: int, most_headers: int) -> int:
        """Add the records of entries to the tables; return the number of the first for which there is no room."""
        records = self._records.ctypes.data, self._records.shape[1]
        headers = self._headers.ctypes.data, self._headers.shape[1]
        where = data.ctypes.data, len(data), entries.ctypes.data, first, end, most_headers
        return read_entries()(*where, *records, *headers, self._filled.ctypes.data)

    def _grow(self, entry: Any) -> None:
        """Make room for a batch that has more records or headers than the tables can have."""
        if entry["records_count"] > self._records.shape[1]:
            self._records = np.empty((RECORD_COLUMNS, int(entry["records_count"])), np.int64)
        else:
            self._headers = np.empty((HEADER_COLUMNS, 2 * self._headers.shape[1]), np.int64)

    def _columns(self, data: UInt8, entries: Entries) -> RecordColumns:
        records, headers = self._filled.tolist()
        used = data[: int(entries["section_end"].max())] if len(entries) else data[:0]  # of a buffer that may be large
        RUN.take_read(int((entries["end"] - entries["start"]).sum()), records, IN_COLUMNS)
        return RecordColumns(used, entries, *self._records[:, :records], *self._headers[:, :headers])
