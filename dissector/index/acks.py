"""Produce with acks=0 is the one request that has no response: its `acks` is read where the request is seen.

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

HEAD: Final = 1024
"""Bytes of a request that are enough to find `acks` in."""
_CLIENT_ID_AT: Final = 12
_FIRST_TRANSACTIONAL: Final = 3
_FIRST_FLEXIBLE: Final = 9


def awaited(store: Store, frames: FrameTable, rows: Int64, heads: RequestHeaders) -> Bool:
    """Which requests the broker answers: all but Produce with acks=0.

    Nearly every producer sends no transactional id and no tagged fields in the header: then acks stands 0 or 2 bytes
    behind the client id, and all are read at once. The others are read one by one.
    """
    answered = np.ones(len(rows), np.bool_)
    produce = np.flatnonzero(heads.api_key == ApiKey.PRODUCE)
    if not len(produce):
        return answered
    address, version = frames.contiguous(rows[produce]), heads.version[produce]
    simple = (address >= 0) & (frames.size.values[rows[produce]] >= heads.end[produce] + 4)
    four = np.zeros((len(produce), 4), np.uint8)
    four[simple] = store.gather(address[simple] + heads.end[produce][simple], 4)
    words = four.view(">i2").astype(np.int64)
    old = version < _FIRST_TRANSACTIONAL
    simple &= old | (words[:, 0] == np.where(version < _FIRST_FLEXIBLE, -1, 0))
    answered[produce] = np.where(old, words[:, 0], words[:, 1]) != 0
    for at in produce[~simple].tolist():
        head, _ = frames.read(int(rows[at]), HEAD)
        answered[at] = expects_response(head, int(heads.version[at]))
    return answered


def expects_response(head: bytes, version: int) -> bool:
    """Whether the broker answers the Produce request that begins with `head`. True where it can't be told."""
    try:
        at = _CLIENT_ID_AT + 2 + max(0, _int16(head, _CLIENT_ID_AT))
        if version >= _FIRST_FLEXIBLE:
            at = _after_tags(head, at)
            size, at = uvarint(head, at)
            at += max(0, size - 1)
        elif version >= _FIRST_TRANSACTIONAL:
            at += 2 + max(0, _int16(head, at))
        return _int16(head, at) != 0
    except WireError:
        return True


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
