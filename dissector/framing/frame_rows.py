"""Collects the rows of a `FrameBatch`, from columns or one by one."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dissector.core.batches import FrameBatch, FrameKind
from dissector.core.grouping import edges, expanded
from dissector.framing.pending_stream import Piece

_COLUMNS = 8
_FRAME = int(FrameKind.FRAME)
_OF_ROWS = ("direction", "kind", "start", "size", "time_ns", "end_ns", "packet", "is_cut")


class FrameRow(NamedTuple):
    """One row."""

    direction: int
    kind: FrameKind
    start: int
    size: int
    seen: tuple[int, int]
    """Time and packet of its first byte."""
    end_ns: int
    """Time of its last byte."""
    pieces: list[Piece]
    is_cut: bool = False
    """Whether the snap length cut off bytes of it."""


class FrameRows:
    """Collects rows; `batch` returns them as columns and starts an empty collection."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, int, int, bool, int, int, int]] = []
        self._pieces: list[Piece] = []
        self._counts: list[int] = []
        self._batches: list[FrameBatch] = []

    def add(self, row: FrameRow) -> None:
        """Add one row."""
        self._rows.append((row.direction, row.kind, row.start, row.size, row.is_cut, row.end_ns, *row.seen))
        self._pieces += row.pieces
        self._counts.append(len(row.pieces))

    @property
    def count(self) -> int:
        """How many rows were added one by one."""
        return len(self._rows)

    def frames_from(self, mark: int) -> Iterator[tuple[int, list[Piece]]]:
        """Yield packet and pieces of each frame added one by one, from row `mark` on."""
        at = len(self._pieces) - sum(self._counts[mark:])
        for (_, kind, *_, packet), count in zip(self._rows[mark:], self._counts[mark:], strict=True):
            if kind == _FRAME:
                yield packet, self._pieces[at : at + count]
            at += count

    def add_batch(self, frames: FrameBatch) -> None:
        """Add rows that are columns already."""
        self._batches.append(frames)

    def batch(self) -> FrameBatch:
        """Return all rows so far, each direction's in stream order."""
        batches = [self._one_by_one(), *(frames for frames in self._batches if len(frames))]
        self._rows, self._pieces, self._counts, self._batches = [], [], [], []
        return _ordered(_joined(batches))

    def _one_by_one(self) -> FrameBatch:
        table = np.array(self._rows, np.int64).reshape(-1, _COLUMNS)
        pieces = np.array(self._pieces, np.int64).reshape(-1, 2)
        piece = edges(np.array(self._counts, np.int64))
        direction, kind, start, size, is_cut, end_ns, time_ns, packet = table.T
        return FrameBatch(
            direction, kind.astype(np.uint8), start, size, time_ns, end_ns, packet, piece, pieces[:, 0], pieces[:, 1],
            is_cut.astype(np.bool_),
        )  # fmt: skip


def _joined(batches: list[FrameBatch]) -> FrameBatch:
    if len(batches) == 1:
        return batches[0]
    columns = {name: np.concatenate([getattr(each, name) for each in batches]) for name in _OF_ROWS}
    columns |= {
        name: np.concatenate([getattr(each, name) for each in batches]) for name in ("piece_address", "piece_size")
    }
    counts = np.concatenate([np.diff(each.piece) for each in batches])
    return FrameBatch(**columns, piece=edges(counts))


def _ordered(frames: FrameBatch) -> FrameBatch:
    order = np.lexsort((frames.start, frames.direction))
    if (np.diff(order) == 1).all():
        return frames
    counts = np.diff(frames.piece)[order]
    rows = expanded(frames.piece[:-1][order], counts)
    columns = {name: getattr(frames, name)[order] for name in _OF_ROWS}
    return FrameBatch(
        **columns, piece=edges(counts), piece_address=frames.piece_address[rows], piece_size=frames.piece_size[rows]
    )
