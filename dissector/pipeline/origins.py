"""Maps packets of all files to the file that they come from, and to its name in the tables."""

from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from dissector.core.arrays import Int64
from dissector.pipeline.file_scan import FileScan
from dissector.pipeline.splits import InputSplit
from dissector.tables.rows import Cells

KEY_TYPES: Final = pa.schema([("day", pa.date32()), ("capture", pa.string()), ("epoch", pa.int64())])
SHORT: Final = 16
"""Digits of a digest that name a capture."""


class Origin(NamedTuple):
    """Where packets come from: a file, or files that were merged."""

    first: int
    """Number of its first packet in the capture of all files."""
    digest: str
    begin_ns: int
    epoch: int
    """The ingest that writes the rows."""

    @property
    def keys(self) -> Cells:
        """The cells that all rows of the capture share."""
        return {"day": self.day, "capture": self.capture, "epoch": self.epoch}

    @property
    def capture(self) -> str:
        return self.digest[:SHORT]

    @property
    def day(self) -> date:
        return _day(self.begin_ns)


@lru_cache
def _day(time_ns: int) -> date:
    return datetime.fromtimestamp(time_ns / 1e9, UTC).date()


class Origins:
    """Origins by packet."""

    def __init__(self, origins: list[Origin]) -> None:
        self._origins = origins
        self._firsts = [origin.first for origin in origins]

    def of(self, packet: int) -> tuple[Origin, int]:
        """Return where a packet of the capture of all files comes from, and its number there, from 1."""
        origin = self._origins[max(0, bisect_right(self._firsts, packet) - 1)]
        return origin, packet - origin.first + 1

    def keys(self, packets: Int64) -> dict[str, pa.Array]:
        """Return the columns that name the rows of these packets: `Origin.keys`, and the number of the packet there."""
        firsts = np.array(self._firsts, np.int64)
        which = np.maximum(np.searchsorted(firsts, packets, side="right") - 1, 0)
        keys = pa.Table.from_pylist([origin.keys for origin in self._origins], KEY_TYPES).take(which)
        columns = {name: keys[name].combine_chunks() for name in keys.column_names}
        return columns | {"packet": pa.array(packets - firsts[which] + 1)}


def origins(scans: Sequence[FileScan], found: Sequence[InputSplit], epoch: int) -> list[Origin]:
    """Return where the packets of each file begin in the capture of all files."""
    by_path = {each.path: each for each in scans}
    first: dict[str, Origin] = {}
    for segment in found:
        earliest = min((by_path[path] for path in segment.paths), key=lambda each: each.first_ns)
        if earliest.path not in first:
            first[earliest.path] = Origin(segment.first, earliest.digest, earliest.earliest_ns, epoch)
    return sorted(first.values())
