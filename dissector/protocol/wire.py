"""Primitive types of the wire that `struct` can't read or write: variable-length integers and UUIDs.

Kafka's protocol guide, "Protocol Primitive Types"; KIP-482 for unsigned varints. Readers take `(data, at)` and return
`(value, at)`. Damaged bytes raise `WireError`, which one boundary (`protocol.message`) catches. A value that its type
can't hold raises `EncodeError`; the caller adds the path.
"""

import re
from binascii import a2b_base64, b2a_base64
from functools import lru_cache
from typing import Final

VARINT_BYTES: Final = 5
VARLONG_BYTES: Final = 10


class WireError(ValueError):
    """Bytes that don't match the schema. `at` is the offset of the field in its source.

    >>> try:
    ...     dissector.primitives.INT32.read(bytes(3))
    ... except dissector.WireError as error:
    ...     print(error, error.at)
    ends inside INT32 0
    """

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


class LimitError(WireError):
    """More of something than `core.limits` allows; the bytes may be right."""


def _unsigned(data: bytes, at: int, most: int) -> tuple[int, int]:
    if at < len(data) and (byte := data[at]) < 0x80:  # nearly all are one byte long
        return byte, at + 1
    value = 0
    for n in range(most):
        if at + n >= len(data):
            raise WireError("ends inside a varint", at)
        byte = data[at + n]
        value |= (byte & 0x7F) << (7 * n)
        if byte < 0x80:
            return value, at + n + 1
    raise WireError(f"varint of more than {most} bytes", at)


def uvarint(data: bytes, at: int) -> tuple[int, int]:
    """Read an UNSIGNED_VARINT: 7 bits per byte, low bits first, at most 5 bytes."""
    if at < len(data) and (byte := data[at]) < 0x80:  # as below, without a call: each structure ends with one
        return byte, at + 1
    value, after = _unsigned(data, at, VARINT_BYTES)
    return value & 0xFFFFFFFF, after


def uvarlong(data: bytes, at: int) -> tuple[int, int]:
    """Read an unsigned varint of 64 bits and at most 10 bytes, as in protocol buffers."""
    value, after = _unsigned(data, at, VARLONG_BYTES)
    return value & 0xFFFFFFFFFFFFFFFF, after


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a VARINT: a zig-zag encoded unsigned varint of 32 bits."""
    value, after = _unsigned(data, at, VARINT_BYTES)
    value &= 0xFFFFFFFF
    return (value >> 1) ^ -(value & 1), after


def varlong(data: bytes, at: int) -> tuple[int, int]:
    """Read a VARLONG: a zig-zag encoded unsigned varint of 64 bits and at most 10 bytes."""
    value, after = _unsigned(data, at, VARLONG_BYTES)
    value &= 0xFFFFFFFFFFFFFFFF
    return (value >> 1) ^ -(value & 1), after


@lru_cache(maxsize=4096)
def uuid_text(raw: bytes) -> str:
    """Return 16 bytes as Kafka prints a Uuid: 22 characters of URL-safe base64 (org.apache.kafka.common.Uuid).

    Cached, as traffic repeats the ids of a few topics.
    """
    return b2a_base64(raw, newline=False)[:22].decode("ascii").replace("+", "-").replace("/", "_")


_UUID: Final = re.compile(r"[A-Za-z0-9_-]{22}")


def is_printable(raw: bytes) -> bool:
    """Whether bytes are UTF-8 without control characters."""
    try:
        return raw.decode().isprintable()
    except UnicodeDecodeError:
        return False


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
