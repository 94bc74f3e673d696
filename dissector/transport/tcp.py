"""TCP headers (RFC 9293) as columns: `PacketBatch` to `SegmentBatch`, in capture order.

Payload is located, never copied. Its length is what IP says, never what was captured: Ethernet pads short packets.
"""

from collections import Counter

import numpy as np

from dissector.events import PacketBatch, SegmentBatch
from dissector.transport.flows import Addresses, Flows
from dissector.transport.ip import NOT_IP_PACKET, Datagrams, Slow, count, datagrams
from dissector.transport.link import LINK_LAYOUTS, NOT_IP
from dissector.transport.slow_path import SlowPath
from dissector.transport.view import Ints, PacketView

LEAST_HEADER = 20


def segments(packets: PacketBatch, flows: Flows, slow_path: SlowPath, ignored: Counter[str]) -> SegmentBatch:
    """The TCP segments of a batch; what is none is counted in `ignored` by reason."""
    found: list[Datagrams] = []
    left: list[Slow] = []
    for link_type in np.unique(packets.link_type).tolist():
        fast, slow = _datagrams(packets, link_type, ignored)
        found += fast
        left += [rows for rows in slow if len(rows.rows)]
    if left:  # of all link types at once: fragments of one datagram may come by several interfaces
        found += slow_path.read(packets, left)
    parts = [_located(datagram, ignored) for datagram in found if len(datagram.segment)]
    if not parts:
        empty = np.zeros(0, np.int64)
        return SegmentBatch(empty, empty, empty, empty.astype(np.uint32), empty.astype(np.uint32),
                            empty.astype(np.uint8), empty, empty, empty)  # fmt: skip
    rows, source, destination, table = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(rows, kind="stable")
    rows, table = rows[order], table[order]
    seq, ack, flags, payload, size, missing, source_port, destination_port = table.T
    packet, time_ns = packets.first + rows, packets.time_ns[rows]
    direction = flows.directions(
        (source[order], source_port),
        (destination[order], destination_port),
        flags,
        seq,
        ack,
        size + missing,
        packet,
        time_ns,
    )
    return SegmentBatch(
        packet, time_ns, direction, seq.astype(np.uint32), ack.astype(np.uint32), flags.astype(np.uint8),
        payload, size, missing,
    )  # fmt: skip


def _datagrams(packets: PacketBatch, link_type: int, ignored: Counter[str]) -> tuple[list[Datagrams], list[Slow]]:
    rows = np.flatnonzero(packets.link_type == link_type)
    layout = LINK_LAYOUTS.get(link_type)
    if layout is None:
        ignored[f"link type {link_type}"] += len(rows)
        return [], []
    view = PacketView.of(packets, rows)
    ip = layout(view)
    known = ip != NOT_IP
    if not known.all():
        count(ignored, NOT_IP_PACKET, ~known)
        view, ip = view.where(known), ip[known]
    return datagrams(view, ip, ignored)


def _located(found: Datagrams, ignored: Counter[str]) -> tuple[Ints, Addresses, Addresses, Ints]:
    """Rows, addresses, and a table of the header's fields with the payload's place."""
    view, at = found.view, found.segment
    header = (view.u8(at + 12) >> 4) * 4
    whole = (at + LEAST_HEADER <= view.end) & (header >= LEAST_HEADER) & (at + header <= found.end)
    if not whole.all():
        count(ignored, "cut off inside the TCP header", ~whole)
        view, at, header = view.where(whole), at[whole], header[whole]
    payload = at + header
    end = found.end[whole]
    size = np.maximum(np.minimum(end, view.end) - payload, 0)
    missing = end - payload - size
    ports = (view.u16(at), view.u16(at + 2))
    fields = (view.u32(at + 4), view.u32(at + 8), view.u8(at + 13))
    table = np.stack([*fields, view.base + payload, size, missing, *ports], axis=1)
    return view.rows, found.source[whole], found.destination[whole], table
