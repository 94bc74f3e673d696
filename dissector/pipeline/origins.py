"""Maps packets of all files to the file that they come from, and to its name in the tables; names connections."""

from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.pipeline.file_scan import FileScan
from dissector.pipeline.splits import InputSplit, splits
from dissector.tables.arrow_types import chosen
from dissector.tables.row_batches import Cells

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


class FileOrigins(NamedTuple):
    """Origins of the packets of all files that one run reads."""

    ranges: list[Origin]
    """In the order of their packets. One is of a file, or of files that overlap in time and are merged."""
    files: list[Origin]
    """By the number of the file."""


class Place(NamedTuple):
    """Where a packet is."""

    origin: Origin
    packet: int
    """Its number in its file, from 1."""
    merged_packet: int
    """Its number among the files that are merged with it, from 1."""

    @property
    def keys(self) -> Cells:
        """The cells that name a row which begins in the packet."""
        return self.origin.keys | {"packet": self.packet}


Source = tuple[int, int]
"""Of a packet of merged files: the number of its file, and its number there, from 0."""


class Sources:
    """Sources of the packets of one partition, whose blocks say them (`Block.sources`)."""

    def __init__(self) -> None:
        self._blocks: list[Int64] = [np.zeros((3, 0), np.int64)]

    def add(self, sources: bytes) -> None:
        """Add the sources of a block. Blocks come in the order of packets."""
        if sources:
            self._blocks.append(np.frombuffer(sources, "<i8").reshape(3, -1))

    @property
    def columns(self) -> Int64:
        """Number, file and number in that file of all packets, `(3, n)`."""
        if len(self._blocks) > 1:
            self._blocks = [np.concatenate(self._blocks, axis=1)]
        return self._blocks[0]

    def of(self, packet: int) -> Source | None:
        """Return the source of a packet; None if it is of a file that is not merged."""
        numbers, files, in_file = self.columns
        if not len(numbers):
            return None
        at = int(np.searchsorted(numbers, packet))
        return (int(files[at]), int(in_file[at])) if at < len(numbers) and numbers[at] == packet else None


class Origins:
    """Origins by packet."""

    def __init__(self, origins: FileOrigins, sources: Sources) -> None:
        self._origins = origins
        self._firsts = [origin.first for origin in origins.ranges]
        self.sources = sources

    def of(self, packet: int) -> Place:
        """Return where a packet of the capture of all files is."""
        return self.place(packet, self.sources.of(packet))

    def place(self, packet: int, source: Source | None) -> Place:
        """Return where a packet is whose source is known."""
        origin = self._origins.ranges[max(0, bisect_right(self._firsts, packet) - 1)]
        merged_packet = packet - origin.first + 1
        if source is None:
            return Place(origin, merged_packet, merged_packet)
        return Place(self._origins.files[source[0]], source[1] + 1, merged_packet)

    def keys(self, packets: Int64) -> dict[str, pa.Array]:
        """Return the columns that name the rows of these packets: `Place.keys`."""
        ranges, files = self._origins
        which, packet = self._in_files(packets)
        used, which = np.unique(which, return_inverse=True)
        named = [(*ranges, *files)[each] for each in used.tolist()]
        return {
            "day": pa.array([origin.day for origin in named], pa.date32()).take(pa.array(which)),
            "capture": chosen([origin.capture for origin in named], which),
            "epoch": pa.array(np.array([origin.epoch for origin in named], np.int64)[which]),
            "packet": pa.array(packet),
        }

    def packets_in_files(self, packets: Int64) -> Int64:
        """Return the numbers that packets have in their files, from 1."""
        return self._in_files(packets)[1]

    def _in_files(self, packets: Int64) -> tuple[Int64, Int64]:
        """Which ranges packets are of, or behind these which files that are merged; and their numbers there, from 1."""
        which, packet = self._ranges_of(packets), self.merged_packets(packets)
        numbers, file, in_file = self.sources.columns
        if len(numbers):
            at = np.minimum(np.searchsorted(numbers, packets), len(numbers) - 1)
            is_merged = numbers[at] == packets
            which[is_merged] = len(self._origins.ranges) + file[at[is_merged]]
            packet[is_merged] = in_file[at[is_merged]] + 1
        return which, packet

    def merged_packets(self, packets: Int64) -> Int64:
        """Return the numbers of these packets among those that are merged with them: `Place.merged_packet`."""
        return packets - np.array(self._firsts, np.int64)[self._ranges_of(packets)] + 1

    def _ranges_of(self, packets: Int64) -> Int64:
        return np.maximum(np.searchsorted(self._firsts, packets, side="right") - 1, 0)


def origins(scans: Sequence[FileScan], found: Sequence[InputSplit], epoch: int) -> FileOrigins:
    """Return where the packets of all files come from."""
    files = [Origin(0, scan.digest, scan.earliest_ns, epoch) for scan in scans]
    first: dict[int, Origin] = {}
    for split in found:
        first.setdefault(split.origin, files[split.origin]._replace(first=split.first))
    return FileOrigins(list(first.values()), files)


def merged_with(scans: Sequence[FileScan]) -> dict[str, str]:
    """Return by path the name of the capture that begins first of those with which a file is merged."""
    found = {scan.path: scan.digest[:SHORT] for scan in scans}
    for split in splits(scans):
        found |= dict.fromkeys((part.path for part in split.parts), scans[split.origin].digest[:SHORT])
    return found


class ConnectionNames:
    """Names by number, and which connections are new."""

    def __init__(self, capture: Capture, origins: Origins) -> None:
        self._capture = capture
        self._origins = origins
        self._names: dict[int, str] = {}
        self._new: list[int] = []

    def of(self, connection: int) -> str:
        """Return the name of a connection."""
        name = self._names.get(connection)
        if name is None:
            place = self._origins.of(self._capture.connections.first_packet(connection))
            name = self._names[connection] = f"{place.origin.capture}:{place.packet}"
            self._new.append(connection)
        return name

    def of_others(self) -> Int64:
        """Return the first packets of the TCP connections that have no name, ascending."""
        named = [self._capture.connections.first_packet(connection) for connection in self._names]
        return np.setdiff1d(self._capture.connections.begins(), np.array(named, np.int64))

    def take_new(self) -> list[int]:
        """Take the connections that were named since the last call."""
        new, self._new = self._new, []
        return new
