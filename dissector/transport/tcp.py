"""TCP headers (RFC 9293) as columns: `PacketBatch` to `SegmentBatch`, in capture order.

Payload is located, never copied. Its length is by the innermost IP header, never what was captured.
"""

import ctypes
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt8
from dissector.core.batches import NO_SCALE, PacketBatch, SegmentBatch
from dissector.core.kernel import function
from dissector.transport.connection_table import SYN, ConnectionTable
from dissector.transport.header_columns import Layer
from dissector.transport.header_parser import HeaderParser
from dissector.transport.ip import V4_HEADER, V6_HEADER
from dissector.transport.partitions import Partition, pair_hashes

LEAST_HEADER: Final = 20
V4_MAPPED: Final = np.frombuffer(b"\0\0\xff\xff", np.uint32)[0]
"""Third of the four words of an IPv4 address mapped into IPv6 (RFC 4291, 2.5.5.2); the first two are 0."""
CUT_OFF: Final = "cut off inside the TCP header"


class Located(NamedTuple):
    """Segments, `(n,)` each: header fields, endpoints, and the location of the payload."""

    row: Int64
    source: UInt8
    """`(n, 16)`: IPv6, or IPv4 mapped into it."""
    destination: UInt8
    source_port: Int64
    destination_port: Int64
    seq: Int64
    ack: Int64
    flags: Int64
    address: Int64
    size: Int64
    missing: Int64
    window: Int64
    scale: Int64


def segments(
    packets: PacketBatch,
    connections: ConnectionTable,
    header_parser: HeaderParser,
    ignored: Counter[str],
    partition: Partition | None = None,
) -> SegmentBatch:
    """Return the TCP segments of a batch; other packets are counted in `ignored` by reason.

    With a `partition` of the capture, only its segments: IP fragments are in all partitions, and the segment of their
    datagram belongs to one."""
    parts = [part for layer in header_parser.segments(packets) for part in located(layer, ignored)]
    if not parts:
        empty = np.zeros(0, np.int64)
        return SegmentBatch(empty, empty, empty, empty.astype(np.uint32), empty.astype(np.uint32),
                            empty.astype(np.uint8), empty, empty, empty, empty, empty)  # fmt: skip
    found = _joined(parts)
    if partition is not None and len(header_parser.fragments):
        hashes = pair_hashes(found.source, found.source_port, found.destination, found.destination_port)
        found = Located._make(column[partition.contains(hashes)] for column in found)
    packet, time_ns = packets.number[found.row], packets.time_ns[found.row]
    direction = connections.directions(
        (found.source, found.source_port), (found.destination, found.destination_port),
        found.flags, found.seq, found.ack, found.size + found.missing, packet, time_ns,
    )  # fmt: skip
    return SegmentBatch(
        packet, time_ns, direction, found.seq.astype(np.uint32), found.ack.astype(np.uint32),
        found.flags.astype(np.uint8), found.address, found.size, found.missing, found.window,
        found.scale,
    )  # fmt: skip


def _joined(parts: list[Located]) -> Located:
    """Merge parts in capture order."""
    if len(parts) == 1:
        return parts[0]
    order = np.argsort(np.concatenate([part.row for part in parts]), kind="stable")
    return Located(*(np.concatenate(columns)[order] for columns in zip(*parts, strict=True)))


def located(layer: Layer, ignored: Counter[str]) -> list[Located]:
    """Return the segments of a layer, as one part or none."""
    layer = _fitting(layer, layer.room >= LEAST_HEADER, ignored)
    head = layer.header(LEAST_HEADER)
    header = (head.u8(12) >> 4) * 4
    fits = (header >= LEAST_HEADER) & (layer.at + header <= layer.end)
    if not fits.all():
        layer, header = _fitting(layer, fits, ignored), header[fits]
        head = layer.header(LEAST_HEADER)
    if not len(layer):
        return []
    payload = layer.at + header
    size = np.maximum(np.minimum(layer.end, layer.captured) - payload, 0)
    source, destination = _addresses(layer)
    return [
        Located(
            layer.rows, source, destination, head.u16(0), head.u16(2), head.u32(4), head.u32(8), head.u8(13),
            layer.base + payload, size, layer.end - payload - size, head.u16(14), _scales(layer, payload, head.u8(13)),
        )
    ]  # fmt: skip


def _scales(layer: Layer, payload: Int64, flags: Int64) -> Int64:
    """Return the scales that SYNs offer (RFC 7323, 2.2), `(n,)`; of all others `NO_SCALE`."""
    scales = np.full(len(layer), NO_SCALE, np.int64)
    syns = np.flatnonzero(flags & SYN)
    if len(syns):
        scales[syns] = window_scales(
            layer.data, layer.at[syns] + LEAST_HEADER, np.minimum(payload[syns], layer.captured[syns])
        )
    return scales


def window_scales(data: UInt8, starts: Int64, ends: Int64) -> Int64:
    """Return the scales in the options at these places, `(n,)`, by the native kernel (`tcp.c`): at most 14, as what is
    above it counts as that (2.3); `NO_SCALE` where there is none."""
    scales = np.empty(len(starts), np.int64)
    _window_scales()(data.ctypes.data, len(data), starts.ctypes.data, ends.ctypes.data, len(starts), scales.ctypes.data)
    return scales


@cache
def _window_scales() -> Callable[..., int]:
    number, address = ctypes.c_int64, ctypes.c_void_p
    return function("window_scales", address, number, address, address, number, address)


def _fitting(layer: Layer, fits: Bool, ignored: Counter[str]) -> Layer:
    good, other = layer.split(fits)
    if len(other):
        ignored[CUT_OFF] += len(other)
    return good


def _addresses(layer: Layer) -> tuple[UInt8, UInt8]:
    """Return source and destination, `(n, 16)` each."""
    head = layer.ip_header(V4_HEADER)  # as much as both versions have
    words = np.zeros((2, len(layer), 4), np.uint32)
    words[:, :, 2] = V4_MAPPED
    words[:, :, 3] = head.raw(12, 8).view(np.uint32).T
    six = (head.u8(0) >> 4) == 6
    if six.any():
        addresses = layer.where(six).ip_header(V6_HEADER).raw(8, 32)
        words[:, six] = addresses.view(np.uint32).reshape(-1, 2, 4).swapaxes(0, 1)
    source, destination = words.view(np.uint8)
    return source, destination
