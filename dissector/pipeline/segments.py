"""Which packets a task reads, and how it deals them out.

Invariants:
  * packets are numbered as in one capture of all files, in the order of time: what is read in parts is read alike;
  * files that overlap in time are merged by one task, as they are when a person opens them together;
  * all packets of a pair of endpoints go to one part, in order. A fragment of an IP datagram goes to all.
"""

import pickle
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from dissector.capture.files import Reader, open_capture
from dissector.capture.merge import Merged, part
from dissector.capture.parts import Block, block
from dissector.capture_file.tally import Tally
from dissector.events import Int64, PacketBatch
from dissector.limits import DEFAULT
from dissector.pipeline.plan import Plan, Range
from dissector.store import Store
from dissector.transport.routing import Routing
from dissector.transport.shares import parts_of

BLOCK_PACKETS: Final = 8_192
"""Packets of a block at the most."""
LAST: Final = 1 << 62
BLOCK_BYTES: Final = 1 << 20
"""Bytes of a block, about."""


class Segment(NamedTuple):
    """What one task reads: a range of one file, or several files that overlap, whole."""

    paths: tuple[str, ...]
    range: Range | None
    first: int
    """The number of its first packet in the capture of all files."""


class Dealt(NamedTuple):
    """A block, and the part that it goes to. The last one of a segment has no packets: it says what was left out."""

    part: int
    block: Block


def segments(plans: Sequence[Plan]) -> list[Segment]:
    """All that is to be read, in the order of packets' numbers."""
    read = (plan for plan in plans if plan.ranges)
    by_time = sorted(read, key=lambda plan: (plan.first_ns, plan.latest_ns, plan.digest))
    timed = [plan for plan in by_time if plan.has_times]
    untimed = [plan for plan in by_time if not plan.has_times]
    found: list[Segment] = []
    first = 0
    for together in [*_overlapping(timed), *([plan] for plan in untimed)]:
        paths = tuple(plan.path for plan in together)
        if len(together) > 1:
            found.append(Segment(paths, None, first))
        else:
            found += [Segment(paths, each, first + each.first) for each in together[0].ranges]
        first += sum(plan.packets for plan in together)
    return found


def _overlapping(plans: list[Plan]) -> Iterator[list[Plan]]:
    """Files that must be merged, together; in the order of time. They are in the order of their first packets."""
    together: list[Plan] = []
    until = 0
    for plan in plans:
        if together and plan.first_ns >= until:
            yield together
            together = []
        until = max(until, plan.latest_ns) if together else plan.latest_ns
        together.append(plan)
    if together:
        yield together


def batches(segment: Segment, store: Store, tally: Tally) -> Iterator[PacketBatch]:
    """Its packets, numbered. What stops the merging of files is told."""
    readers = [open_capture(path, store, _no_packets) for path in segment.paths]
    merged = Merged(readers, store, DEFAULT)
    if segment.range is not None and segment.range.mark:
        [reader] = readers
        assert isinstance(reader, Reader)
        reader.resume(segment.range.mark)
    number = segment.first
    end = number + segment.range.packets if segment.range is not None else LAST
    try:
        for batch in merged.batches():
            if len(batch):
                yield _numbered(part(batch, 0, min(len(batch), end - number)), number)
                number += len(batch)
            if number >= end:
                return
    finally:
        tally.told += merged.problems
        store.release()
        merged.close()
        for each in readers:
            each.close()


def _numbered(batch: PacketBatch, first: int) -> PacketBatch:
    return PacketBatch(
        batch.data, batch.base, np.arange(first, first + len(batch)), batch.time_ns, batch.offset, batch.captured,
        batch.length, batch.link_type, batch.comments,
    )  # fmt: skip


def _no_packets(name: str, data: object) -> bool:
    return True


def deal(segment: Segment, parts: int) -> Iterator[Dealt]:
    """The packets of a segment that may be Kafka's, for so many parts."""
    store = Store()
    routing = Routing(store, DEFAULT)
    tally = Tally(ignored=routing.ignored)
    for batch in batches(segment, store, tally):
        row, pair, fragment = routing.route(batch)
        part = parts_of(pair, parts)
        order = np.argsort(part, kind="stable")
        edges = np.searchsorted(part[order], np.arange(parts + 1))
        for number in range(parts):
            rows = row[order[edges[number] : edges[number + 1]]]
            if len(fragment):
                rows = np.union1d(rows, fragment)
            for some in _pieces(rows, batch.captured):
                yield Dealt(number, block(batch, some))
    yield Dealt(0, Block(segment.first, b"", pickle.dumps(tally)))


def _pieces(rows: Int64, captured: Int64) -> Iterator[Int64]:
    """Rows in pieces of about a block."""
    if not len(rows):
        return
    size = np.cumsum(captured[rows])
    step = np.maximum(size // BLOCK_BYTES, np.arange(len(rows)) // BLOCK_PACKETS)
    yield from np.split(rows, np.flatnonzero(np.diff(step)) + 1)
