"""Kafka's primitive types as objects: `INT32.read(data)`, `COMPACT_STRING.write("orders")`, `array(UUID)`.

Names and layouts are those of Kafka's protocol guide, "Protocol Primitive Types", and KIP-482. Each is a plan for one
value, read and written by the same code as messages. Limits are checked: the range of integers, strings of at most
32,767 bytes, varints of at most 5 or 10 bytes, and counts and lengths that fit the available bytes. A violation raises
`WireError` (reading) or `EncodeError` (writing).

>>> dissector.primitives.COMPACT_STRING.write("orders")
b'\\x07orders'
>>> dissector.primitives.array(dissector.primitives.INT8).read(bytes([0, 0, 0, 2, 1, 7]))
([1, 7], 6)
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dissector.protocol.codec.plan import (
    ArrayPlan,
    ScalarPlan,
    StructPlan,
    TypePlan,
    VariablePlan,
    wire_type,
)
from dissector.protocol.codec.reader import UNKNOWN_TAGS, reader_of
from dissector.protocol.wire import WireError, uvarint, uvarint_bytes, varint, varint_bytes, varlong, varlong_bytes


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type of the wire. `plan` is None for types that only occur inside others: varints, tagged fields."""

    name: str
    plan: TypePlan | None
    _read: Callable[[bytes, int, int], tuple[object, int]]
    _write: Callable[[object], bytes]

    def read(self, data: bytes, at: int = 0) -> tuple[object, int]:
        """Return the value that begins at `at`, and the offset of its end. Raises `WireError`."""
        try:
            value, end = self._read(data, at, len(data))
        except (struct.error, IndexError):
            raise WireError(f"ends inside {self.name}", at) from None
        return value, end

    def write(self, value: object) -> bytes:
        """Return the bytes of a value. Raises `EncodeError`."""
        return self._write(value)


def _of(plan: TypePlan) -> Primitive:
    return Primitive(wire_type(plan), plan, reader_of(plan), lambda value: _written(plan, value))


def _written(plan: TypePlan, value: object) -> bytes:
    from dissector.protocol.codec.writer import write_value  # what reads needs no writer

    return write_value(plan, value)


def _variable(name: str) -> tuple[Primitive, Primitive, Primitive, Primitive]:
    """Return the forms of a type with a length: plain, nullable, compact, compact and nullable."""
    forms = [(False, False), (False, True), (True, False), (True, True)]
    first, second, third, fourth = (_of(VariablePlan(name, compact, nullable)) for compact, nullable in forms)
    return first, second, third, fourth


def _varint(name: str, read: Callable[[bytes, int], tuple[int, int]], write: Callable[[object], bytes]) -> Primitive:
    return Primitive(name, None, lambda data, at, _end: read(data, at), write)


def array(element: Primitive, *, compact: bool = False, nullable: bool = False) -> Primitive:
    """Return the type ARRAY or COMPACT_ARRAY of `element`, which must have a plan."""
    if element.plan is None:
        raise TypeError(f"there are no arrays of {element.name}")
    return _of(ArrayPlan(element.plan, compact, nullable))


BOOLEAN: Final = _of(ScalarPlan("bool"))
INT8: Final = _of(ScalarPlan("int8"))
INT16: Final = _of(ScalarPlan("int16"))
INT32: Final = _of(ScalarPlan("int32"))
INT64: Final = _of(ScalarPlan("int64"))
UINT16: Final = _of(ScalarPlan("uint16"))
UINT32: Final = _of(ScalarPlan("uint32"))
FLOAT64: Final = _of(ScalarPlan("float64"))
UUID: Final = _of(ScalarPlan("uuid"))
VARINT: Final = _varint("VARINT", varint, varint_bytes)
VARLONG: Final = _varint("VARLONG", varlong, varlong_bytes)
UNSIGNED_VARINT: Final = _varint("UNSIGNED_VARINT", uvarint, uvarint_bytes)
STRING, NULLABLE_STRING, COMPACT_STRING, COMPACT_NULLABLE_STRING = _variable("string")
BYTES, NULLABLE_BYTES, COMPACT_BYTES, COMPACT_NULLABLE_BYTES = _variable("bytes")
RECORDS, NULLABLE_RECORDS, COMPACT_RECORDS, COMPACT_NULLABLE_RECORDS = _variable("records")

_NO_FIELDS: Final = StructPlan("TAGGED_FIELDS", (), (), flexible=True, nullable=False)
_read_tags: Final = reader_of(_NO_FIELDS)


def _tagged_fields(data: bytes, at: int, end: int) -> tuple[object, int]:
    values, at = _read_tags(data, at, end)
    assert isinstance(values, dict)
    return values.get(UNKNOWN_TAGS, []), at


TAGGED_FIELDS: Final = Primitive(
    "TAGGED_FIELDS", None, _tagged_fields, lambda value: _written(_NO_FIELDS, {UNKNOWN_TAGS: value})
)
"""A list of ``{"tag": 0, "data": b"…"}``, in the order of the tags."""

PRIMITIVES: Final = (
    BOOLEAN, INT8, INT16, INT32, INT64, UINT16, UINT32, FLOAT64, UUID, VARINT, VARLONG, UNSIGNED_VARINT,
    STRING, NULLABLE_STRING, COMPACT_STRING, COMPACT_NULLABLE_STRING,
    BYTES, NULLABLE_BYTES, COMPACT_BYTES, COMPACT_NULLABLE_BYTES,
    RECORDS, NULLABLE_RECORDS, COMPACT_RECORDS, COMPACT_NULLABLE_RECORDS, TAGGED_FIELDS,
)  # fmt: skip
"""All types but arrays."""
