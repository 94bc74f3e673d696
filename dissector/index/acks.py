"""Produce with acks=0 is the only request without a response: `acks` is read from the request.

Produce requests v0–2 begin with acks; v3–8 with a nullable transactional_id; v9 on with a compact one, after the
tagged fields of header v2 (ProduceRequest.json, KIP-98, KIP-482).
"""

from typing import Final

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.store import Store
from dissector.index.frame_table import FrameTable
from dissector.index.message_headers import RequestHeaders
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.wire import WireError, uvarint

HEAD_SIZE: Final = 1024
"""Bytes of a request that are enough to find `acks`."""
_CLIENT_ID_OFFSET: Final = 12
_FIRST_TRANSACTIONAL: Final = 3
_FIRST_FLEXIBLE: Final = 9


def expect_response(store: Store, frames: FrameTable, rows: Int64, headers: RequestHeaders) -> Bool:
    """Return which requests have a response, `(n,)`: all except Produce with acks=0.

    Nearly every producer sends no transactional id and no tagged fields in the header. Then `acks` is 0 or 2 bytes
    behind the client id, and is read for all requests at once. The others are read one by one.
    """
    expected = np.ones(len(rows), np.bool_)
    produce = np.flatnonzero(headers.api_key == ApiKey.PRODUCE)
    if not len(produce):
        return expected
    end, version = headers.end[produce] + 4, headers.version[produce]
    address = frames.beginnings(rows[produce], end)
    simple = (address >= 0) & (frames.size.values[rows[produce]] >= end)
    four = np.zeros((len(produce), 4), np.uint8)
    four[simple] = store.gather(address[simple] + end[simple] - 4, 4)
    words = four.view(">i2").astype(np.int64)
    old = version < _FIRST_TRANSACTIONAL
    simple &= old | (words[:, 0] == np.where(version < _FIRST_FLEXIBLE, -1, 0))
    expected[produce] = np.where(old, words[:, 0], words[:, 1]) != 0
    for at in produce[~simple].tolist():
        head, _ = frames.read(int(rows[at]), HEAD_SIZE)
        expected[at] = expects_response(head, int(headers.version[at]))
    return expected


def expects_response(head: bytes, version: int) -> bool:
    """Return whether the Produce request that begins with `head` has a response. True where `head` is too short."""
    try:
        return acks(head, version) != 0
    except WireError:
        return True


def acks(head: bytes, version: int) -> int:
    """Return `acks` of the Produce request that begins with `head`. Raises `WireError` where `head` is too short."""
    at = _CLIENT_ID_OFFSET + 2 + max(0, _int16(head, _CLIENT_ID_OFFSET))
    if version >= _FIRST_FLEXIBLE:
        at = _after_tags(head, at)
        size, at = uvarint(head, at)
        at += max(0, size - 1)
    elif version >= _FIRST_TRANSACTIONAL:
        at += 2 + max(0, _int16(head, at))
    return _int16(head, at)


def _int16(data: bytes, at: int) -> int:
    if at + 2 > len(data):
        raise WireError("ends inside int16", at)
    return int.from_bytes(data[at : at + 2], "big", signed=True)


def _after_tags(data: bytes, at: int) -> int:
    count, at = uvarint(data, at)
    for _ in range(count):
        _, at = uvarint(data, at)
        size, at = uvarint(data, at)
        at += size
    return at
