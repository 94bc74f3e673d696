"""IEEE 802.11 frames, bare and behind the headers of monitoring cards. Encrypted frames are counted as such."""

from collections.abc import Iterator
from typing import Final

from dissector.transport.header_columns import HeaderColumns, Layer
from dissector.transport.link import SNAP
from dissector.transport.next_header import NOT_IP, HeaderProtocol, NextHeader

ENCRYPTED_FRAME: Final = "encrypted 802.11 frame"
FRAGMENT: Final = "802.11 fragment"
AGGREGATE: Final = "802.11 aggregate"
DATA, TYPE = 0x08, 0x0C
QOS, NO_DATA = 0x80, 0x40
BOTH_WAYS, MORE_FRAGMENTS, PROTECTED, ORDER = 0x03, 0x04, 0x40, 0x80
AGGREGATED: Final = 0x80


def _frame(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    """Frame control, then up to four addresses; with quality of service one more control field."""
    kind, flags = head.u8(0), head.u8(1)
    data = ((kind & TYPE) == DATA) & ((kind & NO_DATA) == 0)
    protected = (flags & PROTECTED) != 0
    fragment = ((flags & MORE_FRAGMENTS) != 0) | ((head.u8(22) & 15) != 0)
    yield NextHeader(layer.where(~data), NOT_IP)
    yield NextHeader(layer.where(data & protected), ENCRYPTED_FRAME)
    yield NextHeader(layer.where(data & ~protected & fragment), FRAGMENT)
    plain = data & ~protected & ~fragment
    qos, order = (kind & QOS) != 0, (flags & ORDER) != 0
    inside = layer.after(FRAME.size + 6 * ((flags & BOTH_WAYS) == BOTH_WAYS))
    yield NextHeader(inside.where(plain & ~qos), SNAP)
    yield NextHeader(inside.where(plain & qos & ~order), _QOS)
    yield NextHeader(inside.where(plain & qos & order), _QOS_HT)


def _qos(size: int) -> HeaderProtocol:
    def read(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
        aggregate = (head.u8(0) & AGGREGATED) != 0
        yield NextHeader(layer.after(size).where(~aggregate), SNAP)
        yield NextHeader(layer.where(aggregate), AGGREGATE)

    return HeaderProtocol("802.11", size, read, runt=NOT_IP)


def _radiotap(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    yield NextHeader(layer.after(head.little16(2)), FRAME)


def _monitored(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    """The header's length is at the same offset in both formats, in either byte order."""
    yield NextHeader(layer.after(head.small32(4)), FRAME)


FRAME: Final = HeaderProtocol("802.11", 24, _frame, runt=NOT_IP)
_QOS: Final = _qos(2)
_QOS_HT: Final = _qos(6)
RADIOTAP: Final = HeaderProtocol("radiotap", 4, _radiotap)
PRISM_OR_AVS: Final = HeaderProtocol("802.11 monitor", 8, _monitored)
