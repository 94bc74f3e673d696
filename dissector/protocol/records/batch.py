"""Record batches, magic 2: the header, its bits, and the records as plain values.

Layout: Kafka's documentation, "Record Batch" and "Record" (KIP-98, KIP-32, KIP-511 for the delete horizon). A `records`
field is a run of batches; the last one of a Fetch may be cut off in the middle, which is normal.

Invariants:
  * the parts that `split` gives tile the field's bytes;
  * values are those of `tracing` for the same bytes: a property test.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

import google_crc32c

from dissector.protocol.records.compression import CODECS, DecompressionError
from dissector.protocol.wire import WireError, varint, varlong

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
HEADER_FIELDS: Final = (
    ("base_offset", "INT64", 8), ("batch_length", "INT32", 4), ("partition_leader_epoch", "INT32", 4),
    ("magic", "INT8", 1), ("crc", "UINT32", 4), ("attributes", "INT16", 2), ("last_offset_delta", "INT32", 4),
    ("base_timestamp", "INT64", 8), ("max_timestamp", "INT64", 8), ("producer_id", "INT64", 8),
    ("producer_epoch", "INT16", 2), ("base_sequence", "INT32", 4), ("records_count", "INT32", 4),
)  # fmt: skip
LOG_OVERHEAD: Final = 12
"""base_offset and batch_length: what the length does not count."""
MAGIC_AT: Final = 16
CRC_FROM: Final = 21
"""The checksum covers all from the attributes on."""
LEAST_RECORD: Final = 7


class PartKind(Enum):
    """What a stretch of a `records` field is."""

    BATCH = "batch"
    MESSAGE_SET = "message_set"
    """Magic 0 or 1, before Kafka 0.11."""
    TRUNCATED = "truncated"
    """A batch whose end is not there."""
    UNKNOWN = "unknown"


class Part(NamedTuple):
    """One stretch of a `records` field, offsets counted in it."""

    kind: PartKind
    start: int
    end: int


def split(data: bytes) -> Iterator[Part]:
    """The batches of a `records` field, and what is none; the parts tile it."""
    at = 0
    while at < len(data):
        if len(data) - at <= MAGIC_AT:
            yield Part(PartKind.TRUNCATED, at, len(data))
            return
        size = int.from_bytes(data[at + 8 : at + LOG_OVERHEAD], "big", signed=True)
        magic = data[at + MAGIC_AT]
        end = at + LOG_OVERHEAD + size
        if magic < 2:
            yield Part(PartKind.MESSAGE_SET, at, len(data))
            return
        if magic > 2 or size < HEADER.size - LOG_OVERHEAD:
            yield Part(PartKind.UNKNOWN, at, len(data))
            return
        if end > len(data):
            yield Part(PartKind.TRUNCATED, at, len(data))
            return
        yield Part(PartKind.BATCH, at, end)
        at = end


class Header(NamedTuple):
    """A record's header (KIP-82)."""

    key: str
    value: bytes | None


class Record(NamedTuple):
    """A record: `offset` is absolute, `timestamp` in milliseconds since 1970."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[Header]


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch's header, read; its records are read on demand. `data` is the whole batch."""

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
        """The batch that `data` is; `split` has checked that it is whole."""
        return cls(data, *HEADER.unpack_from(data))

    @property
    def crc_valid(self) -> bool:
        """Whether the CRC-32C over the attributes and all after them is the one in the header."""
        return bool(google_crc32c.value(self.data[CRC_FROM:]) == self.crc)

    @property
    def codec(self) -> int:
        return self.attributes & 0x07

    @property
    def compression(self) -> str:
        """The codec's name, or ``unknown(5)``."""
        return CODECS[self.codec].name if self.codec in CODECS else f"unknown({self.codec})"

    @property
    def timestamp_type(self) -> str:
        return "LogAppendTime" if self.attributes & 0x08 else "CreateTime"

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & 0x10)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & 0x20)

    @property
    def section(self) -> bytes:
        """The bytes after the header, as they are on the wire."""
        return self.data[HEADER.size :]

    def decompressed(self, limit: int) -> bytes:
        """The record section in plain. Raises `DecompressionError`."""
        if self.codec not in CODECS:
            raise DecompressionError(f"codec {self.codec} is not known")
        return CODECS[self.codec].decompress(self.section, limit)

    def records(self, limit: int) -> list[Record]:
        """All records. Raises `DecompressionError` or `WireError`."""
        return read_records(self.decompressed(limit), self)


def read_records(data: bytes, batch: Batch) -> list[Record]:
    """The records of a plain section."""
    count = batch.records_count
    if count < 0 or count * LEAST_RECORD > len(data):
        raise WireError(f"{count} records can't be in {len(data)} bytes", 0)
    appended = batch.max_timestamp if batch.attributes & 0x08 else None
    records: list[Record] = []
    at = 0
    for _ in range(count):
        size, at = varint(data, at)
        end = at + size
        if size < 0 or end > len(data):
            raise WireError("record runs past its section", at)
        timestamp, at = varlong(data, at + 1)
        offset, at = varint(data, at)
        key, at = read_blob(data, at, end)
        value, at = read_blob(data, at, end)
        headers, at = _headers(data, at, end)
        if at != end:
            raise WireError("record is longer than its fields", at)
        when = batch.base_timestamp + timestamp if appended is None else appended
        records.append(Record(batch.base_offset + offset, when, key, value, headers))
    if at != len(data):
        raise WireError("bytes after the last record", at)
    return records


def read_blob(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    """Bytes after their length as a varint; a negative length is null."""
    size, at = varint(data, at)
    if size < 0:
        return None, at
    if size > end - at:
        raise WireError("length runs past its record", at)
    return data[at : at + size], at + size


def _headers(data: bytes, at: int, end: int) -> tuple[list[Header], int]:
    count, at = varint(data, at)
    if count < 0 or count * 2 > end - at:
        raise WireError("header count runs past its record", at)
    headers: list[Header] = []
    for _ in range(count):
        key, at = read_blob(data, at, end)
        value, at = read_blob(data, at, end)
        if key is None:
            raise WireError("header without a key", at)
        headers.append(Header(key.decode("utf-8", "surrogateescape"), value))
    return headers, at
