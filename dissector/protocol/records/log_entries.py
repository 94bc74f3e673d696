"""A `records` field cut into its parts: batches, messages of old message sets, and what is neither.

All three formats begin alike: an offset of 8 bytes, a size of 4 that counts what follows it, and a magic byte at 16.
A field may mix them (a log that lived through an upgrade), so each part is told by its own magic.

Invariant: the parts tile the field's bytes.
"""

import struct
from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

LOG_OVERHEAD: Final = 12
"""Offset and size: what the size does not count."""
SIZE_AT: Final = 8
MAGIC_AT: Final = 16
_SIZE_AND_MAGIC: Final = struct.Struct(">i4xB")
LEAST_SIZE: Final = (14, 22, 49)
"""The least size of each magic, by its header alone."""


class LogEntryKind(Enum):
    """What a stretch of a `records` field is."""

    BATCH = "batch"
    """Magic 2, since Kafka 0.11 (KIP-98)."""
    MESSAGE = "message"
    """Magic 0 or 1: one message of a message set, or a wrapper that holds a compressed one."""
    TRUNCATED = "truncated"
    """The last one, cut off by the size limit of a fetch: normal."""
    UNKNOWN = "unknown"


class LogEntry(NamedTuple):
    """One stretch of a `records` field, offsets counted in it."""

    kind: LogEntryKind
    start: int
    end: int


def is_one_batch(data: bytes) -> bool:
    """Whether a field is a batch and nothing else, as nearly all are."""
    if len(data) <= MAGIC_AT:
        return False
    size, magic = _SIZE_AND_MAGIC.unpack_from(data, SIZE_AT)
    return bool(magic == 2 and size >= LEAST_SIZE[2] and size + LOG_OVERHEAD == len(data))


def split_entries(data: bytes) -> Iterator[LogEntry]:
    """The parts of a `records` field, in order."""
    at, whole = 0, len(data)
    while at < whole:
        kind, end = LogEntryKind.TRUNCATED, whole
        if whole - at > MAGIC_AT:
            size, magic = _SIZE_AND_MAGIC.unpack_from(data, at + SIZE_AT)
            if magic > 2 or size < LEAST_SIZE[magic]:
                kind = LogEntryKind.UNKNOWN
            elif at + LOG_OVERHEAD + size <= whole:
                kind, end = LogEntryKind.BATCH if magic == 2 else LogEntryKind.MESSAGE, at + LOG_OVERHEAD + size
        yield LogEntry(kind, at, end)
        at = end
