"""Which packets a task reads, and how it deals them out.

Invariants:
  * packets are numbered as in one capture of all files, in the order of time: what is read in parts is read alike;
  * files that overlap in time are merged by one task, as they are when a person opens them together;
  * all packets of a pair of endpoints go to one part, in order. A fragment of an IP datagram goes to all.
"""

import pickle
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from dissector.capture.errors import CaptureError
from dissector.capture.files import Reader, open_capture
from dissector.capture.merge import Merged, part
from dissector.capture.partition import Block, PartReader, block
from dissector.capture.spool import SpoolFullError
from dissector.capture_session.tally import CaptureTally
from dissector.core.arrays import Int64
from dissector.core.batches import PacketBatch
from dissector.core.finding import Finding, Severity
from dissector.core.limits import DEFAULT
from dissector.core.store import Store
from dissector.pipeline.file_scan import FileScan, PacketRange
from dissector.transport.partitions import partitions_of
from dissector.transport.routing import PacketRouter

BLOCK_PACKETS: Final = 8_192
"""Packets of a block at the most."""
BLOCK_BYTES: Final = 1 << 20
"""Bytes of a block, about."""
FILE_CHANGED: Final = "file-changed"
"""The code of what is told of a file that is not what it was when it was looked over."""


class InputSplit(NamedTuple):
    """What one task reads: a range of one file, or several files that overlap, whole."""

    paths: tuple[str, ...]
    range: PacketRange | None
    first: int
    """The number of its first packet in the capture of all files."""
    packets: int
    """How many it has, as the files were looked over."""
    sizes: tuple[int, ...]
    """Bytes of the files, likewise."""


class RoutedBlock(NamedTuple):
    """A block, and the part that it goes to. The last one of a segment has no packets: it says what was left out."""

    part: int
    block: Block


def splits(plans: Sequence[FileScan]) -> list[InputSplit]:
    """All that is to be read, in the order of packets' numbers."""
    read = (plan for plan in plans if plan.ranges)
    by_time = sorted(read, key=lambda plan: (plan.first_ns, plan.latest_ns, plan.digest))
    timed = [plan for plan in by_time if plan.has_times]
    untimed = [plan for plan in by_time if not plan.has_times]
    found: list[InputSplit] = []
    first = 0
    for together in [*_overlapping(timed), *([plan] for plan in untimed)]:
        paths, sizes = tuple(plan.path for plan in together), tuple(plan.size for plan in together)
        packets = sum(plan.packets for plan in together)
        if len(together) > 1:
            found.append(InputSplit(paths, None, first, packets, sizes))
        else:
            found += [InputSplit(paths, each, first + each.first, each.packets, sizes) for each in together[0].ranges]
        first += packets
    return found


def _overlapping(plans: list[FileScan]) -> Iterator[list[FileScan]]:
    """Files that must be merged, together; in the order of time. They are in the order of their first packets."""
    together: list[FileScan] = []
    until = 0
    for plan in plans:
        if together and plan.first_ns >= until:
            yield together
            together = []
        until = max(until, plan.latest_ns) if together else plan.latest_ns
        together.append(plan)
    if together:
        yield together


def batches(segment: InputSplit, store: Store, tally: CaptureTally) -> Iterator[PacketBatch]:
    """Its packets, numbered. Files that are not what they were when they were looked over are told. Raises
    `SpoolFullError` where files that overlap can't be merged."""
    changed = [path for path, size in zip(segment.paths, segment.sizes, strict=True) if _size(path) != size]
    if not changed:
        count = yield from _read(segment, store)
        changed = [] if count == segment.packets else list(segment.paths)
    tally.told += [changed_file(path) for path in changed]


def changed_file(path: str) -> Finding:
    """What is told of a file of which a run can't take anything."""
    return Finding(
        FILE_CHANGED, Severity.ERROR, f"{path}: changed or went away while it was read: left for another run", path
    )


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return -1


def _read(segment: InputSplit, store: Store) -> Generator[PacketBatch, None, int]:
    """Its packets, and then how many there were: fewer than planned where a file is not what it was."""
    with ExitStack() as stack:
        readers: list[Reader | PartReader] = []
        try:
            for path in segment.paths:
                readers.append(open_capture(path, store, _no_packets))
                stack.callback(readers[-1].close)
        except CaptureError:
            return -1
        merged = Merged(readers, store, DEFAULT)
        stack.callback(merged.close)
        stack.callback(store.release)
        if segment.range is not None and segment.range.mark:
            [reader] = readers
            assert isinstance(reader, Reader)
            reader.resume(segment.range.mark)
        count = 0
        for batch in merged.batches():
            some = min(len(batch), segment.packets - count)
            if some:
                yield _numbered(part(batch, 0, some), segment.first + count)
                count += some
            if count == segment.packets:
                break
        if merged.problems:  # packets have the numbers that they have where files are merged
            raise SpoolFullError(merged.problems[0].message)
        return count


def _numbered(batch: PacketBatch, first: int) -> PacketBatch:
    return PacketBatch(
        batch.data, batch.base, np.arange(first, first + len(batch)), batch.time_ns, batch.offset, batch.captured,
        batch.length, batch.link_type, batch.comments,
    )  # fmt: skip


def _no_packets(name: str, data: object) -> bool:
    return True


def route(segment: InputSplit, parts: int) -> Iterator[RoutedBlock]:
    """The packets of a segment that may be Kafka's, for so many parts."""
    store = Store()
    routing = PacketRouter(store, DEFAULT)
    tally = CaptureTally(ignored=routing.ignored)
    for batch in batches(segment, store, tally):
        row, pair, fragment = routing.route(batch)
        part = partitions_of(pair, parts)
        order = np.argsort(part, kind="stable")
        edges = np.searchsorted(part[order], np.arange(parts + 1))
        for number in range(parts):
            rows = row[order[edges[number] : edges[number + 1]]]
            if len(fragment):
                rows = np.union1d(rows, fragment)
            for some in _pieces(rows, batch.captured):
                yield RoutedBlock(number, block(batch, some))
    yield RoutedBlock(0, Block(segment.first, b"", pickle.dumps(tally)))


def _pieces(rows: Int64, captured: Int64) -> Iterator[Int64]:
    """Rows in pieces of about a block."""
    if not len(rows):
        return
    size = np.cumsum(captured[rows])
    step = np.maximum(size // BLOCK_BYTES, np.arange(len(rows)) // BLOCK_PACKETS)
    yield from np.split(rows, np.flatnonzero(np.diff(step)) + 1)
