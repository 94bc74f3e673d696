"""pcapng files of many sections and interfaces, in either byte order, with every block and option between packets."""

import random
import struct
from typing import Final

from tests.capture.writers import option
from tests.traffic import block
from tools.fuzz.captures import Packets
from tools.fuzz.mutation import INTERESTING, mutated

SECTION, INTERFACE, OBSOLETE, SIMPLE, NAMES, STATISTICS, ENHANCED, SECRETS = 0x0A0D0D0A, 1, 2, 3, 4, 5, 6, 10
CUSTOM: Final = (0xBAD, 0x40000BAD)
ETHERNET: Final = 1
LINK_TYPES: Final = (ETHERNET, ETHERNET, ETHERNET, ETHERNET, 0, 101, 113, 228, 276, 999, 65_535)
OPTION_CODES: Final = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 2_988, 2_989, 19_372, 19_373, 0xFFFF)
CLOCKS: Final = (0, 3, 6, 6, 6, 9, 9, 9, 12, 18, 63, 0x7F, 0x80, 0x8A, 0xBF, 0xFF)
BUILT: Final = (SECTION, INTERFACE)
MOST_PACKETS: Final = 2_000


class Writer:
    """A file in the making: the section that is open, its byte order, its interfaces."""

    def __init__(self, chance: random.Random, link_types: tuple[int, ...]) -> None:
        self._chance = chance
        self._link_types = link_types
        self._order = "<"
        self._snaplens: list[int] = []
        self._time = 1_700_000_000_000_000
        self.parts: list[bytes] = []

    def section(self) -> None:
        self._order = self._chance.choice("<>")
        self._snaplens = []
        size = -1 if self._chance.random() < 0.9 else self._chance.choice(INTERESTING) - (1 << 63)
        head = struct.pack(self._order + "IHHq", 0x1A2B3C4D, 1, self._chance.choice((0, 0, 2)), size)
        self._add(SECTION, head + self._options())

    def interface(self) -> None:
        self._snaplens.append(self._chance.choice((0, 262_144, 65_535)))
        head = struct.pack(self._order + "HHI", self._chance.choice(self._link_types), 0, self._snaplens[-1])
        clock = option(self._order, 9, bytes([self._chance.choice(CLOCKS)])) if self._chance.random() < 0.4 else b""
        if self._chance.random() < 0.1:
            clock += option(self._order, 14, struct.pack(self._order + "Q", self._chance.choice(INTERESTING)))
        self._add(INTERFACE, head + clock + self._options())

    def packet(self, data: bytes) -> None:
        """A packet of any block that has some."""
        order, chance = self._order, self._chance
        self._time += chance.choice((0, 1, 1_000, -5))
        high, low = self._time >> 32, self._time & 0xFFFFFFFF
        which = chance.randrange(len(self._snaplens))
        padded = data + bytes(-len(data) % 4)
        kind = chance.choice((ENHANCED, ENHANCED, ENHANCED, ENHANCED, OBSOLETE, SIMPLE))
        if kind == ENHANCED:
            body = struct.pack(order + "IIIII", which, high, low, len(data), len(data)) + padded + self._options()
        elif kind == OBSOLETE:
            head = struct.pack(order + "HHIIII", which & 0xFFFF, 0xFFFF, high, low, len(data), len(data))
            body = head + padded + self._options()
        else:
            body = struct.pack(order + "I", len(data)) + padded
        self._add(kind, body)

    def other(self) -> None:
        """A block without a packet."""
        order, chance = self._order, self._chance
        kind = chance.choice((NAMES, STATISTICS, SECRETS, *CUSTOM, 7, 8, 9, 0x80000000))
        if kind == NAMES:
            name = chance.choice((b"a\0", b"broker-1\0", b"\x1b[2J\0", b"x" * 300 + b"\0", b"no end"))
            record = struct.pack(order + "HH", 1, 4 + len(name)) + chance.randbytes(4) + name
            body = (record + bytes(-len(record) % 4)) * chance.choice((1, 1, 3)) + bytes(4) + self._options()
        elif kind == STATISTICS:
            counts = option(order, 5, struct.pack(order + "Q", chance.choice(INTERESTING)))
            body = struct.pack(order + "III", chance.choice((0, 1, 7, 2**31)), 0, 0) + counts + self._options()
        elif kind == SECRETS:
            secrets = chance.randbytes(4 * chance.randint(0, 9))
            body = struct.pack(order + "II", 0x544C534B, len(secrets)) + secrets
        else:
            body = chance.randbytes(4 * chance.randint(0, 12))
        self._add(kind, body)

    def _options(self) -> bytes:
        chance = self._chance
        if chance.random() < 0.6:
            return b""
        found = [
            option(self._order, chance.choice(OPTION_CODES), self._text()) for _ in range(chance.choice((1, 2, 9)))
        ]
        return b"".join(found) + chance.choice((bytes(4), bytes(4), b""))

    def _text(self) -> bytes:
        return self._chance.choice((b"", b"a word", b"eth0", b"\x1b[2J", b"a\nb", b"\xff\xfe", b"x" * 600, bytes(8)))

    def _add(self, kind: int, body: bytes) -> None:
        self.parts.append(block(self._order, kind, body))


def sections_file(packets: Packets, chance: random.Random) -> tuple[bytes, int | None]:
    """A file of some packets, and how many it has, if it is not damaged."""
    many = chance.random() < 0.1
    count = chance.randint(2, MOST_PACKETS) if many else chance.randint(2, 60)
    start = chance.randrange(len(packets))
    run = [packets[(start + number) % len(packets)] for number in range(count)]
    writer = Writer(chance, LINK_TYPES if chance.random() < 0.5 else (ETHERNET,))
    shares = [chance.choice((0.0, 0.05, 0.5, 1.0)) for _ in range(3)]
    writer.section()
    writer.interface()
    for packet in run:
        section, interface, other = (chance.random() < share for share in shares)
        if section:
            writer.section()
            writer.interface()
        if interface:
            writer.interface()
        if other:
            writer.other()
        writer.packet(packet)
    data = b"".join(writer.parts)
    if chance.random() < 0.4:
        return _damaged(writer.parts, chance), None
    return data, count


def _damaged(parts: list[bytes], chance: random.Random) -> bytes:
    """Blocks lost, repeated, in other places; or bytes changed."""
    out = list(parts)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(out))
        match chance.randrange(4):
            case 0:
                del out[at]
            case 1:
                out.insert(at, chance.choice(parts))
            case 2:
                out[at] = mutated(out[at], chance)
            case _:
                out[at:] = out[at:][::-1]
        if not out:
            break
    return b"".join(out) or b"\n\r\r\n"
