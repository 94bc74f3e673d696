"""Builds redacted packets of exchanges around their redacted frames.

A packet keeps its time, ports, sequence numbers, flags, and which bytes of which stream it carries. Everything else is
new: Ethernet, IP and TCP headers, with addresses replaced one for one. Nothing of a packet is copied, so no unknown
content (options, tunnels, other programs' traffic) can remain. Packets without bytes of a chosen exchange are omitted,
except SYN, FIN and RST of its connection; so are retransmitted bytes.

The capture's files are read once more, in batches.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np

from dissector.capture_session import Capture
from dissector.capture_session.row_frames import FrameSpans
from dissector.conversation import End, Packet, headers
from dissector.core.arrays import Bool, Int64
from dissector.core.batches import NOWHERE, RunBatch, RunKind, SegmentBatch
from dissector.core.columns import Column, ValueNumbers, is_in, tuples, unique
from dissector.core.process_memory import trim
from dissector.core.store import Store
from dissector.export.packets import MAX_STREAM, packet_batches
from dissector.export.redaction.pseudonyms import AddressPseudonyms
from dissector.export.redaction.rows import FrameSide, RedactedFrames
from dissector.transport import Transport
from dissector.transport.connection_table import FIN, RST, SYN

ROWS_TOGETHER: Final = 1 << 15
"""Rows of columns that are read or made at once."""
PARTS_TOGETHER: Final = 1 << 12
"""Parts that are objects at once."""
MAX_PAYLOAD: Final = 65_000
"""Maximum bytes in an IP datagram; segments that a network card merged may be larger."""


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


class _Parts(NamedTuple):
    """The same of many parts, `(n,)` each."""

    segment: Int64
    ahead: Int64
    size: Int64
    captured: Bool
    frame: Int64
    start: Int64


ColumnBatch = TypeVar("ColumnBatch", SegmentBatch, RunBatch, FrameSpans, _Parts)


def redacted_packets(
    capture: Capture, rows: Iterable[int], redacted: RedactedFrames, addresses: AddressPseudonyms
) -> Iterator[Packet]:
    """Yield the redacted packets of these rows, from 0, in capture order. The capture can be read again."""
    chosen = _chosen_frames(capture, np.fromiter(rows, np.int64))
    if not len(chosen.row):
        return
    ends = _Ends(capture, chosen, addresses)
    streams = _ChosenStreams(capture, chosen)

    def sides() -> Iterator[FrameSide]:
        for part in streams.parts():
            if part.size:
                row, of_client, size = (
                    int(column[part.frame]) for column in (chosen.row, chosen.of_client, chosen.size)
                )
                yield FrameSide(row, bool(of_client), size)

    contents = redacted.contents(sides())
    for part in streams.parts():
        payload = next(contents)[part.start : part.start + part.size] if part.size else b""
        yield from streams.packets(part, payload.ljust(part.size, b"\x00"), ends)


def _chosen_frames(capture: Capture, rows: Int64) -> FrameSpans:
    """Return the frames of rows, in the order of their streams."""
    found, ordered = _Rows(FrameSpans), _Rows(FrameSpans)
    for at in range(0, max(1, len(rows)), ROWS_TOGETHER):
        found.add(capture.frames.span_columns(rows[at : at + ROWS_TOGETHER]))
    spans = found.joined()
    order = np.lexsort((spans.of_client, spans.row, spans.start + spans.size, spans.start, spans.direction))
    for at in range(0, max(1, len(order)), ROWS_TOGETHER):
        ordered.add(spans, order[at : at + ROWS_TOGETHER])
        trim()
    return ordered.joined()


class _Ends:
    """The sender and the receiver of each direction, with replaced addresses: of as many connections as there are."""

    def __init__(self, capture: Capture, chosen: FrameSpans, addresses: AddressPseudonyms) -> None:
        self._connections = unique(chosen.direction >> 1)
        self._hosts = ValueNumbers[str]()
        self._ends = np.zeros((2 * len(self._connections), 2), np.int32)
        """Of each direction the host and the port of its sender."""
        last = np.flatnonzero(np.diff(chosen.direction, append=-1))
        for at in range(0, len(last), ROWS_TOGETHER):
            some = last[at : at + ROWS_TOGETHER]
            rows = unique(chosen.row[some])
            of_rows = list(zip(*capture.index.columns(("client", "server"), rows), strict=True))
            places = np.searchsorted(rows, chosen.row[some])
            for direction, of_client, place in tuples(chosen.direction[some], chosen.of_client[some], places):
                pair = [self._numbered(str(end), addresses) for end in of_rows[place]]
                place = self._place(direction)
                self._ends[[place, place ^ 1]] = pair if of_client else pair[::-1]

    def of(self, direction: int) -> tuple[End, End]:
        """Return the sender and the receiver of a direction."""
        place = self._place(direction)
        hosts = self._hosts.values
        sender, receiver = self._ends[[place, place ^ 1]].tolist()
        return End(hosts[sender[0]], sender[1]), End(hosts[receiver[0]], receiver[1])

    def _numbered(self, text: str, addresses: AddressPseudonyms) -> tuple[int, int]:
        end = End.parse(text)
        return self._hosts.of(addresses.of(end.host)), end.port

    def _place(self, direction: int) -> int:
        return 2 * int(np.searchsorted(self._connections, direction >> 1)) + (direction & 1)


class _ChosenStreams:
    """The segments and runs of the chosen connections, from the capture's files."""

    def __init__(self, capture: Capture, chosen: FrameSpans) -> None:
        connections = unique(chosen.direction >> 1)
        store = Store()
        transport = Transport(store, capture.limits)
        segments, runs = _Rows(SegmentBatch), _Rows(RunBatch)
        for batch in packet_batches(capture, store):
            read = transport.segments(batch)
            segments.add(read, _of(read, connections))
            some = transport.reassemble(read)
            runs.add(some, _of(some, connections))
        for each in transport.flush():
            runs.add(each, _of(each, connections))
        self._segments = segments.joined()
        self._parts = self._find_parts(chosen, runs.joined())

    def parts(self) -> Iterator[_SegmentPart]:
        """Return the parts of chosen frames in each segment, in capture order."""
        for at in range(0, len(self._parts.segment), PARTS_TOGETHER):
            trim()
            some = tuples(*(column[at : at + PARTS_TOGETHER] for column in self._parts))
            yield from map(_SegmentPart._make, some)

    def _find_parts(self, chosen: FrameSpans, runs: RunBatch) -> _Parts:
        """Return the parts of chosen frames in runs, and the segments that open or close a connection, in order."""
        segments, found = self._segments, _Rows(_Parts)
        order = np.argsort(segments.address, kind="stable")
        has_part, ends_in_part = np.zeros((2, len(order)), np.bool_)
        address = segments.address[order]
        keys = chosen.direction * MAX_STREAM + chosen.start
        for at in range(0, len(runs.start), ROWS_TOGETHER):
            some = RunBatch(*(column[at : at + ROWS_TOGETHER] for column in _columns(runs)))
            parts = _inside(self._carried(some, order, address), chosen, keys)
            found.add(parts)
            is_end = parts.ahead + parts.size == segments.size[parts.segment] + segments.missing[parts.segment]
            has_part[parts.segment] = True
            ends_in_part[parts.segment[is_end]] = True
            trim()
        for at in range(0, len(order), ROWS_TOGETHER):
            found.add(self._marks(slice(at, at + ROWS_TOGETHER), has_part, ends_in_part))
            trim()
        return _sorted(found.joined())

    def _carried(self, runs: RunBatch, order: Int64, address: Int64) -> "_SegmentRuns":
        """Return runs with the segment that has the bytes of each; `order` is that of the addresses of segments."""
        segments = self._segments
        has_address = runs.address != NOWHERE
        at = np.searchsorted(address, runs.address, side="right") - 1
        by_packet = np.searchsorted(segments.packet, runs.packet)
        row = np.where(has_address, order[np.maximum(at, 0)], np.minimum(by_packet, len(order) - 1))
        ahead = np.where(has_address, runs.address - segments.address[row], segments.size[row])
        # Bytes beyond the snap length belong after their segment; they are left out if that is unknown.
        cut = (runs.kind == RunKind.TRUNCATED) & (segments.missing[row] >= runs.size)
        kept = np.flatnonzero((has_address | cut) & (segments.direction[row] == runs.direction))
        columns = (row, ahead, has_address, runs.direction, runs.start, runs.size)
        return _SegmentRuns._make(each[kept] for each in columns)

    def _marks(self, some: slice, has_part: Bool, ends_in_part: Bool) -> _Parts:
        """Return those of some segments that open or close a connection and are not in another part."""
        segments = self._segments
        rows = some.start + np.flatnonzero(segments.flags[some] & (SYN | FIN | RST))
        closes = segments.flags[rows] & (FIN | RST) != 0
        is_mark = ~has_part[rows] | (closes & ~ends_in_part[rows])
        rows, closes = rows[is_mark], closes[is_mark]
        ahead = np.where(closes, segments.size[rows] + segments.missing[rows], 0)
        none = np.zeros(len(rows), np.int64)
        return _Parts(rows, ahead, none, np.ones(len(rows), np.bool_), none - 1, none)

    def packets(self, part: _SegmentPart, payload: bytes, ends: _Ends) -> Iterator[Packet]:
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
            data = headers.frame(*ends.of(direction), chunk_flags, seq + shift, ack, chunk, outward=direction % 2 == 0)
            yield Packet(time_ns, data if part.captured else data[: len(data) - len(chunk)], len(data))


class _SegmentRuns(NamedTuple):
    """Runs, `(n,)`, each within a segment."""

    segment: Int64
    ahead: Int64
    captured: Bool
    direction: Int64
    start: Int64
    size: Int64


def _inside(runs: _SegmentRuns, chosen: FrameSpans, keys: Int64) -> _Parts:
    """Return the parts of runs that belong to chosen frames; `keys` are the places of these, ascending."""
    begin = runs.direction * MAX_STREAM + runs.start
    first = np.maximum(np.searchsorted(keys, begin, side="right") - 1, 0)
    counts = np.maximum(np.searchsorted(keys, begin + runs.size) - first, 0)
    run = np.repeat(np.arange(len(counts)), counts)
    frame = np.arange(len(run)) + np.repeat(first - np.cumsum(counts) + counts, counts)
    start = runs.start[run]
    low = np.maximum(start, chosen.start[frame])
    high = np.minimum(start + runs.size[run], chosen.start[frame] + chosen.size[frame])
    kept = np.flatnonzero((chosen.direction[frame] == runs.direction[run]) & (low < high))
    run, frame, low, high = run[kept], frame[kept], low[kept], high[kept]
    ahead = runs.ahead[run] + low - start[kept]
    return _Parts(runs.segment[run], ahead, high - low, runs.captured[run], frame, low - chosen.start[frame])


def _sorted(parts: _Parts) -> _Parts:
    """Return parts in order, sorted a few segments at a time."""
    found, order = _Rows(_Parts), np.argsort(parts.segment, kind="stable")
    segment = parts.segment[order]
    stops = np.searchsorted(segment, segment[ROWS_TOGETHER - 1 :: ROWS_TOGETHER], side="right").tolist()
    for first, stop in pairwise([0, *stops, len(order)]):
        some = _Parts._make(column[order[first:stop]] for column in parts)
        found.add(some, np.lexsort(some[::-1]))
        trim()
    return found.joined()


def _of(batch: SegmentBatch | RunBatch, connections: Int64) -> Int64:
    """Return which rows of a batch are of connections, ascending."""
    return np.flatnonzero(is_in(batch.direction >> 1, connections))


def _columns(batch: ColumnBatch) -> list[Any]:
    return [getattr(batch, name) for name in type(batch).__annotations__]


class _Rows(Generic[ColumnBatch]):
    """Rows of many batches."""

    def __init__(self, kind: type[ColumnBatch]) -> None:
        self._kind: type[ColumnBatch] = kind
        self._columns: list[Column] = []

    def add(self, batch: ColumnBatch, rows: Int64 | slice = slice(None)) -> None:
        """Add rows of a batch."""
        values = [column[rows] for column in _columns(batch)]
        if not self._columns:
            self._columns = [Column(each.dtype) for each in values]
        for column, each in zip(self._columns, values, strict=True):
            column.extend(each)

    def joined(self) -> ColumnBatch:
        """Return all of them; there was a batch."""
        columns: list[Any] = [column.values for column in self._columns]
        rows: ColumnBatch = self._kind(*columns)
        return rows
