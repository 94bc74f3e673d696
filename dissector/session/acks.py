"""Produce with acks=0 is the one request that has no response: its `acks` is read where the request is seen.

Produce requests v0–2 begin with acks; v3–8 with a nullable transactional_id; v9 on with a compact one, after the
tagged fields of header v2 (ProduceRequest.json, KIP-98, KIP-482).
"""

from typing import Final

from dissector.protocol.wire import WireError, uvarint

PRODUCE: Final = 0
HEAD: Final = 1024
"""Bytes of a request that are enough to find `acks` in."""
_CLIENT_ID_AT: Final = 12
_FIRST_TRANSACTIONAL: Final = 3
_FIRST_FLEXIBLE: Final = 9


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
