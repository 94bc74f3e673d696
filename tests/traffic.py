"""Traffic made for tests: Kafka frames, TCP conversations, networks that mangle them, capture files to hold them.

The domain's language, so that a test reads as a sentence. Packets are Ethernet, IPv4, TCP, the same that dpkt builds
(`test_traffic.py`), which takes four times as long.
"""

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from hypothesis import strategies as st

from tests.frames import request as request
from tests.frames import response as response

CLIENT, SERVER = ("10.0.0.1", 40001), ("10.0.0.2", 9092)
_TCP, _IP = struct.Struct(">HHIIBBH"), struct.Struct(">BBHHHBB")
"""Headers up to their checksums."""
SYN, ACK, FIN, PSH, RST = 2, 16, 1, 8, 4


@dataclass(frozen=True)
class Packet:
    """A TCP segment on its way. `from_client` says which way."""

    from_client: bool
    seq: int
    payload: bytes
    flags: int = ACK
    ack: int = 0
    client: tuple[str, int] = CLIENT
    server: tuple[str, int] = SERVER
    window: int = 65_535
    options: bytes = b""

    def ip(self) -> bytes:
        """The IPv4 packet."""
        source, destination = (self.client, self.server) if self.from_client else (self.server, self.client)
        ends = _address(source[0]) + _address(destination[0])
        header = 20 + len(self.options)
        first = _TCP.pack(
            source[1], destination[1], self.seq % 2**32, self.ack % 2**32, header << 2, self.flags, self.window
        )
        rest = self.options + self.payload
        pseudo = ends + struct.pack(">HH", 6, header + len(self.payload))
        tcp = first + struct.pack(">HH", _checksum(pseudo + first + bytes(4) + rest), 0) + rest
        head = _IP.pack(0x45, 0, 20 + len(tcp), 0, 0, 64, 6)
        return head + struct.pack(">H", _checksum(head + ends)) + ends + tcp


def _checksum(data: bytes) -> int:
    """That of RFC 1071: the sum of all pairs of bytes modulo 65,535, as 65,536 is 1 there."""
    total = int.from_bytes(data + bytes(len(data) % 2), "big") % 0xFFFF
    return 0xFFFF - (total or 0xFFFF)


def _address(text: str) -> bytes:
    return bytes(int(part) for part in text.split("."))


def ethernet(packet: Packet, *, vlan: bool = False) -> bytes:
    """The frame on the wire."""
    tag = b"\x81\x00\x00\x07" if vlan else b""
    return bytes(12) + tag + b"\x08\x00" + packet.ip()


@dataclass(frozen=True)
class Turn:
    """Bytes that one side sends in one go."""

    from_client: bool
    data: bytes


def conversation(
    turns: list[Turn], *, segment: int = 1400, isn: tuple[int, int] = (1000, 5000), handshake: bool = True,
    client: tuple[str, int] = CLIENT, server: tuple[str, int] = SERVER,
) -> list[Packet]:  # fmt: skip
    """The packets of one connection, in order."""
    ends = {"client": client, "server": server}
    packets = []
    if handshake:
        packets += [Packet(True, isn[0], b"", SYN, **ends), Packet(False, isn[1], b"", SYN | ACK, isn[0] + 1, **ends)]
    at = {True: isn[0] + 1, False: isn[1] + 1}
    for turn in turns:
        side = turn.from_client
        for start in range(0, len(turn.data), segment):
            part = turn.data[start : start + segment]
            packets.append(Packet(side, at[side], part, ACK | PSH, at[not side], **ends))
            at[side] += len(part)
    return packets


def exchanges(count: int, *, pipelined: int = 1, size: int = 8) -> list[Turn]:
    """Turns of a client that has up to `pipelined` requests in flight."""
    turns = []
    for first in range(0, count, pipelined):
        ids = range(first, min(first + pipelined, count))
        turns.append(Turn(True, b"".join(request(n) for n in ids)))
        turns.append(Turn(False, b"".join(response(n, struct.pack(">ii", 0, 0) + bytes(size - 8)) for n in ids)))
    return turns


def pcap(
    packets: list[bytes], *, link_type: int = 1, order: str = "<", nano: bool = False, snaplen: int = 262144,
    start: int = 1_700_000_000,
) -> bytes:  # fmt: skip
    """A pcap file; a packet a millisecond, from this second on."""
    magic = 0xA1B23C4D if nano else 0xA1B2C3D4
    parts = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snaplen, link_type)]
    for n, packet in enumerate(packets):
        cut = packet[:snaplen]
        fraction = n % 1000 * (1_000_000 if nano else 1_000)
        parts.append(struct.pack(order + "IIII", start + n // 1000, fraction, len(cut), len(packet)) + cut)
    return b"".join(parts)


def pcapng(
    packets: list[bytes], *, order: str = "<", link_type: int = 1, options: bytes = b"", ticks: int = 1_000
) -> bytes:
    """A pcapng file of one section with one interface; a packet a millisecond, in `ticks` of its clock."""
    parts = [block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))]
    parts.append(block(order, 1, struct.pack(order + "HHI", link_type, 0, 0) + options))
    for n, packet in enumerate(packets):
        time = (1_700_000_000_000 + n) * ticks
        head = struct.pack(order + "IIIII", 0, time >> 32, time & 0xFFFFFFFF, len(packet), len(packet))
        parts.append(block(order, 6, head + packet + bytes(-len(packet) % 4)))
    return b"".join(parts)


def block(order: str, kind: int, body: bytes) -> bytes:
    """One pcapng block."""
    size = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + size + body + size


def capture_of(folder: Path, packets: list[Packet], **flavour: object) -> str:
    """A capture file with these packets; its name."""
    path = folder / "made.pcap"
    path.write_bytes(pcap([ethernet(packet) for packet in packets], **flavour))
    return str(path)


def resegmented(packets: list[Packet], sizes: random.Random) -> list[Packet]:
    """The same streams, cut elsewhere."""
    out = []
    for packet in packets:
        at = 0
        while at < len(packet.payload):
            size = sizes.randint(1, max(1, len(packet.payload) - at))
            out.append(replace(packet, seq=packet.seq + at, payload=packet.payload[at : at + size]))
            at += size
        if not packet.payload:
            out.append(packet)
    return out


def reordered(packets: list[Packet], chance: random.Random, window: int = 5) -> list[Packet]:
    """Data packets of the same side change places within a window; what a side says never overtakes what it answers."""
    out = list(packets)
    for n in range(2, len(out) - 1):
        other = n + chance.randint(1, window)
        run = out[n : other + 1]
        if other < len(out) and all(p.payload and p.from_client == out[n].from_client for p in run):
            out[n], out[other] = out[other], out[n]
    return out


def repeated(packets: list[Packet], chance: random.Random) -> list[Packet]:
    """Some packets come twice, at once or a little later; some once more with part of what came before (overlap)."""
    out: list[Packet] = []
    for packet in packets:
        out.append(packet)
        if packet.payload and chance.random() < 0.3:
            out.append(packet)
        if packet.payload and chance.random() < 0.2:
            earlier = chance.choice(out)
            if earlier.payload:
                out.append(earlier)
    return out


seeds = st.integers(0, 2**32 - 1).map(random.Random)
"""Sources of chance that shrink."""


Mangling = Callable[[list[Packet]], list[Packet]]
"""A network: what it makes of the packets given to it."""


def lossy(packets: list[Packet], chance: random.Random, share: float = 0.1) -> list[Packet]:
    """Some data packets are not in the capture."""
    return [packet for packet in packets if not packet.payload or chance.random() > share]


def streams(largest: int = 1500) -> st.SearchStrategy[tuple[bytes, bytes]]:
    """What client and server say: bytes of which none is ``?``, the mark of a missing one."""
    return st.tuples(st.integers(0, largest), st.integers(0, largest)).map(
        lambda sizes: (bytes_without_mark(sizes[0]), bytes_without_mark(sizes[1])[::-1])
    )


def bytes_without_mark(size: int) -> bytes:
    """Bytes from which their place follows, none of them ``?``."""
    return bytes(128 + n % 101 for n in range(size))


@st.composite
def manglings(draw: st.DrawFn, *, loss: bool = False) -> Mangling:
    """Networks that cut, reorder and repeat as they like; with `loss` they also lose."""
    chance = draw(seeds)
    steps: list[Callable[[list[Packet], random.Random], list[Packet]]] = draw(
        st.lists(st.sampled_from([resegmented, reordered, repeated]), max_size=4)
    )
    if loss:
        steps = [*steps, lossy]

    def mangle(packets: list[Packet]) -> list[Packet]:
        for step in steps:
            packets = step(packets, chance)
        return packets

    return mangle
