"""Splits a `records` field into log entries: batches, messages of old message sets, and anything else.

All three formats begin with an offset of 8 bytes and a size of 4, which counts the bytes behind it, and have a magic
byte at offset 16. A field may mix them (a log that was kept over an upgrade), so each entry's magic decides.

Invariant: the entries tile the field.
"""

import struct
from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

LOG_OVERHEAD: Final = 12
"""Bytes of offset and size, which the size does not count."""
SIZE_AT: Final = 8
MAGIC_AT: Final = 16
_SIZE_AND_MAGIC: Final = struct.Struct(">i4xB")
LEAST_SIZE: Final = (14, 22, 49)
"""The least size by magic: that of the header."""

LEAST_RECORD: Final = 7
"""Bytes of the smallest record of a batch."""


class RecordsEntryKind(Enum):
    """The kind of a log entry."""

    BATCH = "batch"
    """Magic 2, since Kafka 0.11 (KIP-98)."""
    MESSAGE = "message"
    """Magic 0 or 1: one message of a message set, or a wrapper with a compressed one."""
    TRUNCATED = "truncated"
    """The last entry, cut off by the size limit of a fetch: normal."""
    UNKNOWN = "unknown"


class RecordsEntry(NamedTuple):
    """One span of a `records` field."""

    kind: RecordsEntryKind
    start: int
    end: int


def is_one_batch(data: bytes) -> bool:
    """Return whether a field is exactly one batch, as nearly all are."""
    if len(data) <= MAGIC_AT:
        return False
    size, magic = _SIZE_AND_MAGIC.unpack_from(data, SIZE_AT)
    return bool(magic == 2 and size >= LEAST_SIZE[2] and size + LOG_OVERHEAD == len(data))


def split_entries(data: bytes) -> Iterator[RecordsEntry]:
    """Yield the entries of a `records` field, in order."""
    at, whole = 0, len(data)
    while at < whole:
        kind, end = RecordsEntryKind.TRUNCATED, whole
        if whole - at > MAGIC_AT:
            size, magic = _SIZE_AND_MAGIC.unpack_from(data, at + SIZE_AT)
            if magic > 2 or size < LEAST_SIZE[magic]:
                kind = RecordsEntryKind.UNKNOWN
            elif at + LOG_OVERHEAD + size <= whole:
                kind, end = RecordsEntryKind.BATCH if magic == 2 else RecordsEntryKind.MESSAGE, at + LOG_OVERHEAD + size
        yield RecordsEntry(kind, at, end)
        at = end
