"""TCP headers (RFC 9293) as columns.

Payload is located, never copied. Its length is by the innermost IP header, never what was captured. The headers are
read natively (`tcp.c`).
"""

from collections import Counter
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt64
from dissector.core.kernel import kernel_function
from dissector.transport.endpoint_index import WORDS
from dissector.transport.headers import Layer

_tcp_headers = kernel_function("tcp_headers", "PqPPPPqPPP")

CUT_OFF: Final = "truncated TCP header"


class TcpHeaders(NamedTuple):
    """Headers of segments, `(n,)` each, and the location of the payload."""

    row: Int64
    seq: Int64
    ack: Int64
    flags: Int64
    address: Int64
    size: Int64
    missing: Int64
    window: Int64
    scale: Int64
    """Of a SYN that offers one (RFC 7323), at most 14; else `NO_SCALE`."""
    keys: UInt64
    """Of the pairs of endpoints, as in `EndpointIndex`."""
    higher: Bool
    """Whether the sender is the higher end of the pair."""


def joined_headers(parts: list[TcpHeaders]) -> TcpHeaders:
    """Merge parts in capture order."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        none = np.zeros(0, np.int64)
        keys = np.zeros((0, WORDS), np.uint64)
        return TcpHeaders(none, none, none, none, none, none, none, none, none, keys, none.astype(np.bool_))
    order = np.argsort(np.concatenate([part.row for part in parts]), kind="stable")
    return TcpHeaders._make(np.concatenate(columns)[order] for columns in zip(*parts, strict=True))


def tcp_headers(layer: Layer, ignored: Counter[str]) -> TcpHeaders:
    """Return the segments of a layer; those that are cut off are counted in `ignored`."""
    rows = len(layer)
    columns = np.empty((9, rows), np.int64)
    keys, higher = np.empty((rows, WORDS), np.uint64), np.empty(rows, np.bool_)
    places = [np.ascontiguousarray(column) for column in (layer.at, layer.ip, layer.captured, layer.end)]
    count = _tcp_headers()(
        layer.data.ctypes.data, len(layer.data), *(each.ctypes.data for each in places), rows, columns.ctypes.data,
        keys.ctypes.data, higher.ctypes.data,
    )  # fmt: skip
    if count < rows:
        ignored[CUT_OFF] += rows - count
    row, seq, ack, flags, payload, size, missing, window, scale = columns[:, :count]
    return TcpHeaders(
        layer.rows[row], seq, ack, flags, layer.base + payload, size, missing, window, scale, keys[:count],
        higher[:count],
    )  # fmt: skip
