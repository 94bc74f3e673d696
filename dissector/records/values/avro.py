"""Avro's binary encoding (Avro 1.12 specification), read by a schema, within limits.

fastavro parses schemas; data are read here. A library's reader trusts data and schema: it recurses in C for a schema
that contains itself, and makes as many nulls as the length of an array promises. Tests compare both on what is honest.

Values are those of Avro's JSON with three differences: a union's value is not wrapped in its type's name, bytes are
bytes, and dates, times, decimals and uuids are text.
"""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from dissector.core import limits
from dissector.records.values.opened import AVRO, NodeBudget, UnreadableError, check_size
from dissector.records.values.schema_reference import SchemaReference

Schema = Any
"""As fastavro returns it: a name, a list (a union), or a dict."""
_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
_LONGEST: Final = 70
"""Bits of the longest varint, at most ten bytes."""


def parse_avro(definitions: Sequence[object]) -> "AvroSchema":
    """Return the last of some schemas, given as JSON; it may refer to types of those before it. Raises
    `UnreadableError`, and `ImportError` without fastavro."""
    from fastavro.schema import parse_schema

    named: dict[str, Any] = {}
    parsed: Schema = None
    for each in definitions:
        check_size(each)
        try:
            parsed = parse_schema(each, named_schemas=named, _force=True)  # type: ignore[arg-type]  # it checks that
        except Exception as error:  # of many kinds, by what is wrong
            raise UnreadableError(f"invalid Avro schema: {str(error) or type(error).__name__}"[:200]) from None
    return AvroSchema(parsed, named)


class AvroSchema:
    """Reads values of one schema."""

    def __init__(self, schema: Schema, named: Mapping[str, Schema]) -> None:
        self._schema = schema
        self._named = named

    @property
    def name(self) -> str:
        """The full name of a record; of other types none."""
        return str(self._schema.get("name", "")) if isinstance(self._schema, dict) else ""

    form = AVRO

    def read(
        self, data: bytes, _front: SchemaReference | None = None, bounds: limits.Limits = limits.DEFAULT
    ) -> tuple[str, object]:
        """Return the name of the schema and the value that all of the bytes are. Raises `UnreadableError`."""
        reader = _AvroReader(data, self._named, bounds)
        try:
            value = reader.value(self._schema, 0)
        except (LookupError, TypeError, ValueError) as error:  # of a schema that the parser let pass
            raise UnreadableError(f"the schema can't be followed: {type(error).__name__}") from None
        if reader.at != len(data):
            raise UnreadableError(f"{len(data) - reader.at:,} bytes after the value: another schema wrote it")
        return self.name, value


class _AvroReader:
    def __init__(self, data: bytes, named: Mapping[str, Schema], bounds: limits.Limits) -> None:
        self._data = data
        self._named = named
        self._budget = NodeBudget(bounds)
        self._longest_decimal = bounds.decimal_bytes
        self.at = 0

    def value(self, schema: Schema, depth: int) -> object:
        """Read a value."""
        self._budget.take(depth)
        if isinstance(schema, list):
            branch = self._long()
            if not 0 <= branch < len(schema):
                raise UnreadableError(f"branch {branch} of a union with {len(schema)} types")
            return self.value(schema[branch], depth + 1)
        kind = schema["type"] if isinstance(schema, dict) else schema
        read = _READERS.get(kind) if isinstance(kind, str) else None
        if read is None:
            inner = kind if isinstance(kind, dict | list) else self._named.get(kind)
            if inner is None:
                raise UnreadableError(f"the schema has no type {str(kind)[:80]!r}")
            return self.value(inner, depth + 1)
        found = read(self, schema, depth)
        if not isinstance(schema, dict) or "logicalType" not in schema:
            return found
        if isinstance(found, bytes) and len(found) > self._longest_decimal:
            return found
        return _logical(found, schema)

    def _long(self) -> int:
        found = shift = 0
        while True:
            if self.at >= len(self._data) or shift >= _LONGEST:
                raise UnreadableError(
                    "the data ends inside a number" if shift < _LONGEST else "a number of more than 64 bits"
                )
            byte = self._data[self.at]
            self.at += 1
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (found >> 1) ^ -(found & 1)

    def _raw(self, size: int) -> bytes:
        if not 0 <= size <= len(self._data) - self.at:
            raise UnreadableError(f"a length of {size:,} bytes where {len(self._data) - self.at:,} are left")
        self.at += size
        return self._data[self.at - size : self.at]

    def _null(self, _schema: Schema, _depth: int) -> None:
        return None

    def _boolean(self, _schema: Schema, _depth: int) -> bool:
        return self._raw(1) != b"\x00"

    def _integer(self, _schema: Schema, _depth: int) -> int:
        return self._long()

    def _float(self, _schema: Schema, _depth: int) -> float:
        (found,) = _FLOAT.unpack(self._raw(4))
        return float(found)

    def _double(self, _schema: Schema, _depth: int) -> float:
        (found,) = _DOUBLE.unpack(self._raw(8))
        return float(found)

    def _bytes(self, _schema: Schema, _depth: int) -> bytes:
        return self._raw(self._long())

    def _string(self, _schema: Schema, _depth: int) -> str:
        return self._raw(self._long()).decode("utf-8", "surrogateescape")

    def _fixed(self, schema: Schema, _depth: int) -> bytes:
        return self._raw(int(schema["size"]))

    def _enum(self, schema: Schema, _depth: int) -> str:
        symbols, at = schema["symbols"], self._long()
        if not 0 <= at < len(symbols):
            raise UnreadableError(f"symbol {at} of an enum with {len(symbols)}")
        return self._budget.take_name(str(symbols[at]))

    def _record(self, schema: Schema, depth: int) -> dict[str, object]:
        name = self._budget.take_name
        return {name(field["name"]): self.value(field["type"], depth + 1) for field in schema["fields"]}

    def _array(self, schema: Schema, depth: int) -> list[object]:
        items = schema["items"]
        return [self.value(items, depth + 1) for _ in self._block_items()]

    def _map(self, schema: Schema, depth: int) -> dict[str, object]:
        values = schema["values"]
        return {self._string(None, 0): self.value(values, depth + 1) for _ in self._block_items()}

    def _block_items(self) -> Iterator[None]:
        """Yield once for each item of an array or a map: blocks of counted items, up to an empty one."""
        while count := self._long():
            if count < 0:
                count = -count
                self._long()  # the block's size in bytes
            for _ in range(count):
                yield


_Read = Callable[[_AvroReader, Schema, int], object]
_READERS: Final[dict[str, _Read]] = {
    "null": _AvroReader._null, "boolean": _AvroReader._boolean, "int": _AvroReader._integer,
    "long": _AvroReader._integer, "float": _AvroReader._float, "double": _AvroReader._double,
    "bytes": _AvroReader._bytes, "string": _AvroReader._string, "fixed": _AvroReader._fixed,
    "enum": _AvroReader._enum, "record": _AvroReader._record, "error": _AvroReader._record,
    "array": _AvroReader._array, "map": _AvroReader._map,
}  # fmt: skip


def _logical(value: object, schema: Schema) -> object:
    """Return a value of a logical type as text; one that is none of its type stays as it is."""
    from fastavro.read import LOGICAL_READERS

    read = LOGICAL_READERS.get(f"{schema['type']}-{schema['logicalType']}")
    if read is None:
        return value
    try:
        found = read(value, schema, None)
    except Exception:  # a year 300,000, a uuid that is none
        return value
    if isinstance(found, date | datetime | time):
        return found.isoformat()
    return str(found) if isinstance(found, Decimal | UUID) else value
