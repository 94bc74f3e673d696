"""The pcap format: a 24-byte header, then packets of a 16-byte record header and their bytes.

draft-ietf-opsawg-pcap. Both byte orders, microseconds and nanoseconds (by magic), and Alexey Kuznetzov's modified one.
Record headers are hopped over in Python, collecting their places; all fields are then read at once.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from dissector.capture.errors import CaptureError, DamagedError, damaged, truncated
from dissector.capture.gather import Ints, Order, unsigned
from dissector.events import PacketBatch, UInt8
from dissector.limits import BATCH_PACKETS

FILE_HEADER: Final = 24
LARGEST_PACKET: Final = 1 << 28
"""Longer ones are damage, not packets: even USB captures stay below."""


class Variant(NamedTuple):
    """What the magic number says."""

    order: Order
    nanoseconds: int
    """Of one unit of a timestamp's fraction."""
    record_header: int


MAGICS: Final[dict[bytes, Variant]] = {
    b"\xa1\xb2\xc3\xd4": Variant(">", 1000, 16),
    b"\xd4\xc3\xb2\xa1": Variant("<", 1000, 16),
    b"\xa1\xb2\x3c\x4d": Variant(">", 1, 16),
    b"\x4d\x3c\xb2\xa1": Variant("<", 1, 16),
    b"\xa1\xb2\xcd\x34": Variant(">", 1000, 24),
    b"\x34\xcd\xb2\xa1": Variant("<", 1000, 24),
}


class Pcap:
    """A pcap file, read in batches. `done` is the offset that reading has reached."""

    def __init__(self, name: str, data: UInt8, base: int) -> None:
        self._name = name
        self._data = data
        self._base = base
        self._variant = MAGICS[data[:4].tobytes()]
        if len(data) < FILE_HEADER:
            raise CaptureError(f"{name}: the file ends after {len(data)} bytes, inside its header")
        (network,) = struct.unpack_from(self._variant.order + "I", data.data, 20)
        self._link_type = network & 0xFFFF
        self.done = FILE_HEADER

    def batches(self, first: int) -> Iterator[PacketBatch]:
        """All packets; `first` is the number of the first one. Ends with `DamagedError` where the file is."""
        while self.done < len(self._data):
            places, problem = self._hop(first)
            if places:
                yield self._batch(np.array(places, np.int64), first)
                first += len(places)
            if problem:
                raise problem

    def _hop(self, number: int) -> tuple[list[int], DamagedError | None]:
        """Offsets of the next record headers, and what stops the hopping early."""
        at, end = self.done, len(self._data)
        header = self._variant.record_header
        read = struct.Struct(self._variant.order + "8xI").unpack_from
        places: list[int] = []
        problem: DamagedError | None = None
        buffer = memoryview(self._data.data)
        while len(places) < BATCH_PACKETS and at < end:
            if at + header > end:
                problem = truncated(self._name, number + len(places) + 1, at, header, end - at)
                break
            (captured,) = read(buffer, at)
            after = at + header + captured
            if after > end or captured > LARGEST_PACKET:
                problem = self._bad(number + len(places) + 1, at, captured, end)
                break
            places.append(at)
            at = after
        self.done = end if problem else at
        return places, problem

    def _bad(self, packet: int, at: int, captured: int, end: int) -> DamagedError:
        if captured > LARGEST_PACKET:
            return damaged(self._name, packet, at, f"a length of {captured:,} bytes can't be")
        header = self._variant.record_header
        return truncated(self._name, packet, at, header + captured, end - at)

    def _batch(self, places: Ints, first: int) -> PacketBatch:
        order = self._variant.order
        fields = [unsigned(self._data, places + 4 * n, 4, order) for n in range(4)]
        time_ns = fields[0] * 1_000_000_000 + fields[1] * self._variant.nanoseconds
        return PacketBatch(
            data=self._data,
            base=self._base,
            first=first,
            time_ns=time_ns,
            offset=places + self._variant.record_header,
            captured=fields[2],
            length=np.maximum(fields[2], fields[3]),
            link_type=np.full(len(places), self._link_type, np.uint16),
        )
