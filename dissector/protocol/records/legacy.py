"""Message sets, magic 0 and 1: the format before Kafka 0.11, which old clients still produce and fetch.

A message is an offset, a size, a CRC-32 over all that follows it, magic, attributes, a timestamp since magic 1
(KIP-32), key and value. A compressed message is a *wrapper*: its value is a message set. Offsets inside a wrapper of
magic 1 are relative to the first (KIP-31), and the wrapper has the last one's; those of magic 0 are absolute.

Invariant: the values are those of `legacy_tracing` for the same bytes (a property test).
"""

import struct
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from dissector.protocol.records.batch import LOG_APPEND_TIME
from dissector.protocol.records.compression import CODEC_MASK, DecompressionBudget, DecompressionError, codec_name
from dissector.protocol.records.entries import RecordsEntry, RecordsEntryKind, split_entries
from dissector.protocol.wire import WireError

HEADER: Final = struct.Struct(">qiIbb")
HEADER_FIELDS: Final = (
    ("offset", "INT64", 8), ("message_size", "INT32", 4), ("crc", "UINT32", 4), ("magic", "INT8", 1),
    ("attributes", "INT8", 1),
)  # fmt: skip
CRC_FROM: Final = 16
ATTRIBUTES_AT: Final = 17
DEEPEST: Final = 3
"""How deep wrappers in wrappers are decoded. Brokers refuse the second level already."""


class LegacyRecord(NamedTuple):
    """One message. `data` is the whole message; `offset` is absolute once `placed` by its wrapper."""

    data: bytes
    offset: int
    message_size: int
    crc: int
    magic: int
    attributes: int
    timestamp: int | None
    """Milliseconds since 1970; None in magic 0."""
    key: bytes | None
    value: bytes | None

    @classmethod
    def read(cls, data: bytes) -> "LegacyRecord":
        """Read a message; `split_entries` has checked its size. Raises `WireError`."""
        offset, size, crc, magic, attributes = HEADER.unpack_from(data)
        at = HEADER.size
        timestamp = None
        if magic:
            (timestamp,) = struct.unpack_from(">q", data, at)
            at += 8
        key, at = _blob(data, at)
        value, at = _blob(data, at)
        if at != len(data):
            raise WireError("message is longer than its fields", at)
        return cls(data, offset, size, crc, magic, attributes, timestamp, key, value)

    @property
    def crc_valid(self) -> bool:
        """Whether the header has the CRC-32 of the bytes from magic on."""
        return zlib.crc32(self.data[CRC_FROM:]) == self.crc

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def compression(self) -> str:
        return codec_name(self.codec)

    @property
    def is_append_time(self) -> bool:
        """Whether the timestamp is the broker's, which then applies to all messages inside."""
        return self.magic == 1 and bool(self.attributes & LOG_APPEND_TIME)

    @property
    def timestamp_type(self) -> str | None:
        return None if self.magic == 0 else "LogAppendTime" if self.is_append_time else "CreateTime"

    def inside(self, budget: DecompressionBudget) -> list["LegacyRecord"]:
        """Return the messages of a wrapper. Raises `DecompressionError` or `WireError`."""
        plain = budget.decompressed(self.codec, self.value or b"", magic=self.magic)
        parts = budget.admitted(split_entries(plain), len(self.value or b""))
        return list(self.placed([LegacyRecord.read(part) for part in whole_messages(plain, parts)]))

    def placed(self, inner: list["LegacyRecord"]) -> Iterator["LegacyRecord"]:
        """Yield the messages of a wrapper with absolute offsets and timestamps."""
        base = first_offset(self.offset, [message.offset for message in inner]) if self.magic == 1 else 0
        for message in inner:
            timestamp = self.timestamp if self.is_append_time else message.timestamp
            yield message._replace(offset=base + message.offset, timestamp=timestamp)


def first_offset(wrapper: int, inner: list[int]) -> int:
    """Return the base of relative offsets. Producers may send 0 as the wrapper's offset: then it is 0."""
    return max(0, wrapper - inner[-1]) if inner else 0


def whole_messages(plain: bytes, parts: list[RecordsEntry]) -> Iterator[bytes]:
    """Yield the messages of a decompressed set. Raises `WireError` at anything else."""
    for part in parts:
        if part.kind is not RecordsEntryKind.MESSAGE:
            raise WireError(f"not a message: {part.kind.value}", part.start)
        yield plain[part.start : part.end]


def data_messages(message: LegacyRecord, budget: DecompressionBudget, depth: int = 0) -> Iterator[LegacyRecord]:
    """Yield the messages with data: the message itself, or those in it if it is a wrapper."""
    if not message.codec:
        yield message
        return
    if depth == DEEPEST:
        raise DecompressionError(f"more than {DEEPEST} wrappers inside each other")
    for inner in message.inside(budget):
        yield from data_messages(inner, budget, depth + 1)


def _blob(data: bytes, at: int) -> tuple[bytes | None, int]:
    """Read bytes behind their length as INT32; -1 is null."""
    size = int.from_bytes(data[at : at + 4], "big", signed=True)
    at += 4
    if size < 0:
        return None, at
    if size > len(data) - at:
        raise WireError("length runs past its message", at)
    return data[at : at + size], at + size
