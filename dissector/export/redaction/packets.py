"""Builds redacted packets of exchanges around their redacted frames.

A packet keeps its time, ports, sequence numbers, flags, and which bytes of which stream it carries. Everything else is
new: Ethernet, IP and TCP headers, with addresses replaced one for one. Nothing of a packet is copied, so no unknown
content (options, tunnels, other programs' traffic) can remain. Packets without bytes of a chosen exchange are omitted,
except SYN, FIN and RST of its connection; so are retransmitted bytes.

The capture's files are read once more, in batches.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Final, NamedTuple, TypeVar

import numpy as np

from dissector.capture_session import Capture
from dissector.conversation import End, Packet, headers
from dissector.core.arrays import Int64
from dissector.core.batches import NOWHERE, RunBatch, RunKind, SegmentBatch
from dissector.core.columns import tuples
from dissector.core.store import Store
from dissector.export.packets import packet_batches
from dissector.export.redaction.pseudonyms import AddressPseudonyms
from dissector.export.redaction.rows import FrameSide, RedactedFrames
from dissector.transport import Transport
from dissector.transport.connection_table import FIN, RST, SYN

MAX_PAYLOAD: Final = 65_000
"""Maximum bytes in an IP datagram; segments that a network card merged may be larger."""


class _ChosenFrame(NamedTuple):
    """A chosen frame, and its position in its stream."""

    direction: int
    start: int
    end: int
    row: int
    of_client: bool


class _SegmentPart(NamedTuple):
    """Bytes of a chosen frame in a segment; none in one that only opens or closes the connection."""

    segment: int
    """Row of `_ChosenStreams`."""
    ahead: int
    """Bytes of the segment before them."""
    size: int
    captured: bool
    """Whether the capture has them: bytes beyond the snap length are missing."""
    frame: int
    """Number of the chosen frame; -1 for none."""
    start: int
    """Offset in the frame."""


def redacted_packets(
    capture: Capture, rows: Iterable[int], redacted: RedactedFrames, addresses: AddressPseudonyms
) -> Iterator[Packet]:
    """Yield the redacted packets of these rows, from 0, in capture order. The capture can be read again."""
    chosen = sorted(_frames(capture, rows))
    if not chosen:
        return
    ends = _ends(capture, chosen, addresses)
    streams = _ChosenStreams(capture, chosen)
    parts = streams.parts(chosen)
    contents = redacted.contents(
        FrameSide(frame.row, frame.of_client, frame.end - frame.start)
        for frame in (chosen[part.frame] for part in parts if part.size)
    )
    for part in parts:
        payload = next(contents)[part.start : part.start + part.size] if part.size else b""
        yield from streams.packets(part, payload.ljust(part.size, b"\x00"), ends)


def _frames(capture: Capture, rows: Iterable[int]) -> Iterator[_ChosenFrame]:
    for row in rows:
        for span in capture.frames.spans(row):
            yield _ChosenFrame(span.direction, span.start, span.start + span.size, row, span.of_client)


def _ends(capture: Capture, chosen: Sequence[_ChosenFrame], addresses: AddressPseudonyms) -> dict[int, tuple[End, End]]:
    """Return the sender and the receiver of each direction, with replaced addresses."""
    ends: dict[int, tuple[End, End]] = {}
    for direction, of_client, row in {
        each.direction: (each.direction, each.of_client, each.row) for each in chosen
    }.values():
        [[client], [server]] = capture.index.columns(("client", "server"), range(row, row + 1))
        pair = _redacted_end(str(client), addresses), _redacted_end(str(server), addresses)
        ends[direction] = pair if of_client else pair[::-1]
        ends[direction ^ 1] = ends[direction][::-1]
    return ends


def _redacted_end(text: str, addresses: AddressPseudonyms) -> End:
    end = End.parse(text)
    return End(addresses.of(end.host), end.port)


class _ChosenStreams:
    """The segments and runs of the chosen connections, from the capture's files."""

    def __init__(self, capture: Capture, chosen: Sequence[_ChosenFrame]) -> None:
        connections = np.unique([each.direction >> 1 for each in chosen])
        store = Store()
        transport = Transport(store, capture.limits)
        segments: list[SegmentBatch] = []
        runs: list[RunBatch] = []
        for batch in packet_batches(capture, store):
            read = transport.segments(batch)
            segments.append(_of(read, connections))
            runs.append(_of(transport.reassemble(read), connections))
        runs += [_of(each, connections) for each in transport.flush()]
        self._segments = _joined(segments)
        self._runs = _joined(runs)

    def parts(self, chosen: Sequence[_ChosenFrame]) -> list[_SegmentPart]:
        """Return the parts of chosen frames in each segment, in capture order."""
        found = [part for run in self._carried() for part in _inside(run, chosen)]
        found += self._marks({(each.segment, each.ahead + each.size) for each in found})
        return sorted(found)

    def _carried(self) -> Iterator["_SegmentRun"]:
        """Yield each run with the segment that has its bytes."""
        segments, runs = self._segments, self._runs
        order = np.argsort(segments.address, kind="stable")
        has_address = runs.address != NOWHERE
        at = np.searchsorted(segments.address[order], runs.address, side="right") - 1
        by_packet = np.searchsorted(segments.packet, runs.packet)
        row = np.where(has_address, order[np.maximum(at, 0)], np.minimum(by_packet, len(order) - 1))
        ahead = np.where(has_address, runs.address - segments.address[row], segments.size[row])
        # Bytes beyond the snap length belong after their segment; they are left out if that is unknown.
        cut = (runs.kind == RunKind.TRUNCATED) & (segments.missing[row] >= runs.size)
        kept = np.flatnonzero((has_address | cut) & (segments.direction[row] == runs.direction))
        columns = (row, ahead, has_address, runs.direction, runs.start, runs.size)
        return map(_SegmentRun._make, tuples(*(each[kept] for each in columns)))

    def _marks(self, ends: set[tuple[int, int]]) -> Iterator[_SegmentPart]:
        """Yield segments that open or close a connection and are not in another part."""
        segments = self._segments
        segments_with_parts = {segment for segment, _ in ends}
        for row in np.flatnonzero(segments.flags & (SYN | FIN | RST)).tolist():
            size = int(segments.size[row] + segments.missing[row])
            closes = bool(segments.flags[row] & (FIN | RST))
            if row not in segments_with_parts or (closes and (row, size) not in ends):
                yield _SegmentPart(row, size if closes else 0, 0, True, -1, 0)

    def packets(self, part: _SegmentPart, payload: bytes, ends: Mapping[int, tuple[End, End]]) -> Iterator[Packet]:
        """Yield a part as a packet; as more packets if it is too large for one."""
        segments, row = self._segments, part.segment
        direction, flags = int(segments.direction[row]), int(segments.flags[row])
        time_ns, seq, ack = int(segments.time_ns[row]), int(segments.seq[row]), int(segments.ack[row])
        last = int(segments.size[row] + segments.missing[row])
        for at in range(0, max(len(payload), 1), MAX_PAYLOAD):
            chunk = payload[at : at + MAX_PAYLOAD]
            ahead = part.ahead + at
            chunk_flags = flags & ~(SYN if ahead else 0) & ~(FIN | RST if ahead + len(chunk) < last else 0)
            shift = ahead + (ahead > 0 and flags & SYN != 0)
            data = headers.frame(*ends[direction], chunk_flags, seq + shift, ack, chunk, outward=direction % 2 == 0)
            yield Packet(time_ns, data if part.captured else data[: len(data) - len(chunk)], len(data))


class _SegmentRun(NamedTuple):
    """A run within a segment."""

    segment: int
    ahead: int
    captured: bool
    direction: int
    start: int
    size: int


def _inside(run: _SegmentRun, chosen: Sequence[_ChosenFrame]) -> Iterator[_SegmentPart]:
    """Yield the parts of a run that belong to chosen frames."""
    end = run.start + run.size
    number = max(0, bisect_right(chosen, (run.direction, run.start, 1 << 62)) - 1)
    while number < len(chosen) and chosen[number][:2] < (run.direction, end):
        frame = chosen[number]
        low, high = max(run.start, frame.start), min(end, frame.end)
        if frame.direction == run.direction and low < high:
            ahead = run.ahead + low - run.start
            yield _SegmentPart(run.segment, ahead, high - low, run.captured, number, low - frame.start)
        number += 1


ColumnBatch = TypeVar("ColumnBatch", SegmentBatch, RunBatch)


def _of(batch: ColumnBatch, connections: Int64) -> ColumnBatch:
    """Return the rows of a batch with these connections."""
    rows = np.flatnonzero(np.isin(batch.direction >> 1, connections))
    return type(batch)(*(getattr(batch, each.name)[rows] for each in fields(batch)))


def _joined(batches: Sequence[ColumnBatch]) -> ColumnBatch:
    columns = (np.concatenate([getattr(batch, each.name) for batch in batches]) for each in fields(batches[0]))
    return type(batches[0])(*columns)
