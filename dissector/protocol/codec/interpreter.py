"""Reads bytes into plain values along a plan, without a function that is compiled for it first.

`interpreter(plan)(data, at, end)` returns what `reader.compile_reader(plan)` does. To make one takes a hundredth of the
time, to read with it three times as long: it pays for a layout of which a capture has few messages.

Invariant: values and errors are those of the compiled reader (a property test).
"""

import struct
from collections.abc import Callable
from functools import partial
from typing import Final, cast

from dissector.protocol.codec.plan import ArrayPlan, ScalarPlan, StructPlan, TypePlan, VariablePlan, least_size
from dissector.protocol.codec.reader import UNKNOWN_TAGS, Reader, ValueReader, text
from dissector.protocol.wire import WireError, uuid_text, uvarint

_UUID_SIZE: Final = 16
_Count = Callable[[bytes, int], tuple[int, int]]


def interpreter(plan: TypePlan) -> ValueReader:
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
    count_of, nullable, element = _count(plan), plan.nullable, interpreter(plan.element)
    least = max(1, least_size(plan.element))

    def read(data: bytes, at: int, end: int) -> tuple[object, int]:
        count, at = count_of(data, at)
        if count < 0:
            if nullable:
                return None, at
            raise WireError("null where the schema has none", at)
        if count * least > end - at:
            raise WireError("count runs past the end", at)
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
    fields = [(field.name, interpreter(field.type)) for field in plan.fields]
    if not plan.flexible:
        return partial(_fields, fields)
    tagged = {field.tag: (field.name, _tagged_value(field.type)) for field in plan.tagged}

    def read(data: bytes, at: int, end: int) -> tuple[dict[str, object], int]:
        values, at = _fields(fields, data, at, end)
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


def _tagged_value(plan: TypePlan) -> ValueReader:
    return _nullable_in_tag(_struct(plan)) if isinstance(plan, StructPlan) and plan.nullable else interpreter(plan)


def _fields(fields: list[tuple[str, ValueReader]], data: bytes, at: int, end: int) -> tuple[dict[str, object], int]:
    values = {}
    for name, read in fields:
        values[name], at = read(data, at, end)
    return values, at
