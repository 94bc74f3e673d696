"""A capture cut into files, as a ring buffer of dumpcap or tcpdump leaves it: each file with a header of its own."""

import random
import struct
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dissector.capture.file_opening import open_capture
from dissector.capture.files import Reader
from dissector.core.store import Store

NANOSECONDS = 0xA1B23C4D
MOST = 1 << 18


class Packet(NamedTuple):
    time_ns: int
    length: int
    link_type: int
    data: bytes


def packets(path: Path) -> list[Packet]:
    store = Store()
    reader = open_capture(str(path), store)
    assert isinstance(reader, Reader)
    return [
        Packet(int(batch.time_ns[n]), int(batch.length[n]), int(batch.link_type[n]),
               batch.data[int(batch.offset[n]) : int(batch.offset[n] + batch.captured[n])].tobytes())
        for batch in reader.batches()
        for n in range(len(batch))
    ]  # fmt: skip


def cuts(found: Sequence[Packet], chance: random.Random, most: int) -> list[int]:
    """Where to cut: between packets of which all before are earlier than all behind, so that files have an order."""
    times = np.array([packet.time_ns for packet in found])
    before = np.maximum.accumulate(times)[:-1]
    behind = np.minimum.accumulate(times[::-1])[::-1][1:]
    places = (np.flatnonzero(before < behind) + 1).tolist()
    return sorted(chance.sample(places, min(len(places), chance.randrange(most))))


def rolled(folder: Path, path: Path, chance: random.Random, most: int = 6) -> list[Path]:
    """Files that together are a capture, in the order of time; each pcap or pcapng, as it comes."""
    found = packets(path)
    edges = [0, *cuts(found, chance, most), len(found)]
    files = []
    for number, (start, end) in enumerate(pairwise(edges)):
        write = chance.choice([pcap, pcapng])
        files.append(folder / f"ring_{chance.randrange(1 << 30):08x}_{number}")
        files[-1].write_bytes(write(found[start:end]))
    return files


def pcap(some: Sequence[Packet]) -> bytes:
    parts = [struct.pack("<IHHiIII", NANOSECONDS, 2, 4, 0, 0, MOST, some[0].link_type if some else 1)]
    for packet in some:
        head = (packet.time_ns // 10**9, packet.time_ns % 10**9, len(packet.data), packet.length)
        parts.append(struct.pack("<IIII", *head) + packet.data)
    return b"".join(parts)


def pcapng(some: Sequence[Packet]) -> bytes:
    resolution = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)
    parts = [_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    parts.append(_block(1, struct.pack("<HHI", some[0].link_type if some else 1, 0, MOST) + resolution))
    for packet in some:
        head = (0, packet.time_ns >> 32, packet.time_ns & 0xFFFFFFFF, len(packet.data), packet.length)
        parts.append(_block(6, struct.pack("<IIIII", *head) + packet.data))
    return b"".join(parts)


def _block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + size + body + size
