"""Conversations over three connections, damage that networks do to their packets, and what must still be read.

Expectations are computed from the remaining packets, byte by byte: which frames are complete, and how far each stream
reaches. They use nothing of the code under test.
"""

import random
import struct
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from dissector.capture_session import Capture
from dissector.exchange.model import ExchangeRow
from tests.traffic import (
    ACK,
    FIN,
    RST,
    Mangling,
    Packet,
    Turn,
    conversation,
    ethernet,
    pcap,
    reordered,
    request,
    resegmented,
    response,
)

ExchangeKey = tuple[int, int, int, int]
"""An exchange: the client's port, correlation id, size of the request, size of the response."""
ExchangeFrames = tuple[int, int, bytes, bytes]
"""The client's port, correlation id, request, response."""


def metadata_exchange(port: int, number: int, topics: int) -> ExchangeFrames:
    """A Metadata exchange about this many topics, complete and consistent, so that it has no findings."""
    names = [b"topic-%05d" % n for n in range(topics)]
    request_frame = struct.pack(">i", topics) + b"".join(struct.pack(">h", len(name)) + name for name in names)
    response_frame = struct.pack(">ii", 0, topics) + b"".join(
        struct.pack(">hh", 0, len(name)) + name + bytes(4) for name in names
    )
    return port, number, request(number, body=request_frame), response(number, response_frame)


@dataclass(frozen=True)
class Traffic:
    """Exchanges over three connections, and the packets that carried them."""

    exchanges: list[ExchangeFrames]
    packets: list[Packet]

    @property
    def whole(self) -> Counter[ExchangeKey]:
        return Counter(
            (port, number, len(request_frame), len(response_frame))
            for port, number, request_frame, response_frame in self.exchanges
        )


def one_connection(
    port: int, topics: list[int], *, pipelined: int, segment: int, isn: tuple[int, int], **how: bool
) -> Traffic:
    """One connection."""
    exchanges = [metadata_exchange(port, number, count) for number, count in enumerate(topics)]
    turns = []
    for at in range(0, len(exchanges), pipelined):
        flight = exchanges[at : at + pipelined]
        turns += [Turn(True, b"".join(e[2] for e in flight)), Turn(False, b"".join(e[3] for e in flight))]
    return Traffic(exchanges, conversation(turns, segment=segment, isn=isn, client=("10.0.0.1", port), **how))


def traffic(segment: int = 1400, isn: tuple[int, int] = (1000, 5000), **how: bool) -> Traffic:
    """Three connections at once: one by one, pipelined and small, large over many segments."""
    each = [
        one_connection(40001, [1] * 12, pipelined=1, segment=segment, isn=isn, **how),
        one_connection(40002, [0, 1, 2] * 10, pipelined=6, segment=segment, isn=isn, **how),
        one_connection(40003, [1, 600, 2, 400, 1, 300, 3], pipelined=2, segment=segment, isn=isn, **how),
    ]
    mixed = [p for row in zip_longest(*(one.packets for one in each)) for p in row if p is not None]
    return Traffic([exchanges for one in each for exchanges in one.exchanges], mixed)


Streams = dict[tuple[int, bool], bytearray]


def captured_bytes(packets: Iterable[Packet], isn: tuple[int, int] = (1000, 5000)) -> Streams:
    """Marks for the bytes of each stream in these packets, by the client's port and whether the client sent them."""
    streams: Streams = {}
    for packet in packets:
        if packet.payload:
            at = (packet.seq - isn[0 if packet.from_client else 1] - 1) % 2**32
            marks = streams.setdefault((packet.client[1], packet.from_client), bytearray())
            marks.extend(bytes(max(0, at + len(packet.payload) - len(marks))))
            marks[at : at + len(packet.payload)] = b"\1" * len(packet.payload)
    return streams


def intact(exchanges: list[ExchangeFrames], streams: Streams) -> Counter[ExchangeKey]:
    """The exchanges of which both frames are complete."""
    ends: Counter[tuple[int, bool]] = Counter()
    found: Counter[ExchangeKey] = Counter()
    for port, number, request_frame, response_frame in exchanges:
        both = True
        for side, frame in ((port, True), request_frame), ((port, False), response_frame):
            at = ends[side]
            ends[side] += len(frame)
            both &= streams.get(side, b"")[at : at + len(frame)] == b"\1" * len(frame)
        found[port, number, len(request_frame), len(response_frame)] += both
    return +found


def reach(exchanges: list[ExchangeFrames], streams: Streams) -> Counter[tuple[int, bool]]:
    """How far rows reach in each stream: to the last byte captured, or the end of its frame where the size is known."""
    ends: Counter[tuple[int, bool]] = Counter()
    out = Counter({side: len(marks) for side, marks in streams.items()})
    for port, _, request_frame, response_frame in exchanges:
        for side, frame in ((port, True), request_frame), ((port, False), response_frame):
            at, ends[side] = ends[side], ends[side] + len(frame)
            marks = streams.get(side, b"")
            if at < len(marks) < ends[side] and marks[at : at + 4] == b"\1" * 4:
                out[side] = ends[side]
    return +out


def rows_of(files: list[Path]) -> list[ExchangeRow]:
    with Capture([str(file) for file in files]) as capture:
        return [exchange.row for exchange in capture.exchanges()]


def clean_exchanges(rows: list[ExchangeRow]) -> Counter[ExchangeKey]:
    """The complete exchanges without findings."""
    return Counter(
        (int(row.client.rpartition(":")[2]), row.correlation_id or 0, row.request_size or 0, row.response_size or 0)
        for row in rows
        if row.kind == "exchange" and row.latency_ns is not None and row.severity is None
    )


def bytes_of_rows(rows: list[ExchangeRow]) -> Counter[tuple[int, bool]]:
    """Bytes in rows of any kind, by stream."""
    sizes: Counter[tuple[int, bool]] = Counter()
    for row in rows:
        port = int(row.client.rpartition(":")[2])
        sizes[port, True] += row.request_size or 0
        sizes[port, False] += row.response_size or 0
    return +sizes


def one_file(folder: Path, packets: list[Packet]) -> list[Path]:
    return [write_pcap(folder, "made", map(ethernet, packets))]


def write_pcap(folder: Path, name: str, packets: Iterable[bytes]) -> Path:
    path = folder / f"{name}.pcap"
    path.write_bytes(pcap(list(packets)))
    return path


def late_copies(packets: list[Packet]) -> list[Packet]:
    """Every data packet once more, nine packets later."""
    order = [(n, p) for n, p in enumerate(packets)] + [(n + 9.5, p) for n, p in enumerate(packets) if p.payload]
    return [packet for _, packet in sorted(order, key=lambda at: at[0])]


def longer_copies(packets: list[Packet], change: Callable[[bytes], bytes]) -> list[Packet]:
    """Behind each data packet, one with the same bytes and those before them."""
    out: list[Packet] = []
    last: dict[tuple[int, bool], Packet] = {}
    for packet in packets:
        out.append(packet)
        side = packet.client[1], packet.from_client
        before = last.get(side)
        if packet.payload and before:
            out.append(replace(packet, seq=before.seq, payload=change(before.payload + packet.payload)))
        if packet.payload:
            last[side] = packet
    return out


def probed(packets: list[Packet]) -> list[Packet]:
    """Keep-alives with and without a byte, and probes of a closed window, behind each data packet."""
    out: list[Packet] = []
    for packet in packets:
        out.append(packet)
        if packet.payload:
            last = packet.seq + len(packet.payload) - 1
            out += [replace(packet, seq=last, payload=byte, flags=ACK) for byte in (b"", b"\0", packet.payload[-1:])]
    return out


def with_closing(packets: list[Packet], flags: int) -> list[Packet]:
    """Every side of every connection ends."""
    ends = {(p.client[1], p.from_client): replace(p, seq=p.seq + len(p.payload), payload=b"", flags=flags | ACK)
            for p in packets if p.payload}  # fmt: skip
    return [*packets, *ends.values()]


def shuffled(packets: list[Packet]) -> list[Packet]:
    return reordered(packets, random.Random(7))


HARMLESS: dict[str, Mangling] = {
    "nothing": list,
    "reordered": shuffled,
    "every packet twice, at once": lambda packets: [p for packet in packets for p in (packet, packet)],
    "every packet twice, late": late_copies,
    "overlapping, the same bytes": lambda packets: longer_copies(packets, bytes),
    "overlapping, other bytes": lambda packets: longer_copies(packets, lambda data: bytes(255 - b for b in data)),
    "keep-alives and window probes": probed,
    "half-closed": lambda packets: with_closing(packets, FIN),
    "reset at the end": lambda packets: with_closing(packets, RST),
    "cut elsewhere": lambda packets: resegmented(packets, random.Random(8)),
    "all at once": lambda packets: late_copies(probed(shuffled(resegmented(packets, random.Random(9))))),
}


def without(*places: float) -> Mangling:
    """Drop data packets at these places, from 0 for the first to 1 for the last."""

    def mangle(packets: list[Packet]) -> list[Packet]:
        data = [n for n, packet in enumerate(packets) if packet.payload]
        gone = {data[round(place * (len(data) - 1))] for place in places}
        return [packet for n, packet in enumerate(packets) if n not in gone]

    return mangle


LOSSES: dict[str, tuple[Mangling, int]] = {
    "the first": (without(0), 0),
    "one": (without(0.5), 0),
    "three": (without(0.2, 0.5, 0.8), 0),
    "the last": (without(1), 0),
    "a burst": (lambda packets: packets[:30] + packets[45:], 0),
    "the end": (lambda packets: packets[: len(packets) * 2 // 3], 0),
    "behind 42 bytes": (lambda packets: [replace(packet, payload=packet.payload[:42]) for packet in packets], 1),
}
"""What is lost, and how many intact exchanges are not found: a single frame between two gaps is skipped, as a search
that accepted single frames would invent some."""
