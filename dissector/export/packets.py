"""Exports exchanges as a capture: the packets that carried them, with comments on what each carried, and the processes
of their connections, as a live capture's file has them.

Packets with SYN, FIN or RST of every chosen connection are included, so that the copy shows who opened it and how it
ended. Exchanges that are not chosen are gaps in the copy. If one of the packets is a fragment of an IP datagram, all
fragments are included, as it is unknown which of them belong together.

The capture's files are read twice more, in batches: once to find the packets that carry the bytes of the streams, once
to write them. Connections have the same numbers each time.

Of what was encrypted the original packets carry no plaintext: packets are made for its frames. Such a packet has the
time of its frame; connections open when their first frame is sent, and none of them ends. What of a frame was not
captured is missing in the made stream too.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np

from dissector.capture.file_opening import ALL_FILES, open_capture
from dissector.capture.merge import PacketMerger
from dissector.capture.process_notes import ProcessNote
from dissector.capture_session import Capture
from dissector.conversation import End, Packet, Turn
from dissector.conversation.packets import PacketWriter
from dissector.core.arrays import Int64
from dissector.core.batches import NOWHERE, PacketBatch, RunBatch, RunKind, SegmentBatch
from dissector.core.columns import tuples, unique
from dissector.core.process_memory import trim
from dissector.core.store import Store
from dissector.core.text import duration
from dissector.exchange.model import ExchangeMessage
from dissector.exchange.row_field import Value
from dissector.transport import Transport
from dissector.transport.connection_table import FIN, RST, SYN

MAX_STREAM: Final = 1 << 41
"""Bytes, more than any stream of a capture has: two terabytes."""
EXPORT_COMMENT: Final = re.compile(r"kdissect \d+: ")
"""Matches the beginning of comments that an export adds to packets."""
NO_COMMENTS: Final[Mapping[int, str]] = MappingProxyType({})
_COMMENT_FIELDS: Final = ("kind", "api", "api_version", "correlation_id", "latency_ns")


def carrying_packets(
    capture: Capture, rows: Iterable[int], comments: Mapping[int, str] = NO_COMMENTS, *, with_handshakes: bool = True
) -> Iterator[Packet]:
    """Yield the packets of these rows, from 0, in capture order. The capture has been read to its end, and can be read
    again. `comments` are the user's comments on rows: the first packet of each row has it. Without handshakes, packets
    that open or close a connection are left out."""
    search = _CarrierSearch(capture, rows, comments)
    numbers = search.carriers(with_handshakes=with_handshakes)
    for batch in packet_batches(capture, Store()):
        chosen = np.flatnonzero(np.isin(batch.number, numbers))
        carried = search.comments(batch.number[chosen])
        for at in chosen.tolist():
            number = int(batch.number[at])
            start, size = int(batch.offset[at]), int(batch.captured[at])
            original = [capture.comments[number]] if number in capture.comments else []
            yield Packet(
                int(batch.time_ns[at]),
                batch.data[start : start + size].tobytes(),
                int(batch.length[at]),
                int(batch.link_type[at]),
                (*original, *carried.get(number, ())),
            )


def packet_batches(capture: Capture, store: Store) -> Iterator[PacketBatch]:
    """Read all packets of the capture's files again."""
    readers = [
        open_capture(each, store, ALL_FILES, response_to=capture.response_to, limits=capture.limits)
        for each in capture.sources
    ]
    merged = PacketMerger(readers, store, capture.limits)
    try:
        for batch in merged.batches():
            if len(batch):
                yield batch
                trim()
    finally:
        store.release()
        merged.close()
        for reader in readers:
            reader.close()


class _CarrierSearch:
    """The chosen ranges of streams, and the search for the packets that carry them."""

    def __init__(self, capture: Capture, rows: Iterable[int], comments: Mapping[int, str]) -> None:
        self._capture = capture
        self._of_rows = comments
        spans = capture.frames.packet_spans(np.fromiter(rows, np.int64))
        order = np.argsort(spans.packet, kind="stable")
        self._packet, self._row, self._of_client = spans.packet[order], spans.row[order], spans.of_client[order]
        self._begins_row = np.diff(spans.row, prepend=-1)[order] != 0
        connections = np.unique(spans.direction >> 1).tolist()
        control = capture.frames.control_stretches(filter(capture.pipeline.tls.is_decrypted, connections))
        stretches = np.stack([spans.direction, spans.start, spans.size], axis=1)
        columns = np.concatenate([stretches, np.array(control, np.int64).reshape(-1, 3)]).T
        self._direction, self._start, size = columns[:, np.lexsort(columns[::-1])]
        self._directions = np.unique(self._direction)
        self._ends = self._key(self._direction, self._start + size)

    def comments(self, packets: Int64) -> dict[int, list[str]]:
        """Return the comments on some packets, ascending, by packet: on each that has the first byte of a frame."""
        found: defaultdict[int, list[str]] = defaultdict(list)
        if not len(packets):
            return found
        some = slice(np.searchsorted(self._packet, packets[0]), np.searchsorted(self._packet, packets[-1], "right"))
        rows = unique(self._row[some])
        fields = dict(
            zip(rows.tolist(), zip(*self._capture.index.columns(_COMMENT_FIELDS, rows), strict=True), strict=True)
        )
        columns = (self._packet[some], self._row[some], self._of_client[some], self._begins_row[some])
        for packet, row, of_client, begins_row in tuples(*columns):
            if begins_row and row in self._of_rows:
                found[packet].append(self._of_rows[row])
            found[packet].append(_comment(row, *fields[row], of_client=of_client))
        return found

    def carriers(self, *, with_handshakes: bool) -> Int64:
        """Return the numbers of the packets, in order."""
        store = Store()
        transport = Transport(store, self._capture.limits)
        runs_carried, segments_read = _AddressedPackets(), _AddressedPackets()
        numbers, fragments = [unique(self._packet)], [np.zeros(0, np.int64)]
        for batch in packet_batches(self._capture, store):
            segments = transport.segments(batch)
            fragments.append(batch.number[transport.fragments])
            if with_handshakes:
                numbers.append(self._opened_or_closed(segments))
            chosen = np.flatnonzero((segments.size > 0) & np.isin(segments.direction, self._directions))
            segments_read.add(segments.address[chosen], segments.packet[chosen])
            runs_carried.add(*self._chosen_runs(transport.reassemble(segments)))
        runs_carried.add(*(column for runs in transport.flush() for column in self._chosen_runs(runs)))
        carriers = np.unique(np.concatenate([*numbers, _carriers(segments_read, runs_carried)]))
        pieces = np.concatenate(fragments)
        return np.union1d(carriers, pieces) if np.isin(carriers, pieces).any() else carriers

    def _key(self, direction: Int64, offset: Int64) -> Int64:
        key: Int64 = np.searchsorted(self._directions, direction).astype(np.int64) * MAX_STREAM + offset
        return key

    def _chosen_runs(self, runs: RunBatch) -> tuple[Int64, Int64]:
        """Return the addresses of runs within the chosen ranges; and their packets, for runs without captured bytes."""
        chosen = np.flatnonzero(np.isin(runs.direction, self._directions) & (runs.kind != RunKind.LOST))
        if not len(chosen):
            return chosen, chosen
        direction, start = runs.direction[chosen], runs.start[chosen]
        at = np.searchsorted(self._ends, self._key(direction, start), side="right")
        inside = np.minimum(at, len(self._ends) - 1)
        is_inside = (at < len(self._ends)) & (self._direction[inside] == direction)
        rows = chosen[is_inside & (self._start[inside] < start + runs.size[chosen])]
        return runs.address[rows], runs.packet[rows]

    def _opened_or_closed(self, segments: SegmentBatch) -> Int64:
        marks = np.flatnonzero(segments.flags & (SYN | FIN | RST))
        chosen = marks[np.isin(segments.direction[marks] >> 1, self._directions >> 1)]
        return segments.packet[chosen]


class _AddressedPackets:
    """Addresses and packets, collected in batches."""

    def __init__(self) -> None:
        self._parts: list[tuple[Int64, Int64]] = []

    def add(self, address: Int64, packet: Int64) -> None:
        self._parts.append((address, packet))

    def columns(self) -> tuple[Int64, Int64]:
        """Return all of them, sorted by address. They are kept no longer."""
        address, packet = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        self._parts.clear()
        order = np.argsort(address, kind="stable")
        return address[order], packet[order]


def _carriers(segments: _AddressedPackets, runs: _AddressedPackets) -> Int64:
    """Return the packets that carry the bytes of runs. The packet of a run itself may be another one, if earlier bytes
    arrived late; it is used only if the snap length cut off all bytes."""
    begins, packets = segments.columns()
    address, run_packets = runs.columns()
    at = np.searchsorted(begins, address, side="right") - 1
    carriers: Int64 = (
        np.where(address == NOWHERE, run_packets, packets[np.maximum(at, 0)]) if len(begins) else run_packets
    )
    return carriers


def _comment(
    number: int, kind: Value, api: Value, version: Value, correlation_id: Value, latency_ns: Value, *, of_client: bool
) -> str:
    """Return the comment on what a packet carries."""
    if kind != "exchange":
        return f"kdissect {number + 1}: {kind}"
    name = f"{api or 'API not known'}" + ("" if version is None else f" v{version}")
    after = f", latency {duration(int(latency_ns))}" if latency_ns is not None and not of_client else ""
    side = "request" if of_client else "response"
    return f"kdissect {number + 1}: {name} {side}, correlation id {correlation_id}{after}"


Content = Callable[[tuple[int, bool], ExchangeMessage], bytes]
"""Returns the bytes that stand for a frame, as many as were captured, by its row, whether it is the client's, and its
message."""


def made_packets(
    capture: Capture, rows: Iterable[int], content: Content, address: Callable[[str], str] = str
) -> Iterator[Packet]:
    """Yield packets of these rows, from 0 and ascending. `address` replaces the addresses of both ends."""
    writer = PacketWriter()
    for row in rows:
        spans = capture.frames.spans(row)
        if not spans:
            continue
        exchange = capture.exchange_for_now(row)
        connection = spans[0].direction >> 1
        ends = (End.parse(each) for each in (exchange.fields.client, exchange.fields.server))
        client, server = (End(address(end.host), end.port) for end in ends)
        yield from writer.packets(exchange.fields.time_ns)
        writer.begin(connection, client, server)
        for span in spans:
            message = exchange.request if span.of_client else exchange.response
            data = b"" if message is None else content((row, span.of_client), message)
            time_ns = exchange.fields.time_ns if message is None else message.time_ns
            writer.say(connection, Turn(time_ns, span.of_client, data, span.size - len(data)))
    yield from writer.packets()


def process_notes(capture: Capture, rows: Sequence[int]) -> Iterator[ProcessNote]:
    """Yield a note for each end of the rows' connections whose process is known, as of the connection's beginning. A
    redacted copy gets none: a process's name may say whose machine it is."""
    numbers = np.unique(capture.index.numbers(np.asarray(rows, np.int64)).connection)
    for connection in numbers.tolist():
        facts = capture.connections.facts(connection)
        begin_ns = capture.connections.first_time_ns(connection)
        if facts is None or begin_ns is None:
            continue
        client, server = capture.connections.ends(connection)
        for end, peer, process in ((client, server, facts.process), (server, client, facts.server_process)):
            if process is not None:
                yield ProcessNote(end, peer, begin_ns, process)
