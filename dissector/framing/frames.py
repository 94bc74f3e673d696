"""Collects the rows of a `FrameBatch`, from columns or one by one."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dissector.events import FrameBatch, FrameKind, RunBatch
from dissector.framing.stream import Piece

_COLUMNS = 6


class FrameRow(NamedTuple):
    """One row."""

    direction: int
    kind: FrameKind
    start: int
    size: int
    seen: tuple[int, int]
    """Time and packet of its first byte."""
    pieces: list[Piece]


class FrameRows:
    """Rows in the making; `batch` gives them as columns and starts anew."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, int, int, int, int]] = []
        self._pieces: list[Piece] = []
        self._counts: list[int] = []
        self._whole: list[RunBatch] = []

    def add(self, row: FrameRow) -> None:
        """One row."""
        self._rows.append((row.direction, row.kind, row.start, row.size, *row.seen))
        self._pieces += row.pieces
        self._counts.append(len(row.pieces))

    def add_runs(self, runs: RunBatch) -> None:
        """Runs of which each is one whole frame."""
        self._whole.append(runs)

    def batch(self) -> FrameBatch:
        """All rows so far."""
        table = np.array(self._rows, np.int64).reshape(-1, _COLUMNS)
        pieces = np.array(self._pieces, np.int64).reshape(-1, 2)
        whole = self._whole

        def column(number: int, name: str) -> npt.NDArray[np.int64]:
            return np.concatenate([table[:, number], *(getattr(runs, name) for runs in whole)])

        direction = column(0, "direction")
        counts = np.ones(len(direction), np.int64)
        counts[: len(self._counts)] = self._counts
        batch = FrameBatch(
            direction=direction,
            kind=column(1, "kind").astype(np.uint8),
            start=column(2, "start"),
            size=column(3, "size"),
            time_ns=column(4, "time_ns"),
            packet=column(5, "packet"),
            piece=np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
            piece_address=np.concatenate([pieces[:, 0], *(runs.address for runs in whole)]),
            piece_size=np.concatenate([pieces[:, 1], *(runs.size for runs in whole)]),
        )
        self._rows, self._pieces, self._counts, self._whole = [], [], [], []
        return batch
