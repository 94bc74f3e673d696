"""Packets of a test through the transport stage, without a file between."""

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dissector.core.batches import NOWHERE, PacketBatch, RunBatch, RunKind
from dissector.core.limits import DEFAULT, Limits
from dissector.core.store import Store
from dissector.transport import Transport
from tests.traffic import Packet, ethernet


class Run(NamedTuple):
    """A row of a `RunBatch`, with its bytes; a gap has none."""

    direction: int
    start: int
    size: int
    kind: int
    data: bytes
    packet: int


@dataclass
class Reading:
    """What came out."""

    transport: Transport
    runs: list[Run] = field(default_factory=list)

    at_end: list[Run] = field(default_factory=list)
    """Those that came out only when the capture ended."""

    @property
    def streams(self) -> dict[int, bytes]:
        """Every direction's bytes, ``?`` for missing ones; fails where runs don't tile them."""
        found: dict[int, bytes] = {}
        for run in self.runs:
            assert run.start == len(found.get(run.direction, b""))
            assert run.size > 0
            data = run.data if run.kind == RunKind.DATA else b"?" * run.size
            found[run.direction] = found.get(run.direction, b"") + data
        return found


def batch(
    packets: list[bytes], *, base: int = 0, first: int = 0, link_type: int = 1, lengths: list[int] | None = None
) -> PacketBatch:
    """Packets as a batch; a packet a millisecond."""
    sizes = np.array([len(packet) for packet in packets], np.int64)
    return PacketBatch(
        data=np.frombuffer(b"".join(packets) or b"\0", np.uint8),
        base=base,
        number=first + np.arange(len(packets), dtype=np.int64),
        time_ns=(first + np.arange(len(packets), dtype=np.int64)) * 1_000_000,
        offset=np.cumsum(sizes) - sizes,
        captured=sizes,
        length=sizes if lengths is None else np.array(lengths, np.int64),
        link_type=np.full(len(packets), link_type, np.uint16),
    )


def part(packets: PacketBatch, start: int, end: int) -> PacketBatch:
    """Some packets of a batch, over the same bytes."""
    rows = slice(start, end)
    return replace(
        packets, number=packets.number[rows], time_ns=packets.time_ns[rows], offset=packets.offset[rows],
        captured=packets.captured[rows], length=packets.length[rows], link_type=packets.link_type[rows],
    )  # fmt: skip


def read(
    packets: list[Packet] | list[bytes], *, cuts: list[int] | None = None, limits: Limits = DEFAULT,
    link_type: int = 1, snaplen: int = 262_144, is_patient: bool = False,
) -> Reading:  # fmt: skip
    """All packets through the transport stage, in batches cut before the packets with these numbers."""
    frames = [ethernet(packet) if isinstance(packet, Packet) else packet for packet in packets]
    store = Store()
    data = [frame[:snaplen] for frame in frames]
    base = store.add(b"".join(data) or b"\0")
    whole = batch(data, base=base, link_type=link_type, lengths=[len(frame) for frame in frames])
    transport = Transport(store, limits, is_patient=is_patient)
    reading = Reading(transport)
    for start, end in pairwise(sorted({0, len(frames), *(cut % (len(frames) + 1) for cut in cuts or [])})):
        reading.runs += _runs(transport.feed(part(whole, start, end)), store)
    reading.at_end = _runs(transport.flush(), store)
    reading.runs += reading.at_end
    return reading


def _runs(batches: list[RunBatch], store: Store) -> list[Run]:
    return [run for batch in batches for run in _rows(batch, store)]


def _rows(runs: RunBatch, store: Store) -> list[Run]:
    places = zip(runs.address.tolist(), runs.size.tolist(), strict=True)
    data = [b"" if address == NOWHERE else bytes(store.read(address, size)) for address, size in places]
    columns = (runs.direction, runs.start, runs.size, runs.kind)
    rows = zip(*(column.tolist() for column in columns), data, runs.packet.tolist(), strict=True)
    return [Run(*row) for row in rows]
