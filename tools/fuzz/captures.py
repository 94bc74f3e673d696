"""Capture files of real packets on which a hostile network, or a broken disk, has been."""

import random
import struct
from collections.abc import Callable, Sequence
from typing import Final

from tests.traffic import block, pcap, pcapng
from tools.fuzz.mutation import IN_PLACE, INTERESTING, Change, mutated

ETHERNET: Final = 14
IPV4: Final = 0x45
LONGEST_RUN: Final = 40
LONGEST_LOGIN: Final = 100
_FIXED: Final = 20
"""Bytes of an IPv4 header and of a TCP header, without options."""

Packets = list[bytes]


def capture_file(packets: Packets, chance: random.Random) -> bytes:
    """A file with some packets in a row, changed as a network or a disk may change them."""
    start = chance.choice((0, 0, chance.randrange(len(packets))))
    run = packets[start : start + chance.randint(2, LONGEST_RUN)]
    for _ in range(chance.randint(0, 4)):
        run = chance.choice(NETWORKS)(run, chance) or run
    order = chance.choice("<>")
    if chance.random() < 0.5:
        file = pcap(run, order=order, nano=chance.random() < 0.5, snaplen=chance.choice((262144, 262144, 96)))
    else:
        file = pcapng(run, order=order, options=_options(order, chance), ticks=chance.choice((1, 1000)))
        file += _strange_block(order, chance) if chance.random() < 0.2 else b""
    return mutated(file, chance) if chance.random() < 0.4 else file


def login_changed(packets: Packets, chance: random.Random) -> Packets:
    """The packets with any change but such as copy bytes to another place: a secret's would be no secret there."""
    run = packets[chance.choice((0, chance.randrange(len(packets)))) :][: chance.randint(2, LONGEST_LOGIN)]
    return packets_changed(run, chance, chance.randint(0, 4))


def packets_changed(run: Packets, chance: random.Random, times: int) -> Packets:
    """The same for packets of any connection."""
    for _ in range(times):
        run = chance.choice(NETWORKS_OF_LOGINS)(run, chance) or run
    return run


def _options(order: str, chance: random.Random) -> bytes:
    """Of a pcapng interface: a clock, sound or not."""
    if chance.random() < 0.5:
        return b""
    clock = struct.pack(order + "HHB3x", 9, 1, chance.choice((0, 3, 6, 9, 18, 0x7F, 0x80, 0x8A, 0xFF)))
    offset = struct.pack(order + "HHQ", 14, 8, chance.choice(INTERESTING))
    return clock + (offset if chance.random() < 0.5 else b"") + bytes(4)


def _strange_block(order: str, chance: random.Random) -> bytes:
    return block(
        order, chance.choice((1, 2, 3, 4, 5, 6, 10, 0x0A0D0D0A, 0xBAD)), chance.randbytes(4 * chance.randint(0, 12))
    )


def _loses(run: Packets, chance: random.Random) -> Packets:
    return [each for each in run if chance.random() > 0.1]


def _repeats(run: Packets, chance: random.Random) -> Packets:
    return [each for packet in run for each in [packet] * chance.choice((1, 1, 1, 2))]


def _reorders(run: Packets, chance: random.Random) -> Packets:
    places = [(n + chance.choice((0, 0, 0, chance.randint(-4, 4))), n) for n in range(len(run))]
    return [run[n] for _, n in sorted(places)]


def _cuts(run: Packets, chance: random.Random) -> Packets:
    return [each[: chance.randint(0, len(each))] if chance.random() < 0.1 else each for each in run]


def _damages_payload(run: Packets, chance: random.Random) -> Packets:
    """The content changes and keeps its length: frames and records are damaged, TCP is not."""
    return [_in_payload(each, chance, ()) if chance.random() < 0.2 else each for each in run]


def _damages_in_place(run: Packets, chance: random.Random) -> Packets:
    """The same, but no bytes are copied."""
    return [_in_payload(each, chance, IN_PLACE) if chance.random() < 0.2 else each for each in run]


def _in_payload(packet: bytes, chance: random.Random, changes: Sequence[Change]) -> bytes:
    at = payload_of(packet)
    if at >= len(packet):
        return packet
    changed = mutated(packet[at:], chance, (), changes)
    return packet[:at] + changed[: len(packet) - at].ljust(len(packet) - at, b"\0")


def _damages_headers(run: Packets, chance: random.Random) -> Packets:
    return [_in_headers(each, chance) if chance.random() < 0.1 else each for each in run]


def _in_headers(packet: bytes, chance: random.Random) -> bytes:
    end = min(payload_of(packet), len(packet))
    out = bytearray(packet)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(12, max(13, end))
        if at < len(out):
            out[at] = chance.choice((chance.randrange(256), 0, 1, 0xFF))
    return bytes(out)


def _shifts(run: Packets, chance: random.Random) -> Packets:
    """Sequence numbers jump, a little or far: overlaps, holes, wrap-around."""
    by = chance.choice((-1, 1, -100, 100, 1 << 20, 1 << 30, 1 << 31, -(1 << 31)))
    return [_field(each, ETHERNET + _FIXED + 4, 4, by) if chance.random() < 0.2 else each for each in run]


def _wraps(run: Packets, chance: random.Random) -> Packets:
    """All numbers of all directions move, so that they wrap in the midst. Their upper halves are no letters, which two
    numbers side by side could make a piece of a name."""
    by = -chance.randrange(1 << 14) % (1 << 32)
    moved = [_field(each, ETHERNET + _FIXED + 4, 4, by) for each in run]
    return [_field(each, ETHERNET + _FIXED + 8, 4, by) for each in moved]


def _flags(run: Packets, chance: random.Random) -> Packets:
    at = ETHERNET + _FIXED + 13
    return [_field(each, at, 1, chance.randrange(256)) if chance.random() < 0.1 else each for each in run]


def _field(packet: bytes, at: int, width: int, by: int) -> bytes:
    """A number of the packet, moved."""
    value = (int.from_bytes(packet[at : at + width], "big") + by) % (1 << 8 * width)
    return packet[:at] + value.to_bytes(width, "big") + packet[at + width :] if at + width <= len(packet) else packet


def _fragments(run: Packets, chance: random.Random) -> Packets:
    """Some IPv4 packets come in two pieces, in either order, or only one of them."""
    return [piece for each in run for piece in (_in_pieces(each, chance) if chance.random() < 0.2 else [each])]


def _in_pieces(packet: bytes, chance: random.Random) -> Packets:
    head, rest = packet[: ETHERNET + _FIXED], packet[ETHERNET + _FIXED :]
    if len(rest) < 16 or head[ETHERNET] != IPV4:
        return [packet]
    cut = 8 * chance.randint(1, len(rest) // 8)
    pieces = [_piece(head, rest[:cut], 0x2000), _piece(head, rest[cut:], cut // 8)]
    chance.shuffle(pieces)
    return pieces[: chance.choice((1, 2, 2, 2))]


def _piece(head: bytes, content: bytes, offset: int) -> bytes:
    size = struct.pack(">H", (_FIXED + len(content)) & 0xFFFF)
    out = head[: ETHERNET + 2] + size + head[ETHERNET + 4 : ETHERNET + 6] + struct.pack(">H", offset)
    return out + head[ETHERNET + 8 :] + content


def payload_of(packet: bytes) -> int:
    """Where TCP's payload begins, for IPv4 without options."""
    at = ETHERNET + _FIXED
    return at + 4 * (packet[at + 12] >> 4) if len(packet) > at + 12 else len(packet)


NETWORKS: Final[Sequence[Callable[[Packets, random.Random], Packets]]] = (
    _loses, _repeats, _reorders, _cuts, _damages_payload, _damages_payload, _damages_headers, _shifts, _wraps, _flags,
    _fragments,
)  # fmt: skip
NETWORKS_OF_LOGINS: Final[Sequence[Callable[[Packets, random.Random], Packets]]] = (
    *(each for each in NETWORKS if each is not _damages_payload), _damages_in_place, _damages_in_place,
)  # fmt: skip
