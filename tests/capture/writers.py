"""A clean capture's packets, written in every way that people have."""

import bz2
import gzip
import lzma
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import lz4.frame

from dissector.capture import open_capture
from dissector.core.store import Store
from tests.traffic import block
from tests.zstd_library import zstd


class Seen(NamedTuple):
    """A packet of a capture."""

    time_ns: int
    data: bytes
    length: int
    """Bytes on the wire."""


def seen(path: Path) -> list[Seen]:
    """The packets of a capture with one link type."""
    found = []
    for batch in open_capture(str(path), Store()).batches():
        rows = (batch.time_ns.tolist(), batch.offset.tolist(), batch.captured.tolist(), batch.length.tolist())
        found += [Seen(t, batch.data[at : at + n].tobytes(), size) for t, at, n, size in zip(*rows, strict=True)]
    return found


def pcap(packets: list[Seen], *, order: str = "<", magic: int = 0xA1B2C3D4, more: bytes = b"") -> bytes:
    """A pcap file; `more` stands behind the usual 16 bytes of each record's header."""
    nanos = magic == 0xA1B23C4D
    parts = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262144, 1 | 4 << 28)]
    for packet in packets:
        second, rest = divmod(packet.time_ns, 10**9)
        head = (second, rest if nanos else rest // 1000, len(packet.data), packet.length)
        parts.append(struct.pack(order + "IIII", *head) + more + packet.data)
    return b"".join(parts)


def option(order: str, code: int, value: bytes) -> bytes:
    """One option of a pcapng block."""
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(order: str = "<", *, options: bytes = b"") -> bytes:
    """The beginning of a section."""
    return block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1) + options)


def interface(order: str = "<", *, options: bytes = b"") -> bytes:
    """An Ethernet interface."""
    return block(order, 1, struct.pack(order + "HHI", 1, 0, 0) + options)


def enhanced(packet: Seen, ticks: int, order: str = "<", *, which: int = 0, options: bytes = b"") -> bytes:
    """A packet, at a time of its interface's clock."""
    head = struct.pack(order + "IIIII", which, ticks >> 32, ticks & 0xFFFFFFFF, len(packet.data), packet.length)
    return block(order, 6, head + packet.data + bytes(-len(packet.data) % 4) + options)


def obsolete(packet: Seen, ticks: int, order: str = "<") -> bytes:
    """A packet as the first writers of pcapng wrote it."""
    head = struct.pack(order + "HHIIII", 0, 0xFFFF, ticks >> 32, ticks & 0xFFFFFFFF, len(packet.data), packet.length)
    return block(order, 2, head + packet.data + bytes(-len(packet.data) % 4))


def nanoseconds(order: str = "<") -> bytes:
    """The option of an interface whose clock counts them."""
    return option(order, 9, b"\x09") + bytes(4)


def pcapng(packets: list[Seen], order: str = "<", **flavour: bytes) -> bytes:
    """One section, one interface whose clock counts nanoseconds."""
    blocks = [enhanced(packet, packet.time_ns, order, **flavour) for packet in packets]
    return section(order) + interface(order, options=nanoseconds(order)) + b"".join(blocks)


def sections(packets: list[Seen]) -> bytes:
    """A section of either byte order after another, a few packets in each."""
    cuts = range(0, max(1, len(packets)), 50)
    return b"".join(pcapng(packets[n : n + 50], "<>"[n // 50 % 2]) for n in cuts)


def two_interfaces(packets: list[Seen]) -> bytes:
    """Turn by turn, by clocks that differ in resolution and offset."""
    offset = 1_600_000_000
    clock = option("<", 9, b"\x09") + option("<", 14, struct.pack("<q", offset)) + bytes(4)
    data = section() + interface(options=nanoseconds()) + interface(options=clock)
    for n, packet in enumerate(packets):
        data += enhanced(packet, packet.time_ns - n % 2 * offset * 10**9, which=n % 2)
    return data


def talkative(packets: list[Seen]) -> bytes:
    """Between the packets every other block that there is, and options on all that have some."""
    comment = option("<", 1, b"a word") + bytes(4)
    names = struct.pack("<HH4s10s2x", 1, 14, b"\x7f\0\0\1", b"broker-1\0\0") + bytes(4)
    counters = option("<", 4, struct.pack("<Q", 10)) + option("<", 5, struct.pack("<Q", 7)) + bytes(4)
    others = [
        block("<", 4, names),
        block("<", 5, struct.pack("<III", 0, 0, 0) + counters),
        block("<", 10, struct.pack("<II", 0x544C534B, 8) + b"CLIENT_R"),
        block("<", 9, b"MESSAGE=hello\0\0\0"),
        block("<", 0xBAD, struct.pack("<I", 32473) + b"own data"),
        block("<", 0x1234, b"unknown!"),
    ]
    described = option("<", 2, b"lo") + nanoseconds()
    data = section(options=comment) + interface(options=described)
    for n, packet in enumerate(packets):
        flags = option("<", 2, bytes(4))
        data += others[n % len(others)] + enhanced(packet, packet.time_ns, options=flags + comment)
    return data


PCAPS: dict[str, tuple[Callable[[list[Seen]], bytes], int]] = {
    "pcap": (pcap, 1000),
    "pcap, big-endian": (lambda p: pcap(p, order=">"), 1000),
    "pcap, nanoseconds": (lambda p: pcap(p, magic=0xA1B23C4D), 1),
    "pcap, big-endian, nanoseconds": (lambda p: pcap(p, order=">", magic=0xA1B23C4D), 1),
    "pcap, modified": (lambda p: pcap(p, magic=0xA1B2CD34, more=struct.pack("<IHBx", 1, 8, 4)), 1000),
    "pcap, modified, big-endian": (lambda p: pcap(p, order=">", magic=0xA1B2CD34, more=bytes(8)), 1000),
    "pcap, modified, with the usual magic": (lambda p: pcap(p, more=bytes(8)), 1000),
    "pcap, modified, of 28 bytes": (lambda p: pcap(p, magic=0xA1B2CD34, more=bytes(12)), 1000),
    "pcap, of Nokia": (lambda p: pcap(p, more=b"\0\1\2\3"), 1000),
}
PCAPNGS: dict[str, tuple[Callable[[list[Seen]], bytes], int]] = {
    "pcapng": (pcapng, 1),
    "pcapng, big-endian": (lambda p: pcapng(p, ">"), 1),
    "pcapng, sections": (sections, 1),
    "pcapng, two interfaces": (two_interfaces, 1),
    "pcapng, every block": (talkative, 1),
    "pcapng, obsolete packets": (
        lambda p: section() + interface(options=nanoseconds()) + b"".join(obsolete(each, each.time_ns) for each in p),
        1,
    ),
}
"""By name: a writer, and the nanoseconds that its times are whole multiples of."""

COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstd.compress,
    "lz4": lz4.frame.compress,
}


def members(data: bytes, compress: Callable[[bytes], bytes]) -> bytes:
    """Compressed in pieces, one behind the other."""
    cuts: Iterable[int] = range(0, len(data), 10_000)
    return b"".join(compress(data[at : at + 10_000]) for at in cuts)
