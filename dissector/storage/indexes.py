"""The indexes beside a segment: `.index` (relative offset, position) and `.timeindex` (timestamp, relative offset).

Offsets are relative to the segment's base offset, which is only in its name. Neither has a magic number, so a file is
accepted if all its entries ascend and only preallocated zeros follow them.
"""

from collections.abc import Iterator, Mapping
from mmap import mmap
from typing import Final, NamedTuple

import numpy as np

from dissector.capture.errors import DamagedRange as Damaged
from dissector.core.arrays import Int64, UInt8
from dissector.protocol.message import Traced
from dissector.protocol.records.span_cursor import SpanCursor, timestamp_note
from dissector.protocol.tree import ByteSource, Node
from dissector.storage.entry import EntryPosition, LogEntry, changed_entry, stored_message

EARLIEST: Final = 946_684_800_000
LATEST: Final = 4_102_444_800_000
"""Milliseconds: the years 2000 to 2100, in which all timestamps of a file must lie."""
_HEAD: Final = 1 << 12
"""Bytes that are checked before a large file is checked completely."""
_CODES: Final = {"INT32": ">i4", "INT64": ">i8"}


class IndexLayout(NamedTuple):
    """The two fields of an entry, and the bounds of their values."""

    fields: tuple[tuple[str, str], tuple[str, str]]
    low: tuple[int, int]
    high: tuple[int, int]
    strict: bool
    """Whether each entry must exceed the one before."""

    @property
    def dtype(self) -> np.dtype[np.void]:
        return np.dtype([(name, _CODES[kind]) for name, kind in self.fields])

    def columns(self, data: bytes | mmap) -> Int64:
        """Return both fields of every whole entry, `(2, n)`."""
        table = np.frombuffer(data, self.dtype, count=len(data) // self.dtype.itemsize)
        return np.stack([table[name].astype(np.int64) for name, _ in self.fields])

    def used(self, data: bytes | mmap) -> int:
        """Return the number of entries before the zeros; 0 if the file is no such index."""
        columns = self.columns(data)
        blank = (columns == 0).all(axis=0)
        count = int(np.argmax(blank)) if blank.any() else columns.shape[1]
        if not count or not blank[count:].all():
            return 0
        entries = columns[:, :count]
        low, high = np.array([self.low]).T, np.array([self.high]).T
        believed = (entries >= low).all() and (entries <= high).all() and (np.diff(entries) >= self.strict).all()
        return count if believed else 0


_TOP: Final = (1 << 31) - 1
TIMES: Final = IndexLayout(
    (("timestamp", "INT64"), ("relative_offset", "INT32")), (EARLIEST, 0), (LATEST, _TOP), strict=False
)
OFFSETS: Final = IndexLayout((("relative_offset", "INT32"), ("position", "INT32")), (1, 1), (_TOP, _TOP), strict=True)


class IndexFile:
    """A recognized index file."""

    kind = "index"

    def __init__(self, layout: IndexLayout, count: int) -> None:
        self._layout = layout
        self._count = count
        self.damage: Damaged | None = None

    def places(self) -> Iterator[EntryPosition]:
        """Yield the positions of its entries."""
        size = self._layout.dtype.itemsize
        return (EntryPosition(at, at + size) for at in range(0, self._count * size, size))

    def entry(self, data: bytes, start: int) -> LogEntry:
        """Decode an entry: two numbers."""
        if len(data) < self._layout.dtype.itemsize:
            return changed_entry(self.kind, data, start)
        values = dict(
            zip((name for name, _ in self._layout.fields), self._layout.columns(data)[:, 0].tolist(), strict=True)
        )
        words = " · ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in values.items())
        message = stored_message(data, values.get("timestamp"), lambda: dict(values), lambda: self._tree(data))
        return LogEntry(message, None, words)

    def _tree(self, data: bytes) -> Traced:
        root = Node("entry", "", "STRUCT", 0, len(data))
        spans = SpanCursor(data, 0, len(data), 0)
        for name, kind in self._layout.fields:
            value = spans.fixed(root, name, kind)
            if name == "timestamp":
                root.children[-1].note = timestamp_note(value)
        return Traced(root, [ByteSource(0, "entry", data)], [])


def entry_of(values: Mapping[str, int]) -> LogEntry | None:
    """Return the index entry with these values; None if no index has such fields."""
    for layout in (TIMES, OFFSETS):
        names = [name for name, _ in layout.fields]
        if values.keys() == set(names):
            data = np.array([tuple(values[name] for name in names)], layout.dtype).tobytes()
            return IndexFile(layout, 1).entry(data, 0)
    return None


def may_be_index(head: UInt8) -> bool:
    """Return whether a file that begins with these bytes and goes on may be an index."""
    return any(
        len(head) < size or layout.used(head[: min(_HEAD, len(head)) // size * size].tobytes())
        for layout, size in ((layout, layout.dtype.itemsize) for layout in (TIMES, OFFSETS))
    )


def read_index(data: mmap) -> IndexFile | None:
    """Return a file as an index, or None if it is none."""
    for layout in (TIMES, OFFSETS):
        size = layout.dtype.itemsize
        if len(data) % size == 0 and layout.used(data[: _HEAD // size * size]) and (count := layout.used(data)):
            return IndexFile(layout, count)
    return None
