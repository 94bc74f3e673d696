"""Reads primitive types that `struct` can't: variable-length integers and UUIDs.

Kafka's protocol guide, "Protocol Primitive Types"; KIP-482 for unsigned varints. Readers take `(data, at)` and return
`(value, at)`. Damaged bytes raise `WireError`, which one boundary (`protocol.message`) catches.
"""

from binascii import b2a_base64
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
