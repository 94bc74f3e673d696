"""Opens the compressed sections of many frames at once, as long as no frame comes near its budget: the fast way beside
`column_reader`, which asks the budget batch by batch.

Invariant: a frame whose entries are accepted would have been within its budget, each batch in turn.
"""

import ctypes
from typing import Any, Final

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt8
from dissector.core.limits import Limits
from dissector.protocol.records.batch import Batch
from dissector.protocol.records.columns import KINDS, Entries, column, open_sections
from dissector.protocol.records.compression import DecompressionError
from dissector.protocol.records.entries import RecordsEntryKind
from dissector.protocol.records.to_json import frame_budget

MOST_PLAIN: Final = 32 << 20
"""Decompressed bytes of the frames that are read together. A frame with more is read batch by batch."""
FEW_BYTES: Final = 1 << 16
HEADER: Final = 61
CODEC: Final = 7
_BATCH: Final = KINDS.index(RecordsEntryKind.BATCH)


class OpenedSections:
    """The sections of some batches, decompressed, in a buffer that is used again."""

    def __init__(self, bounds: Limits) -> None:
        self._bounds = bounds
        self.data: UInt8 = np.empty(FEW_BYTES, np.uint8)

    def open(self, data: UInt8, entries: Entries) -> int:
        """Open the sections of entries; return how many are open, or no batches."""
        filled, at = ctypes.c_int64(0), 0
        while at < len(entries):
            at = open_sections()(
                data.ctypes.data, len(data), entries.ctypes.data, at, len(entries), self.data.ctypes.data,
                len(self.data), ctypes.addressof(filled),
            )  # fmt: skip
            if at < len(entries):
                if not self._open(data, entries[at], filled):
                    break
                at += 1
        return at

    def _open(self, data: UInt8, entry: Any, filled: ctypes.c_int64) -> bool:
        """Open the section of a batch; return whether that can be done here."""
        batch = Batch.read(data[entry["start"] : entry["end"]].tobytes())
        if batch.is_masked:
            return False
        try:
            plain = frame_budget(self._bounds).decompressed(batch.codec, batch.section)
        except DecompressionError:
            return False
        start = filled.value
        if start + len(plain) > len(self.data) and not self._grow(start, start + len(plain)):
            return False
        self.data[start : start + len(plain)] = np.frombuffer(plain, np.uint8)
        entry["section_start"], entry["section_end"] = start, start + len(plain)
        filled.value += len(plain)
        return True

    def _grow(self, used: int, least: int) -> bool:
        """Make more room, if that is allowed."""
        if least > MOST_PLAIN:
            return False
        larger = np.empty(min(MOST_PLAIN, max(2 * least, 4 * len(self.data))), np.uint8)
        larger[:used] = self.data[:used]
        self.data = larger
        return True


def within_budgets(entries: Entries, frames: Int64, bounds: Limits) -> Bool:
    """Return which entries, with records that were read, are within the budgets of their frames, given by number. The
    entries of a frame are there from its first one on."""
    is_batch = column(entries, "kind") == _BATCH
    packed = np.where(is_batch, column(entries, "end") - column(entries, "start") - HEADER, 0)
    is_compressed = is_batch & (column(entries, "attributes") & CODEC != 0)
    plain = np.where(is_compressed, column(entries, "section_end") - column(entries, "section_start"), 0)
    firsts = np.flatnonzero(np.diff(frames, prepend=frames[:1] - 1))
    counts = np.diff(np.append(firsts, len(frames)))

    def so_far(values: Int64) -> Int64:
        """Sums in each frame, up to each entry."""
        sums = np.cumsum(values)
        found: Int64 = sums - np.repeat(sums[firsts] - values[firsts], counts)
        return found

    before = so_far(plain) - plain
    parts = so_far(column(entries, "records") + column(entries, "headers"))
    size = bounds.packed_size + bounds.packed_ratio * so_far(np.where(is_compressed, packed, 0)) - before
    most_plain = np.minimum(np.minimum(size, bounds.decompressed_frame_size - before), bounds.decompressed_size)
    is_within: Bool = plain <= most_plain
    is_within &= parts <= np.minimum(bounds.frame_records, bounds.packed_records + so_far(packed))
    return is_within
