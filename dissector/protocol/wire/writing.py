"""Writes primitive types that `struct` can't: variable-length integers and UUIDs.

A value that its type can't hold raises `EncodeError`; the caller adds the path.
"""

import re
from binascii import a2b_base64
from typing import Final

_UUID: Final = re.compile(r"[A-Za-z0-9_-]{22}")


class EncodeError(ValueError):
    """A value that can't be encoded. `path` is its path from the message's root.

    >>> try:
    ...     dissector.encode_request("Metadata", 12, {"topics": [{"name": 5}]})
    ... except dissector.EncodeError as error:
    ...     print(error)
    body.topics[0].name: 5 is not a string
    """

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.message = message
        self.path = path

    def under(self, name: str) -> "EncodeError":
        """Return the same error with `name` in front of its path."""
        joint = "" if not self.path or self.path.startswith("[") else "."
        return EncodeError(self.message, f"{name}{joint}{self.path}")


def _integer(value: object, low: int, high: int, kind: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise EncodeError(f"{value!r} is not an integer")
    if not low <= value <= high:
        raise EncodeError(f"{value} is not in the range of {kind}")
    return value


def _groups(value: int) -> bytes:
    """Return 7 bits per byte, low bits first, with the high bit set on all bytes but the last."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def uvarint_bytes(value: object) -> bytes:
    """Encode an UNSIGNED_VARINT of 32 bits."""
    return _groups(_integer(value, 0, 2**32 - 1, "UNSIGNED_VARINT"))


def varint_bytes(value: object) -> bytes:
    """Encode a VARINT: zig-zag, 32 bits."""
    number = _integer(value, -(2**31), 2**31 - 1, "VARINT")
    return _groups((number << 1) ^ (number >> 31))


def varlong_bytes(value: object) -> bytes:
    """Encode a VARLONG: zig-zag, 64 bits."""
    number = _integer(value, -(2**63), 2**63 - 1, "VARLONG")
    return _groups((number << 1) ^ (number >> 63))


def uuid_bytes(value: object) -> bytes:
    """Encode a UUID, given as Kafka prints it, in 16 bytes."""
    if not isinstance(value, str) or not _UUID.fullmatch(value):
        raise EncodeError(f"{value!r} is not a uuid: 22 characters of URL-safe base64")
    return a2b_base64(value.replace("-", "+").replace("_", "/") + "==")


def integer_bytes(value: object, size: int, kind: str, *, signed: bool = True) -> bytes:
    """Encode a big-endian integer in `size` bytes."""
    bits = 8 * size
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return _integer(value, low, high, kind).to_bytes(size, "big", signed=signed)
