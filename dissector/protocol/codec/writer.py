"""Writes plain values as bytes, along the plan that `reader` and `tracer` follow.

`write(name, version, values)` takes the values that a reader returns. A missing field has its schema's default; a
missing tagged field is not written. A name that the version lacks is an error, so that nothing is lost silently.

Invariants:
  * for every frame in canonical encoding, `write` of what `reader` returned gives the same bytes (a property test);
  * a value that its type can't hold raises `EncodeError` with its path, and nothing else is raised.
"""

import struct
from collections.abc import Mapping
from typing import Final

from dissector.core.suggestions import did_you_mean
from dissector.protocol.codec.plan import (
    ArrayPlan,
    FieldPlan,
    ScalarPlan,
    StructPlan,
    TypePlan,
    VariablePlan,
    plan,
    wire_type,
)
from dissector.protocol.codec.reader import UNKNOWN_TAGS
from dissector.protocol.records.from_json import records_bytes
from dissector.protocol.wire import EncodeError, integer_bytes, uuid_bytes, uvarint_bytes

LONGEST_STRING: Final = 0x7FFF
"""Bytes of the longest string, compact or not: Apache's generated classes refuse longer ones."""
LARGEST: Final = 0x7FFF_FFFF
ZERO_UUID: Final = "A" * 22


class Writer:
    """Writes values of any plan. A subclass may accept other forms of bytes (`frame.JsonWriter`)."""

    def struct(self, plan: StructPlan, values: object) -> bytes:
        """Return the bytes of a structure: its fields, then the tagged ones in the order of their tags."""
        if not isinstance(values, Mapping):
            raise EncodeError(f"{_brief(values)} is not a structure")
        self._check_names(plan, values)
        parts = [self._field(field, values) for field in plan.fields]
        if plan.flexible:
            parts.append(self._tagged_fields(plan, values))
        return b"".join(parts)

    def value(self, plan: TypePlan, value: object) -> bytes:
        """Return the bytes of one value."""
        match plan:
            case ScalarPlan():
                return _scalar(plan, value)
            case VariablePlan():
                return self._variable(plan, value)
            case ArrayPlan():
                return self._array(plan, value)
            case StructPlan():
                if not plan.nullable:
                    return self.struct(plan, value)
                return b"\xff" if value is None else b"\x01" + self.struct(plan, value)

    def _check_names(self, plan: StructPlan, values: Mapping[str, object]) -> None:
        known = {field.name for field in (*plan.fields, *plan.tagged)}
        if plan.flexible:
            known.add(UNKNOWN_TAGS)
        for name in values:
            if name not in known and not self.is_derived(name, values):
                near = did_you_mean(name, known)
                raise EncodeError(f"no such field in this version of {plan.name}{near}", name)

    def is_derived(self, name: str, values: Mapping[str, object]) -> bool:
        """Return whether a name is not a field but derived from one."""
        return False

    def _field(self, field: FieldPlan, values: Mapping[str, object]) -> bytes:
        value = values[field.name] if field.name in values else default(field)
        try:
            return self.value(field.type, value)
        except EncodeError as error:
            raise error.under(field.name) from None

    def _variable(self, plan: VariablePlan, value: object) -> bytes:
        width = 2 if plan.type == "string" else 4
        if value is None:
            return _null(plan, width)
        raw = _text_bytes(value) if plan.type == "string" else self.bytes_of(plan, value)
        if len(raw) > (LONGEST_STRING if plan.type == "string" else LARGEST):
            raise EncodeError(f"{len(raw):,} bytes are too long for {wire_type(plan)}")
        return _length(len(raw), width, compact=plan.compact) + raw

    def bytes_of(self, plan: VariablePlan, value: object) -> bytes:
        """Return the content of bytes or records. Records may also be an object, as of `records.to_json`."""
        if plan.type == "records" and isinstance(value, Mapping):
            return records_bytes(value)
        if not isinstance(value, bytes | bytearray | memoryview):
            raise EncodeError(f"{_brief(value)} is not bytes")
        return bytes(value)

    def _array(self, plan: ArrayPlan, value: object) -> bytes:
        if value is None:
            return _null(plan, 4)
        if not isinstance(value, list | tuple):
            raise EncodeError(f"{_brief(value)} is not a list")
        parts = [_length(len(value), 4, compact=plan.compact)]
        for number, element in enumerate(value):
            try:
                parts.append(self.value(plan.element, element))
            except EncodeError as error:
                raise error.under(f"[{number}]") from None
        return b"".join(parts)

    def _tagged_fields(self, plan: StructPlan, values: Mapping[str, object]) -> bytes:
        found = [(f.tag or 0, self._tagged(f, values[f.name])) for f in plan.tagged if f.name in values]
        found += self._unknown_tags(values.get(UNKNOWN_TAGS, ()))
        found.sort(key=lambda tagged: tagged[0])
        parts = [uvarint_bytes(len(found))]
        for tag, raw in found:
            parts += (uvarint_bytes(tag), uvarint_bytes(len(raw)), raw)
        return b"".join(parts)

    def _tagged(self, field: FieldPlan, value: object) -> bytes:
        kind = field.type
        try:
            if isinstance(kind, StructPlan) and kind.nullable:
                return b"\x00" if value is None else b"\x01" + self.struct(kind, value)
            return self.value(kind, value)
        except EncodeError as error:
            raise error.under(field.name) from None

    def _unknown_tags(self, unknown: object) -> list[tuple[int, bytes]]:
        found: list[tuple[int, bytes]] = []
        if not isinstance(unknown, list | tuple):
            raise EncodeError(f"{_brief(unknown)} is not a list", UNKNOWN_TAGS)
        for number, each in enumerate(unknown):
            try:
                found.append((int.from_bytes(integer_bytes(each["tag"], 4, "a tag", signed=False)),
                              self.bytes_of(_RAW, each["data"])))  # fmt: skip
            except (EncodeError, KeyError, TypeError) as error:
                raise EncodeError(f"is not a tag with data: {error}", f"{UNKNOWN_TAGS}[{number}]") from None
        return found


_RAW: Final = VariablePlan("bytes", compact=True, nullable=False)
_WRITER: Final = Writer()


def write(name: str, version: int, values: object) -> bytes:
    """Return the bytes of a message by name; `values` are as its reader returns them. Raises `EncodeError`."""
    return _WRITER.struct(plan(name, version), values)


def write_value(plan: TypePlan, value: object) -> bytes:
    """Return the bytes of one value. Raises `EncodeError`."""
    return _WRITER.value(plan, value)


def default(field: FieldPlan) -> object:
    """Return the value of a missing field: the schema's default, or the type's zero."""
    stated, kind = field.schema.default, field.type
    if isinstance(kind, ScalarPlan):
        return _scalar_default(kind, stated)
    if kind.nullable and (stated == "null" or (isinstance(kind, VariablePlan) and kind.type == "records")):
        return None
    if isinstance(kind, VariablePlan):
        return str(stated) if kind.type == "string" and stated not in (None, "null") else _EMPTY[kind.type]
    return [] if isinstance(kind, ArrayPlan) else {}


_EMPTY: Final[dict[str, object]] = {"string": "", "bytes": b"", "records": b""}


def _scalar_default(plan: ScalarPlan, stated: object) -> object:
    if plan.type == "bool":
        return stated in (True, "true")
    if plan.type == "uuid":
        return ZERO_UUID
    if plan.type == "float64":
        return float(str(stated)) if stated is not None else 0.0
    return int(str(stated), 0) if stated is not None else 0


def _scalar(plan: ScalarPlan, value: object) -> bytes:
    if plan.type == "bool":
        if not isinstance(value, bool):
            raise EncodeError(f"{_brief(value)} is neither true nor false")
        return b"\x01" if value else b"\x00"
    if plan.type == "uuid":
        return uuid_bytes(value)
    if plan.type == "float64":
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise EncodeError(f"{_brief(value)} is not a number")
        return struct.pack(">d", value)
    return integer_bytes(value, plan.size, plan.type.upper(), signed=plan.code.islower())


def _text_bytes(value: object) -> bytes:
    if not isinstance(value, str):
        raise EncodeError(f"{_brief(value)} is not a string")
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise EncodeError(f"{_brief(value)} has half a surrogate pair") from None


def _null(plan: VariablePlan | ArrayPlan, width: int) -> bytes:
    if not plan.nullable:
        raise EncodeError("null where the schema has none")
    return b"\x00" if plan.compact else b"\xff" * width


def _length(count: int, width: int, *, compact: bool) -> bytes:
    return uvarint_bytes(count + 1) if compact else count.to_bytes(width, "big")


def _brief(value: object) -> str:
    words = repr(value)
    return words if len(words) <= 40 else f"{words[:40]}…"
