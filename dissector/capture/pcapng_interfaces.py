"""Sections and interfaces of a pcapng file, and the times of packets by their interface's clock.

draft-ietf-opsawg-pcapng, 4.1 (sections), 4.2 (interfaces). A section has a byte order and interfaces; an interface has
a link type and a clock.
"""

import struct
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from dissector.capture.integers import ByteOrder
from dissector.capture.pcapng_options import COMMENT, PcapngOptions, options
from dissector.core.arrays import Bool, Int64, UInt16, UInt64
from dissector.core.times import SECOND

IF_NAME: Final = 2
IF_TSRESOL: Final = 9
IF_TSOFFSET: Final = 14
MAX_TICKS_PER_SECOND: Final = 1 << 63
"""Finer clocks don't fit 64 bits and don't exist."""
MAX_OFFSET_NS: Final = 1 << 62
"""Maximum offset of a clock: 146 years."""
DEFAULT_LINK_TYPE: Final = 1
"""Link type of an interface that the section never described: Ethernet, as most are."""


class PcapngInterface(NamedTuple):
    """A clock and a link type. A time is `ticks * numerator // denominator + offset_ns` nanoseconds."""

    link_type: int
    snaplen: int
    numerator: int = 1000
    denominator: int = 1
    offset_ns: int = 0
    name: str = ""


@dataclass(slots=True)
class PcapngSection:
    """A section, with the interfaces described so far. Sections are numbered from 1; 0 is before the first."""

    order: ByteOrder = "<"
    number: int = 0
    interfaces: list[PcapngInterface] = field(default_factory=list)

    @property
    def simple_snaplen(self) -> int:
        """Maximum bytes captured of packets in simple packet blocks, which belong to the first interface."""
        return (self.interfaces[0].snaplen if self.interfaces else 0) or 1 << 31


def read_interface(data: memoryview, at: int, size: int, order: ByteOrder, notes: PcapngOptions) -> PcapngInterface:
    """Return the interface that a block describes; its comments go to `notes`."""
    link_type, snaplen = struct.unpack_from(order + "H2xI", data, at + 8)
    numerator, denominator, offset_ns, name = 1000, 1, 0, ""
    for code, value in options(data, at + 16, at + size - 4, order):
        if code == IF_TSRESOL and value:
            base, power = (2, value[0] & 0x7F) if value[0] & 0x80 else (10, value[0])
            numerator, denominator = SECOND, min(base**power, MAX_TICKS_PER_SECOND)
        elif code == IF_TSOFFSET and len(value) == 8:
            offset_ns = SECOND * int.from_bytes(value, "big" if order == ">" else "little", signed=True)
        elif code == IF_NAME:
            name = value[:64].decode(errors="replace")
        elif code == COMMENT:
            notes.add_comment(value)
    offset_ns = max(-MAX_OFFSET_NS, min(offset_ns, MAX_OFFSET_NS))
    return PcapngInterface(link_type, snaplen, numerator, denominator, offset_ns, name)


def times_and_link_types(
    interfaces: list[PcapngInterface], which: Int64, ticks: UInt64, simple: Bool
) -> tuple[Int64, UInt16]:
    """Return times in nanoseconds and link types of packets, by the number of their interface, `(n,)` each.

    Times of an interface that was never described are in microseconds; `simple` packets have no time, and get 0.
    """
    known = [*interfaces, PcapngInterface(DEFAULT_LINK_TYPE, 0)]
    which = np.minimum(which, len(interfaces))
    if which.min() == which.max():  # usually there is one interface: its numbers then need no columns
        known, which = [known[int(which[0])]], np.zeros(1, np.int64)
    numerator = np.array([interface.numerator for interface in known], np.uint64)[which]
    denominator = np.array([interface.denominator for interface in known], np.uint64)[which]
    offset_ns = np.array([interface.offset_ns for interface in known], np.int64)[which]
    link_type = np.array([interface.link_type for interface in known], np.uint16)[which]
    seconds, rest = np.divmod(ticks, denominator)
    fraction = rest * numerator // denominator
    fine = denominator > SECOND
    if fine.any():  # the product may not fit 64 bits, and the precision is above nanoseconds anyway
        fraction = np.where(fine, (rest.astype(np.float64) * numerator / denominator).astype(np.uint64), fraction)
    time_ns = (seconds * numerator + fraction).astype(np.int64) + offset_ns
    time_ns[simple] = 0
    return time_ns, np.broadcast_to(link_type, len(ticks)).astype(np.uint16)
