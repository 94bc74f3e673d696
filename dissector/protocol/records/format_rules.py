"""What records must be like in a request or response: the newest magic of a version, and offsets inside of compressed
messages. Sources: KIP-31, KIP-32, KIP-98; Kafka's LogValidator."""

from itertools import pairwise
from typing import Final

from dissector.core.text import counted
from dissector.protocol.records.compression import DecompressionError
from dissector.protocol.records.entries import split_entries
from dissector.protocol.records.legacy import LegacyRecord, whole_messages
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.wire import WireError

_NEWEST_MAGIC: Final = {"Produce": ((2, 0), (3, 1)), "Fetch": ((2, 0), (4, 1))}
"""By API: before this version, this magic is the newest (KIP-32, KIP-98)."""
NEWEST: Final = 2
ZSTD_SINCE: Final = 7
"""The first version of Produce whose batches may have zstd (KIP-110)."""


def newest_magic(api: str, version: int) -> int:
    """Return the newest magic that a version of Produce or Fetch may have."""
    return next((magic for before, magic in _NEWEST_MAGIC[api] if version < before), NEWEST)


def inner_offset_words(data: bytes, *, is_produced: bool) -> str | None:
    """Return what is wrong with the offsets in a wrapper; empty if nothing is, None if it is no wrapper."""
    try:
        wrapper = LegacyRecord.read(data)
        if not wrapper.codec:
            return None
        budget = frame_budget()
        plain = budget.decompressed(wrapper.codec, wrapper.value or b"", magic=wrapper.magic)
        parts = budget.admitted(split_entries(plain), len(wrapper.value or b""))
        offsets = [LegacyRecord.read(part).offset for part in whole_messages(plain, parts)]
    except (WireError, DecompressionError):
        return None  # `bad-compression` and `bad-record` are findings of their own
    return _words(wrapper, offsets, is_produced=is_produced) if offsets else None


def _words(wrapper: LegacyRecord, offsets: list[int], *, is_produced: bool) -> str:
    count, first, last = len(offsets), offsets[0], offsets[-1]
    rises = all(before < after for before, after in pairwise(offsets))
    if not rises and not (is_produced and wrapper.magic == 0):
        return f"offsets of {counted(count, 'inner message')} do not rise"
    if wrapper.magic == 0:
        is_kept = is_produced or last == wrapper.offset
        return "" if is_kept else f"the last inner offset is {last:,}, the wrapper's {wrapper.offset:,}"
    if is_produced:
        is_kept = offsets == list(range(count))
        return "" if is_kept else f"inner offsets from {first:,} to {last:,}: relative ones begin at 0"
    if last > wrapper.offset:
        return f"the last inner offset is {last:,}, above the wrapper's {wrapper.offset:,}"
    # Compaction removes messages, and the base is never below 0: absolute offsets show by a first that is too large.
    is_absolute = last == wrapper.offset and first >= count > 0
    return f"inner offsets from {first:,} to {last:,} are absolute" if is_absolute else ""
