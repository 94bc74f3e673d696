"""Counts of a file's packets by time, to cut files that overlap at the same time and to know all numbers of packets.

Times are those by which `merge` orders packets: they never decrease. They are counted in cells of 2**`shift` ns that
begin at multiples of it, so that cells of one file are cells of any other, joined. A file has the smallest cells of
which `MOST_CELLS` have packets, or one more for each `PACKETS_PER_CELL`.

Invariant: the size of batches makes no difference to the cells of a given shift.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import PacketBatch
from dissector.core.grouping import begins

MOST_CELLS: Final = 512
PACKETS_PER_CELL: Final = 1 << 12
_LEAST: Final = -(1 << 63)


class PacketTimes:
    """Takes the packets of one capture, in their order."""

    def __init__(self) -> None:
        self.shift = 0
        self._cells = self._counts = np.zeros(0, np.int64)
        self._latest = _LEAST
        self.packets = 0

    def add(self, batch: PacketBatch) -> None:
        """Add packets, at least one."""
        times = np.maximum.accumulate(np.maximum(batch.time_ns, self._latest))
        self._latest = int(times[-1])
        self.packets += len(times)
        cells = np.concatenate([self._cells, times >> self.shift])
        self._cells, self._counts = _joined(cells, np.concatenate([self._counts, np.ones(len(times), np.int64)]))
        while len(self._cells) > MOST_CELLS + self.packets // PACKETS_PER_CELL:
            self.shift += 1
            self._cells, self._counts = _joined(self._cells >> 1, self._counts)

    def cells(self, shift: int) -> tuple[Int64, Int64]:
        """Return the cells that have packets, ascending, and how many each has. `shift` is not below its own."""
        return _joined(self._cells >> (shift - self.shift), self._counts)


class FilePackets(NamedTuple):
    """Packets of one of several files."""

    file: int
    begin: int
    """Number of the first packet in the file."""
    end: int
    """Number of the first packet behind them."""


def cut_by_time(files: Sequence[PacketTimes], can_be_cut: Sequence[bool], most: int) -> list[list[FilePackets]]:
    """Cut files at the same times, so that at `most` so many lists of pieces have about as many packets each. Files
    that can't be cut are in one list each."""
    shift = max(file.shift for file in files)
    counts = [file.cells(shift) for file in files]
    cells, cell_of = np.unique(np.concatenate([own for own, _ in counts]), return_inverse=True)
    before = begins(np.bincount(cell_of, np.concatenate([packets for _, packets in counts])).astype(np.int64))
    can_begin = np.ones(len(cells), np.bool_)
    for (own, _), is_free in zip(counts, can_be_cut, strict=True):
        can_begin &= is_free | (cells <= own[0]) | (cells > own[-1])
    cells, before = cells[can_begin], before[can_begin]
    wanted = np.arange(most) * sum(file.packets for file in files) // most
    starts = cells[np.unique(np.minimum(np.searchsorted(before, wanted), len(cells) - 1))]
    found: list[list[FilePackets]] = [[] for _ in starts]
    for which, (own, packets) in enumerate(counts):
        of, at = np.unique(np.searchsorted(starts, own, side="right") - 1, return_index=True)
        ends = pairwise([*begins(packets)[at].tolist(), files[which].packets])
        for each, (begin, end) in zip(of.tolist(), ends, strict=True):
            found[each].append(FilePackets(which, begin, end))
    return found


def _joined(cells: Int64, counts: Int64) -> tuple[Int64, Int64]:
    """Return each of these cells once. They are sorted."""
    starts = np.flatnonzero(np.r_[True, cells[1:] != cells[:-1]])
    return cells[starts], np.add.reduceat(counts, starts)
