"""Input splits: which packets a task reads, and how it routes them to partitions.

A large file is cut where it was marked when it was scanned; files that overlap in time are cut at the same time.

Invariants:
  * packets are numbered as in one capture of all files, in the order of time, wherever files are cut;
  * files that overlap in time are merged as they are when they are opened together;
  * all packets of a pair of endpoints go to one partition, in order. A fragment of an IP datagram goes to all.
"""

import pickle
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from dissector.capture.errors import CaptureError
from dissector.capture.file_opening import ALL_FILES, AnyReader, open_capture
from dissector.capture.files import Reader
from dissector.capture.merge import PacketMerger
from dissector.capture.packet_times import FilePackets, cut_by_time
from dissector.capture.partition import Block, block_of_rows
from dissector.capture_session.tally import CaptureTally
from dissector.core.arrays import Int64
from dissector.core.batches import PacketBatch
from dissector.core.finding import Finding, Severity
from dissector.core.limits import DEFAULT
from dissector.core.spool import SpoolFullError
from dissector.core.store import Store
from dissector.pipeline.file_scan import FileScan, PacketRange
from dissector.pipeline.input_files import BytePart, input_file, size_of
from dissector.transport.partitions import PacketRouter, partitions_of

SPLIT_BYTES: Final = 64 << 20
"""Approximate bytes of a split of large files."""
BLOCK_PACKETS: Final = 8_192
"""Maximum packets of a block."""
BLOCK_BYTES: Final = 1 << 20
"""Approximate bytes of a block."""
HEAD_BYTES: Final = 1 << 20
"""Bytes at the beginning of a file by which its format is recognized."""
AHEAD_BYTES: Final = 4 << 20
"""Bytes behind a range in which a reader looks for packets after damage."""
FILE_CHANGED: Final = "file-changed"
"""Code of the finding about a file that has changed since it was scanned."""


class FilePart(NamedTuple):
    """Packets of one file."""

    path: str
    size: int
    """Bytes of the file, according to the scan."""
    file: int
    """Number of the file among those that were scanned."""
    range: PacketRange


class InputSplit(NamedTuple):
    """Input of one task: packets of one file, or of files that overlap in time, up to the same time."""

    parts: tuple[FilePart, ...]
    first: int
    """Number of its first packet in the capture of all files."""
    packets: int
    """Number of its packets, according to the scan."""
    origin: int
    """Number of the file; or, of all files that overlap, of the one that begins first."""
    is_merged: bool
    """Whether the file overlaps with others."""


class RoutedBlock(NamedTuple):
    """A block and its partition. The last block of a split has the tally of what was ignored in place of packets."""

    part: int
    block: Block


def splits(scans: Sequence[FileScan], size: int = SPLIT_BYTES) -> list[InputSplit]:
    """Return all input splits, of about `size` bytes, in the order of their packets' numbers."""
    read = [scan for scan in scans if scan.ranges]
    number = {scan.path: at for at, scan in enumerate(scans)}
    by_time = sorted(read, key=lambda scan: (scan.first_ns, scan.latest_ns, scan.digest))
    timed = [scan for scan in by_time if scan.has_times]
    untimed = [scan for scan in by_time if not scan.has_times]
    found: list[InputSplit] = []
    first = 0
    for group in [*_overlapping(timed), *([scan] for scan in untimed)]:
        for pieces in _pieces_of(group, size):
            parts = list[FilePart]()
            for which, begin, end in pieces:
                scan = group[which]
                parts.append(FilePart(scan.path, scan.size, number[scan.path], scan.part(begin, end)))
            packets = sum(end - begin for _, begin, end in pieces)
            found.append(InputSplit(tuple(parts), first, packets, number[group[0].path], len(group) > 1))
            first += packets
    return found


def _pieces_of(scans: Sequence[FileScan], size: int) -> list[list[FilePackets]]:
    """Return the packets of files that overlap, or of one, in pieces of about so many bytes."""
    if len(scans) > 1:
        pieces = -(-sum(scan.block_bytes for scan in scans) // size)
        return cut_by_time([scan.times for scan in scans], [scan.can_be_cut for scan in scans], pieces)
    ranges = scans[0].ranges
    at = np.unique([each.begin // size for each in ranges], return_index=True)[1]
    return [
        [FilePackets(0, *ends)] for ends in pairwise([*(ranges[each].first for each in at.tolist()), scans[0].packets])
    ]


def _overlapping(scans: list[FileScan]) -> list[list[FileScan]]:
    """Return groups of files that must be merged, in the order of time. `scans` are sorted by their first packets."""
    found: list[list[FileScan]] = []
    until = 0
    for scan in scans:
        if not found or scan.first_ns >= until:
            found.append([])
            until = scan.latest_ns
        found[-1].append(scan)
        until = max(until, scan.latest_ns)
    return found


def group_splits(splits: Sequence[InputSplit], tasks: int) -> list[list[InputSplit]]:
    """Group splits for about so many tasks. Small neighbors share a task, as a task costs more than they do."""
    enough = sum(split.packets for split in splits) / tasks
    found: list[list[InputSplit]] = []
    remaining = 0.0
    for split in splits:
        if remaining <= 0:
            found.append([])
            remaining = enough
        found[-1].append(split)
        remaining -= split.packets
    return found


def batches(split: InputSplit, store: Store, tally: CaptureTally) -> Iterator[tuple[PacketBatch, Int64 | None]]:
    """Yield the numbered packets of a split, and their `Block.sources` if its files are merged. Findings about files
    that changed after the scan go to `tally`. Raises `SpoolFullError` if there is no room to merge files."""
    changed = [part.path for part in split.parts if size_of(part.path) != part.size]
    if not changed:
        count = yield from _read(split, store)
        changed = [] if count == split.packets else [part.path for part in split.parts]
    tally.file_problems += [changed_file(path) for path in changed]


def changed_file(path: str) -> Finding:
    """Return the finding about a file that has changed: the run leaves it out."""
    return Finding(FILE_CHANGED, Severity.ERROR, f"{path}: changed or removed during reading: not ingested", path)


def _bytes_of(of: PacketRange) -> list[BytePart]:
    """Return the bytes of a file that are needed to read a range of it; none if all of them are."""
    if not of.end:
        return []
    return [BytePart(0, HEAD_BYTES), BytePart(of.begin, of.end + AHEAD_BYTES)]


def _read(split: InputSplit, store: Store) -> Generator[tuple[PacketBatch, Int64 | None], None, int]:
    """Yield the packets and their sources, and return how many there were: fewer than the scan counted if a file has
    changed."""
    with ExitStack() as stack:
        readers: list[AnyReader] = []
        try:
            for part in split.parts:
                reader = open_capture(input_file(part.path, _bytes_of(part.range)), store, ALL_FILES)
                stack.callback(reader.close)
                if part.range.mark:
                    assert isinstance(reader, Reader)
                    reader.resume(part.range.mark, part.range.skipped, part.range.packets)
                readers.append(reader)
        except CaptureError:
            return -1
        merged = PacketMerger(readers, store, DEFAULT)
        stack.callback(merged.close)
        stack.callback(store.release)
        count = 0
        for batch in merged.batches():
            if len(batch):
                first, count = split.first + count, count + len(batch)
                numbered = replace(batch, number=np.arange(first, first + len(batch)))
                yield numbered, _sources(split, numbered, merged) if split.is_merged else None
        if merged.problems:  # packets are numbered as if the files were merged
            raise SpoolFullError(merged.problems[0].message)
        return count


def _sources(split: InputSplit, batch: PacketBatch, merged: PacketMerger) -> Int64:
    """Return `Block.sources` of the packets that were merged last, as an array."""
    files = np.array([part.file for part in split.parts], np.int64)[merged.readers_of]
    return np.stack([column.astype("<i8") for column in (batch.number, files, merged.numbers_of)])


def route(split: InputSplit, parts: int, *, only: int | None = None) -> Iterator[RoutedBlock]:
    """Yield the packets of a split that may be Kafka's, by partition; `parts` is the number of partitions. With `only`,
    those of that one alone; what is ignored goes to the first one."""
    store = Store()
    routing = PacketRouter(store, DEFAULT)
    tally = CaptureTally(ignored=routing.ignored)
    for batch, sources in batches(split, store, tally):
        row, pair, fragment = routing.route(batch)
        part = partitions_of(pair, parts)
        order = np.argsort(part, kind="stable")
        edges = np.searchsorted(part[order], np.arange(parts + 1))
        for number in range(parts) if only is None else (only,):
            rows = row[order[edges[number] : edges[number + 1]]]
            if len(fragment):
                rows = np.union1d(rows, fragment)
            for block_rows in _pieces(rows, batch.captured):
                yield RoutedBlock(number, block_of_rows(batch, block_rows, sources))
    if not only:
        yield RoutedBlock(0, Block(split.first, b"", pickle.dumps(tally)))


def _pieces(rows: Int64, captured: Int64) -> Iterator[Int64]:
    """Yield rows in pieces of about the size of a block."""
    if not len(rows):
        return
    size = np.cumsum(captured[rows])
    step = np.maximum(size // BLOCK_BYTES, np.arange(len(rows)) // BLOCK_PACKETS)
    yield from np.split(rows, np.flatnonzero(np.diff(step)) + 1)


class FilesChangedError(Exception):
    """Files were changed or removed while they were read. `findings` are about them, each with its path."""

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__("; ".join(finding.message for finding in findings))
        self.findings = findings


def check_unchanged(findings: Iterable[Finding]) -> None:
    """Raise `FilesChangedError` if there are findings about changed files."""
    if changed := {finding.path: finding for finding in findings if finding.code == FILE_CHANGED}:
        raise FilesChangedError(list(changed.values()))
