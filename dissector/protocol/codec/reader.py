"""Reads bytes into plain values along a plan, without their positions: single messages, that is.

`reader(name, version)(data, at, end)` returns `(dict, at)`. A layout is a tree of closures, made when it is first read.
Functions that were generated and compiled for each layout read three times as fast, and no command became slower
without them: what reads many messages does so in columns, by the kernel.

Invariants:
  * the values are those of `tracer` and of the kernel for the same bytes (property tests);
  * nothing is allocated for a count or a length that the remaining bytes can't hold;
  * damage raises one of `DECODE_ERRORS`, nothing else.
"""

import struct
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import groupby
from typing import Final, cast

from dissector.protocol.codec.plan import (
    ArrayPlan,
    FieldPlan,
    ScalarPlan,
    StructPlan,
    TypePlan,
    VariablePlan,
    least_size,
    plan,
)
from dissector.protocol.wire import WireError, uuid_text, uvarint

Reader = Callable[[bytes, int, int], tuple[dict[str, object], int]]
ValueReader = Callable[[bytes, int, int], tuple[object, int]]
DECODE_ERRORS: Final = (WireError, struct.error, IndexError)
UNKNOWN_TAGS: Final = "unknown_tagged_fields"
_UUID_SIZE: Final = 16
_Count = Callable[[bytes, int], tuple[int, int]]
_Fields = Callable[[bytes, int, int, dict[str, object]], int]
"""Reads some fields into a dictionary; returns where they end."""


@lru_cache(maxsize=1024)
def reader(name: str, version: int, other: int = 0) -> Reader:
    """Return the reader of a message by name; `other` is as in `plan`."""
    return cast(Reader, reader_of(plan(name, version, other)))


def text(raw: bytes) -> str:
    """Decode a string as UTF-8. Other bytes become lone surrogates, so that they can be written back."""
    return raw.decode("utf-8", "surrogateescape")


def reader_of(plan: TypePlan) -> ValueReader:
    """Return a function that reads one value of this layout."""
    match plan:
        case ScalarPlan():
            return _uuid if plan.type == "uuid" else _scalar(plan)
        case VariablePlan():
            return _variable(plan)
        case ArrayPlan():
            return _array(plan)
        case StructPlan():
            return _nullable(_struct(plan)) if plan.nullable else _struct(plan)


def _scalar(plan: ScalarPlan) -> ValueReader:
    unpack, size = struct.Struct(f">{plan.code}").unpack_from, plan.size

    def read(data: bytes, at: int, _end: int) -> tuple[object, int]:
        return unpack(data, at)[0], at + size

    return read


def _uuid(data: bytes, at: int, _end: int) -> tuple[object, int]:
    if len(data) - at < _UUID_SIZE:
        raise WireError("uuid runs past the end", at)
    return uuid_text(data[at : at + _UUID_SIZE]), at + _UUID_SIZE


def _count(plan: VariablePlan | ArrayPlan) -> _Count:
    """Return a function that reads a count or a length: below 0 for null."""
    if plan.compact:
        return _compact_count
    width = 2 if isinstance(plan, VariablePlan) and plan.type == "string" else 4
    unpack = struct.Struct(">h" if width == 2 else ">i").unpack_from

    def read(data: bytes, at: int) -> tuple[int, int]:
        return unpack(data, at)[0], at + width

    return read


def _compact_count(data: bytes, at: int) -> tuple[int, int]:
    count, at = uvarint(data, at)
    return count - 1, at


def _variable(plan: VariablePlan) -> ValueReader:
    count, nullable, is_text = _count(plan), plan.nullable, plan.type == "string"

    def read(data: bytes, at: int, end: int) -> tuple[object, int]:
        size, at = count(data, at)
        if size < 0 and nullable:
            return None, at
        if not 0 <= size <= end - at:
            raise WireError("length runs past the end, or null where none may be", at)
        raw = data[at : at + size]
        return text(raw) if is_text else raw, at + size

    return read


def _array(plan: ArrayPlan) -> ValueReader:
    count_of, nullable, elements = _count(plan), plan.nullable, _elements(plan.element)
    least = max(1, least_size(plan.element))

    def read(data: bytes, at: int, end: int) -> tuple[object, int]:
        count, at = count_of(data, at)
        if count < 0:
            if nullable:
                return None, at
            raise WireError("null where the schema has none", at)
        if count * least > end - at:
            raise WireError("count runs past the end", at)
        return elements(data, at, end, count)

    return read


def _elements(plan: TypePlan) -> Callable[[bytes, int, int, int], tuple[list[object], int]]:
    """Return a function that reads a number of elements; numbers all at once: partitions, replicas."""
    if isinstance(plan, ScalarPlan) and plan.type != "uuid":
        code, size = plan.code, plan.size
        return lambda data, at, _end, count: (
            list(struct.unpack_from(f">{count}{code}", data, at)),
            at + count * size,
        )
    element = reader_of(plan)

    def read(data: bytes, at: int, end: int, count: int) -> tuple[list[object], int]:
        found = []
        for _ in range(count):
            value, at = element(data, at, end)
            found.append(value)
        return found, at

    return read


def _nullable(present: ValueReader) -> ValueReader:
    def read(data: bytes, at: int, end: int) -> tuple[object, int]:
        return (None, at + 1) if data[at] > 127 else present(data, at + 1, end)

    return read


def _nullable_in_tag(present: ValueReader) -> ValueReader:
    def read(data: bytes, at: int, end: int) -> tuple[object, int]:
        is_there, at = uvarint(data, at)
        return present(data, at, end) if is_there else (None, at)

    return read


def _struct(plan: StructPlan) -> Reader:
    fields = _fields(plan.fields)
    if not plan.flexible:
        return partial(_plain_struct, fields)
    tagged = {field.tag: (field.name, _tagged_value(field.type)) for field in plan.tagged}

    def read(data: bytes, at: int, end: int) -> tuple[dict[str, object], int]:
        values: dict[str, object] = {}
        for read_fields in fields:
            at = read_fields(data, at, end, values)
        count, at = uvarint(data, at)
        for _ in range(count):
            tag, at = uvarint(data, at)
            size, at = uvarint(data, at)
            stop = at + size
            if stop > end:
                raise WireError("tagged field runs past the end", at)
            if tag in tagged:
                name, value = tagged[tag]
                values[name], at = value(data, at, end)
                if at != stop:
                    raise WireError("tagged field of another size", at)
            else:
                unknown = cast(list[object], values.setdefault(UNKNOWN_TAGS, []))
                unknown.append({"tag": tag, "data": data[at:stop]})
            at = stop
        return values, at

    return read


def _plain_struct(fields: list[_Fields], data: bytes, at: int, end: int) -> tuple[dict[str, object], int]:
    values: dict[str, object] = {}
    for read_fields in fields:
        at = read_fields(data, at, end, values)
    return values, at


def _tagged_value(plan: TypePlan) -> ValueReader:
    return _nullable_in_tag(_struct(plan)) if isinstance(plan, StructPlan) and plan.nullable else reader_of(plan)


def _fields(fields: tuple[FieldPlan, ...]) -> list[_Fields]:
    """Return what reads fields one after the other: numbers that follow each other at once."""
    found: list[_Fields] = []
    for numbers, run in groupby(fields, lambda field: isinstance(field.type, ScalarPlan) and field.type.type != "uuid"):
        if numbers:
            found.append(_numbers(list(run)))
        else:
            found += [_field(field) for field in run]
    return found


def _numbers(fields: list[FieldPlan]) -> _Fields:
    layout = struct.Struct(">" + "".join(cast(ScalarPlan, field.type).code for field in fields))
    names, unpack, size = [field.name for field in fields], layout.unpack_from, layout.size

    def read(data: bytes, at: int, _end: int, values: dict[str, object]) -> int:
        for name, value in zip(names, unpack(data, at), strict=True):
            values[name] = value  # noqa: PERF403  # they are few: faster than `update`
        return at + size

    return read


def _field(field: FieldPlan) -> _Fields:
    name, value = field.name, reader_of(field.type)

    def read(data: bytes, at: int, end: int, values: dict[str, object]) -> int:
        values[name], at = value(data, at, end)
        return at

    return read
