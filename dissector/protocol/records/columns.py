"""Records as columns of numbers and positions, and what is done with them natively. `column_reader` fills them.

The layouts of `ENTRY` and of the columns are those of `kernel/records.c`.
"""

from collections.abc import Iterator
from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dissector.core.arrays import Bool, Int64, UInt8
from dissector.core.kernel import kernel_function
from dissector.protocol.records.entries import LEAST_RECORD, RecordsEntryKind

split_records = kernel_function("split_records", "PqPPqPPqq")
open_sections = kernel_function("open_sections", "PqPqqPqP")
read_entries = kernel_function("read_records", "PqPqqqPqPqP")
_check_batches = kernel_function("check_batches", "PqPqP")
KINDS: Final = (
    RecordsEntryKind.BATCH, RecordsEntryKind.MESSAGE, RecordsEntryKind.TRUNCATED, RecordsEntryKind.UNKNOWN,
)  # fmt: skip
"""Of entries, by the number in the column `kind`."""
ENTRY: Final = np.dtype([(name, np.int64) for name in (
    "field", "kind", "start", "end",
    "base_offset", "partition_leader_epoch", "crc", "attributes", "last_offset_delta", "base_timestamp",
    "max_timestamp", "producer_id", "producer_epoch", "base_sequence", "records_count",
    "section_start", "section_end",
    "error", "error_at", "first_record", "records", "first_header", "headers",
)])  # fmt: skip
"""An entry of a field: whose, its kind and position; the header of a batch; where its plain section is in the data of
the columns; a `BatchError` with its position; its rows among records and headers. It is `KernelEntry` in C."""
_ENTRY_AT: Final = {name: at for at, name in enumerate(ENTRY.names or ())}
_OF_SECTION: Final = [
    _ENTRY_AT[name]
    for name in ("base_offset", "base_timestamp", "attributes", "max_timestamp", "records_count", "section_end")
]
Entries = npt.NDArray[Any]
"""An array of `ENTRY`."""


def column(entries: Entries, name: str) -> Int64:
    """One column of entries: with its type, which an array with named columns has not, arithmetic is checked."""
    found: Int64 = entries[name]
    return found


class BatchError(IntEnum):
    """Why an entry added no record."""

    NONE = 0
    NOT_A_BATCH = 1
    REFUSED = 2
    """It is masked, can't be decompressed, or exceeds the budget of its frame."""
    DAMAGED = 3
    TOO_WIDE = 4
    """An offset or a timestamp does not fit into 64 bits. The careful way reads it."""


RECORD_COLUMNS: Final = 9
"""Columns of records in `RecordColumns`, before those of headers."""
HEADER_COLUMNS: Final = 4


class RecordColumns(NamedTuple):
    """Records of some entries, in the order of the wire. Positions are in `data`; sizes of null are -1."""

    data: UInt8
    entries: Entries
    entry: Int64
    """The number of each record's batch in `entries`."""
    offset: Int64
    """Absolute, as is the timestamp, in milliseconds since 1970."""
    timestamp: Int64
    key: Int64
    """Positions, as all columns of keys and values; each has its sizes behind it."""
    key_size: Int64
    value: Int64
    value_size: Int64
    first_header: Int64
    """The number of each record's first header among all."""
    headers: Int64
    """How many headers each record has."""
    header_key: Int64
    """A header's key is never null."""
    header_key_size: Int64
    header_value: Int64
    header_value_size: Int64


def split_fields(
    data: UInt8, starts: Int64, ends: Int64, fields: range, into: Entries, most_bytes: int
) -> Iterator[Entries]:
    """Yield the entries of some of the fields `data[starts[n]:ends[n]]`, as many at a time as there is room for, and no
    more once they have so many bytes. They are valid until the next.

    Raises `ValueError` if a field is not inside the data."""
    place = np.array([fields.start, -1], np.int64)
    where = data.ctypes.data, len(data), starts.ctypes.data, ends.ctypes.data, fields.stop, place.ctypes.data
    while place[0] < fields.stop:
        found = split_records()(*where, into.ctypes.data, len(into), most_bytes)
        if found < 0:
            raise ValueError(f"field {place[0]} is not inside the data")
        yield into[:found]


class SectionColumns(NamedTuple):
    """The records of one section as rows of columns, in the order of `RecordColumns`."""

    records: Int64
    headers: Int64


def section_columns(
    data: bytes, count: int, attributes: int, base: tuple[int, int], max_timestamp: int, most_headers: int
) -> SectionColumns | None:
    """Read `count` records of a decompressed section; None if that is for the careful way. `base` are the offset and
    the timestamp that records count from."""
    if not 0 <= count * LEAST_RECORD <= len(data):
        return None
    entry = np.zeros(len(_ENTRY_AT), np.int64)
    entry[_OF_SECTION] = *base, attributes, max_timestamp, count, len(data)
    source, records, filled = (
        np.frombuffer(data, np.uint8),
        np.empty((RECORD_COLUMNS, count), np.int64),
        np.zeros(2, np.int64),
    )
    for room in (count, len(data) // 2):  # none can have more
        headers = np.empty((HEADER_COLUMNS, room), np.int64)
        where = source.ctypes.data, len(data), entry.ctypes.data, 0, 1, most_headers, records.ctypes.data, count
        if read_entries()(*where, headers.ctypes.data, room, filled.ctypes.data):
            break
    return None if entry[_ENTRY_AT["error"]] else SectionColumns(records, headers[:, : filled[1]])


def valid_checksums(data: UInt8, entries: Entries) -> Bool:
    """Return whether entries are batches whose header has the CRC-32C of their bytes, which are in `data`.

    Raises `ValueError` if one is not inside the data."""
    valid = np.zeros(len(entries), np.uint8)
    checked = _check_batches()(data.ctypes.data, len(data), entries.ctypes.data, len(entries), valid.ctypes.data)
    if checked < len(entries):
        raise ValueError(f"entry {checked} is not inside the data")
    return valid.view(np.bool_)
