"""Packets that a program has in memory, as a capture: `(time, bytes)` as dpkt's readers yield them, or scapy's packets.

Neither library is imported: a reader of dpkt's is recognized by its method `datalink`, a packet of scapy's by its
attributes.
The bytes are joined, some megabytes at a time, and stay in memory; there is no file.

Times may be integers or fractions of seconds; exact ones (`Decimal`, `Fraction`) count to the nanosecond. A float has
room for microseconds only, and is rounded to them.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final

import numpy as np

from dissector.capture.errors import CaptureError
from dissector.core.batches import PacketBatch
from dissector.core.finding import Finding
from dissector.core.limits import FIRST_PACKETS
from dissector.core.store import Store
from dissector.core.times import SECOND

NAME: Final = "packets"
ETHERNET: Final = 1
"""LINKTYPE_ETHERNET."""
_JOINED_BYTES: Final = 8 << 20
_JOINED_PACKETS: Final = 16 * FIRST_PACKETS
_MICROSECONDS: Final = 10**6


@dataclass(frozen=True)
class PacketObjects:
    """Packets as an input of `Capture`, in place of a file. `packets` is iterated once, and what was read is kept; the
    link type (a LINKTYPE_ number) is that of `(time, bytes)`, where the packets do not know it themselves."""

    packets: Iterable[Any]
    link_type: int | None = None
    name: str = NAME
    kept: list[PacketBatch] = field(default_factory=list, compare=False, repr=False)
    """All packets, once they were read."""


class PacketObjectReader:
    """Reads packets, with the interface of `files.Reader`. Raises `CaptureError` where something is no packet."""

    grows = False
    has_times = True
    notes = None
    total = 0

    def __init__(self, source: PacketObjects, store: Store) -> None:
        self.name = source.name
        self.problems: list[Finding] = []
        self.done = 0
        self._store = store
        self._kept = source.kept
        self._is_kept = bool(source.kept)
        self._packets = iter(source.packets)
        datalink = getattr(source.packets, "datalink", None)
        known = source.link_type if source.link_type is not None or datalink is None else datalink()
        self._link_type = ETHERNET if known is None else int(known)
        self._read = 0
        self._ahead: list[Any] = []

    def start_ns(self) -> int | None:
        """Return the time of the first packet; None if there is none."""
        if self._is_kept:
            return int(self._kept[0].time_ns[0])
        if not self._ahead:
            self._ahead = [each for _, each in zip(range(1), self._packets, strict=False)]
        return self._columns(self._ahead[0])[0] if self._ahead else None

    def batches(self, most: int | None = None) -> Iterator[PacketBatch]:
        """Yield all packets, numbered from 0, at the `most` so many at a time when they are read first."""
        if self._is_kept:
            yield from (replace(each, base=self._store.add(each.data.tobytes())) for each in self._kept)
            return
        batch: list[tuple[int, int, int, bytes]] = []
        size, enough = 0, min(most or _JOINED_PACKETS, FIRST_PACKETS)
        for each in chain(self._ahead, self._packets):
            batch.append(self._columns(each))
            size += len(batch[-1][3])
            if len(batch) >= enough or size >= _JOINED_BYTES:
                yield self._joined(batch)
                batch, size, enough = [], 0, min(most or _JOINED_PACKETS, 2 * enough)
        if batch:
            yield self._joined(batch)

    def _joined(self, batch: list[tuple[int, int, int, bytes]]) -> PacketBatch:
        times, lengths, links, pieces = zip(*batch, strict=True)
        data = b"".join(pieces)
        captured = np.fromiter(map(len, pieces), np.int64, len(pieces))
        number = np.arange(self._read, self._read + len(batch))
        self._read += len(batch)
        self.done += len(data)
        self._kept.append(PacketBatch(
            np.frombuffer(data, np.uint8), self._store.add(data), number, np.array(times, np.int64),
            np.cumsum(captured) - captured, captured, np.maximum(np.array(lengths, np.int64), captured),
            np.array(links, np.uint16),
        ))  # fmt: skip
        return self._kept[-1]

    def _columns(self, packet: Any) -> tuple[int, int, int, bytes]:
        """Return time, length on the wire, link type and bytes of a packet."""
        if isinstance(packet, tuple | list) and len(packet) == 2:
            time, data = packet
            if isinstance(data, bytes | bytearray | memoryview):
                return _time_ns(time), 0, self._link_type, bytes(data)
        elif hasattr(packet, "time") and hasattr(packet, "wirelen"):
            data = getattr(packet, "original", b"") or bytes(packet)
            return _time_ns(packet.time), packet.wirelen or 0, self._link_of(packet), data
        kind = type(packet).__name__
        raise CaptureError(f"{self.name}: {kind} is not a packet: give (time, bytes), or packets of scapy's")

    def _link_of(self, packet: Any) -> int:
        """Return the link type of a packet of scapy's, as scapy itself has it."""
        scapy = sys.modules.get("scapy.config")
        known = None if scapy is None else scapy.conf.l2types.layer2num.get(type(packet))
        return self._link_type if known is None else int(known)

    def close(self) -> None:
        """Nothing is open."""


def _time_ns(time: Any) -> int:
    """Return a time as nanoseconds. Raises `CaptureError` if it is none."""
    try:
        if isinstance(time, float):
            return round(time * _MICROSECONDS) * (SECOND // _MICROSECONDS)
        if isinstance(time, Sequence):  # a text would be repeated as often as a second has nanoseconds
            raise TypeError
        nanoseconds: int = round(time * SECOND)
    except (TypeError, ValueError, OverflowError):
        raise CaptureError(f"{time!r} is not a time in seconds") from None
    return nanoseconds
