"""Record batches, magic 2: the header, its attributes, and the records as plain values, one batch at a time. For many
batches there is `column_reader`, which leaves what it refuses to this module.

Batches of few records, and those that the kernel refuses, are read the careful way, in Python: it says what is wrong.

Layout: Kafka's documentation, "Record Batch" and "Record" (KIP-98, KIP-32, KIP-534 for the delete horizon).

Invariant: the values are those of `tracing` for the same bytes (a property test).
"""

import struct
from itertools import repeat
from typing import Final, NamedTuple

import google_crc32c
import numpy as np

from dissector.core.arrays import Int64
from dissector.protocol.records.columns import section_columns
from dissector.protocol.records.compression import CODEC_MASK, DecompressionBudget, codec_name, over_parts
from dissector.protocol.records.entries import LEAST_RECORD
from dissector.protocol.wire import WireError, varint, varlong

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
HEADER_FIELDS: Final = (
    ("base_offset", "INT64", 8), ("batch_length", "INT32", 4), ("partition_leader_epoch", "INT32", 4),
    ("magic", "INT8", 1), ("crc", "UINT32", 4), ("attributes", "INT16", 2), ("last_offset_delta", "INT32", 4),
    ("base_timestamp", "INT64", 8), ("max_timestamp", "INT64", 8), ("producer_id", "INT64", 8),
    ("producer_epoch", "INT16", 2), ("base_sequence", "INT32", 4), ("records_count", "INT32", 4),
)  # fmt: skip
HEADER_COLUMNS: Final = np.dtype([
    (name, {"INT8": "i1", "INT16": ">i2", "INT32": ">i4", "UINT32": ">u4", "INT64": ">i8"}[kind])
    for name, kind, _ in HEADER_FIELDS
])  # fmt: skip
"""The headers of many batches as an array."""
CRC_FROM: Final = 21
"""Offset from which the CRC covers a batch: that of the attributes."""
MANY: Final = 10
"""Records from which the kernel takes less time, what calls and arrays take included."""
MASK: Final = b"*"
"""What is in place of each byte of a secret."""
NO_PRODUCER: Final = -1
"""The id and the epoch of a producer that is not idempotent (KIP-98)."""
NO_SEQUENCE: Final = -1
SEQUENCES: Final = 1 << 31
"""Sequence numbers wrap around to 0 at this one."""
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40


class RecordHeader(NamedTuple):
    """A record's header (KIP-82)."""

    key: str
    value: bytes | None


class Record(NamedTuple):
    """A record: `offset` is absolute, `timestamp` in milliseconds since 1970."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[RecordHeader]


class Batch(NamedTuple):
    """A batch. Its header is read; its records are read on demand. `data` is the whole batch."""

    data: bytes
    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @classmethod
    def read(cls, data: bytes) -> "Batch":
        """Read a batch's header; `split_entries` has checked that the batch is complete."""
        return cls(data, *HEADER.unpack_from(data))

    @property
    def crc_valid(self) -> bool:
        """Whether the header has the CRC-32C of the bytes from the attributes on."""
        return bool(google_crc32c.value(self.data[CRC_FROM:]) == self.crc)

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def compression(self) -> str:
        """The codec's name, or ``unknown(5)``."""
        return codec_name(self.codec)

    @property
    def is_append_time(self) -> bool:
        """Whether the timestamp of every record is `max_timestamp`, the time at which the broker appended them."""
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def timestamp_type(self) -> str:
        return "LogAppendTime" if self.is_append_time else "CreateTime"

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def has_delete_horizon(self) -> bool:
        """Whether `base_timestamp` is the time from which tombstones may be deleted (KIP-534)."""
        return bool(self.attributes & DELETE_HORIZON)

    @property
    def section(self) -> bytes:
        """The bytes after the header, as on the wire."""
        return self.data[HEADER.size :]

    @property
    def is_masked(self) -> bool:
        """Whether the record section is nothing but asterisks, as a secret is shown."""
        if self.data[HEADER.size : HEADER.size + 1] != MASK:
            return False
        section = self.data[HEADER.size :]
        return section.count(MASK) == len(section)

    def decompressed(self, budget: DecompressionBudget) -> bytes:
        """Return the decompressed record section. Raises `DecompressionError`."""
        plain = budget.decompressed(self.codec, self.section)
        budget.admit(self.most_records(plain), len(self.data) - HEADER.size)
        return plain

    def most_records(self, plain: bytes) -> int:
        """Return how many records a decompressed section may have: the header's count, limited by its size. A negative
        count is none: it would give other batches a larger budget."""
        return max(0, min(self.records_count, len(plain) // LEAST_RECORD))

    def records(self, budget: DecompressionBudget) -> list[Record]:
        """Return all records. Raises `DecompressionError` or `WireError`."""
        return read_records(self.decompressed(budget), self, budget)


def read_records(data: bytes, batch: Batch, budget: DecompressionBudget | None = None) -> list[Record]:
    """Return the records of a decompressed section, whose headers `budget` is charged with. Raises `WireError`."""
    count = batch.records_count
    if count < 0 or count * LEAST_RECORD > len(data):
        raise WireError(f"{count} records can't be in {len(data)} bytes", 0)
    most_headers = len(data) if budget is None else budget.parts
    found = _native_records(data, batch, most_headers) if count >= MANY else None
    records, headers = found or _records(data, batch, count, most_headers)
    if budget is not None:
        budget.admit_parts(headers, len(data))
    return records


def _native_records(data: bytes, batch: Batch, most_headers: int) -> tuple[list[Record], int] | None:
    """Return what `_records` returns; None if that is for the careful way."""
    base = batch.base_offset, batch.base_timestamp
    found = section_columns(data, batch.records_count, batch.attributes, base, batch.max_timestamp, most_headers)
    if found is None:
        return None
    _, offset, timestamp, key, key_size, value, value_size, first, count = found.records
    keys, values = _contents(data, key, key_size), _contents(data, value, value_size)
    headers = [
        tuple.__new__(RecordHeader, ((name or b"").decode("utf-8", "surrogateescape"), content))
        for name, content in zip(*(_contents(data, *found.headers[n : n + 2]) for n in (0, 2)), strict=True)
    ]
    ranges = zip(first.tolist(), (first + count).tolist(), strict=True)
    of_records = [headers[start:end] for start, end in ranges] if headers else [[] for _ in keys]
    fields = zip(offset.tolist(), timestamp.tolist(), keys, values, of_records, strict=True)
    return list(map(tuple.__new__, repeat(Record), fields)), len(headers)


def _contents(data: bytes, starts: Int64, sizes: Int64) -> list[bytes | None]:
    ends = (starts + sizes).tolist()  # one before the start is that of null
    return [data[start:end] if start <= end else None for start, end in zip(starts.tolist(), ends, strict=True)]


def _records(data: bytes, batch: Batch, count: int, most_headers: int) -> tuple[list[Record], int]:
    """Return the records and how many headers they have, at most `most_headers`. Raises `LimitError`."""
    records: list[Record] = []
    at = all_headers = 0
    for _ in range(count):
        size, at = varint(data, at)
        end = at + size
        if not 0 <= size <= len(data) - at:
            raise WireError("record runs past its section", at)
        since, at = varlong(data, at + 1)  # after the attributes, which have no bits yet
        delta, at = varint(data, at)
        key, at = _content(data, at, end)
        value, at = _content(data, at, end)
        headers, at = _headers(data, at, end, most_headers - all_headers)
        if at != end:
            raise WireError("record is longer than its fields, or shorter", at)
        timestamp = batch.max_timestamp if batch.is_append_time else batch.base_timestamp + since
        records.append(Record(batch.base_offset + delta, timestamp, key, value, headers))
        all_headers += len(headers)
    if at != len(data):
        raise WireError("bytes after the last record", at)
    return records, all_headers


def _content(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    size, at = varint(data, at)
    if size < 0:
        return None, at
    if size > end - at:
        raise WireError("length runs past its record", at)
    return data[at : at + size], at + size


def _headers(data: bytes, at: int, end: int, most: int) -> tuple[list[RecordHeader], int]:
    count, at = varint(data, at)
    if not 0 <= count <= end - at:
        raise WireError("header count runs past its record", at)
    if count > most:
        raise over_parts("headers", at)
    headers: list[RecordHeader] = []
    for _ in range(count):
        key, at = _content(data, at, end)
        if key is None:
            raise WireError("header without a key", at)
        value, at = _content(data, at, end)
        headers.append(RecordHeader(key.decode("utf-8", "surrogateescape"), value))
    return headers, at
