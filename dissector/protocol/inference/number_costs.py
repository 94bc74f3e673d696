"""The cost in bits of a number in a field: low for values that are usual in that field, high for unlikely ones.

Bits are -log2 of a probability. They add up over the fields of a frame, and can be compared between layouts of the
same bytes. A value that no real broker sends costs `ABSURD`, which is more than the bytes themselves.
"""

import math
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from dissector.protocol.codec.plan import STRUCTS
from dissector.protocol.schema.enums import ERROR_CODE, enum_of, members, name_of
from dissector.protocol.schema.errors import known_errors

NUMBERS: Final = STRUCTS | {"bool": struct.Struct("B")}
"""How scalars are read. A boolean is read as a byte, as only 0 and 1 are valid."""
ABSURD: Final = 40.0
_MILLENNIUM: Final = 946_684_800_000
"""The year 2000 in milliseconds, before Kafka."""
_CENTURY: Final = 100 * 365 * 86_400_000
_LONGEST_THROTTLE: Final = 3_600_000
_UNNAMED: Final = 0x5EEDED
"""A number without a name in all enums. Its display name shows whether an enum allows unnamed numbers."""

Bits = Callable[[int], float]


def plain(value: int, width: int) -> float:
    """Return the cost of a plain number: small ones are likely, -1 is Kafka's "none", other negative ones are odd."""
    if value >= 0:
        return min(2.0 * value.bit_length(), 8.0 * width) + 1.5
    return 4.0 if value == -1 else 8.0 * width + 10


def _throttle(value: int) -> float:
    if not value:
        return 0.1
    return 18.0 if 0 < value < _LONGEST_THROTTLE else ABSURD


def _error(value: int) -> float:
    if not value:
        return 0.3
    return 9.0 if value in known_errors() else ABSURD


def _port(value: int) -> float:
    return 15.0 if 0 < value < 65_536 else 5.0 if value == -1 else ABSURD


def _time(value: int) -> float:
    return 30.0 if _MILLENNIUM <= value < _MILLENNIUM + _CENTURY else plain(value, 8)


@lru_cache
def _in_enum(enum: str, width: int) -> Bits:
    """Return the costs of numbers of an enum."""
    known = members(enum)
    closed = name_of(enum, _UNNAMED).startswith("UNKNOWN(")
    each = math.log2(len(known)) + 0.5

    def bits(value: int) -> float:
        if value in known:
            return each
        return ABSURD if closed else plain(value, width)

    return bits


@lru_cache(maxsize=8192)
def bits_of(message: str, field: str, kind: str, width: int) -> Bits:
    """Return the costs of numbers in a field of a message; `kind` is the wire type, `width` its size in bytes."""
    if kind == "bool":
        return _flag
    if field == "throttle_time_ms":
        return _throttle
    enum = enum_of(message, field)
    if enum == ERROR_CODE:
        return _error
    if enum is not None:
        return _in_enum(enum, width)
    if field == "port":
        return _port
    if kind == "int64" and ("time" in field or field.endswith("_ms")):
        return _time
    return _plain_number(width)


def _flag(value: int) -> float:
    return 1.0 if value in (0, 1) else ABSURD


@lru_cache
def _plain_number(width: int) -> Bits:
    """Return one function for all such fields: what layouts begin with is compared by it."""
    return lambda value: plain(value, width)
