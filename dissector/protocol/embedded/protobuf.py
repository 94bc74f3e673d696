"""Protocol buffers as items of a subtree: each field with its bytes, named by a descriptor.

The wire format is that of protobuf.dev, "Encoding": a tag is a varint of field number and wire type. Google's library
parses such messages but does not give the positions of their fields; descriptors, its own or `metrics_schema`'s, give
the names.
"""

import struct
from collections.abc import Iterator
from typing import Any, Final

from dissector.protocol.embedded.subtree import SubtreeItem
from dissector.protocol.records.compression import DecompressionBudget
from dissector.protocol.wire import WireError, uvarlong

_VARINT, _I64, _LEN, _I32 = 0, 1, 2, 5
_DEEPEST: Final = 32
_SIGNED: Final = {"TYPE_SINT32", "TYPE_SINT64"}
_FIXED: Final = {
    "TYPE_DOUBLE": "<d", "TYPE_FLOAT": "<f", "TYPE_FIXED64": "<Q", "TYPE_SFIXED64": "<q", "TYPE_FIXED32": "<I",
    "TYPE_SFIXED32": "<i",
}  # fmt: skip
_TYPES: Final = {
    1: "TYPE_DOUBLE", 2: "TYPE_FLOAT", 3: "TYPE_INT64", 4: "TYPE_UINT64", 5: "TYPE_INT32", 6: "TYPE_FIXED64",
    7: "TYPE_FIXED32", 8: "TYPE_BOOL", 9: "TYPE_STRING", 11: "TYPE_MESSAGE", 12: "TYPE_BYTES", 13: "TYPE_UINT32",
    14: "TYPE_ENUM", 15: "TYPE_SFIXED32", 16: "TYPE_SFIXED64", 17: "TYPE_SINT32", 18: "TYPE_SINT64",
}  # fmt: skip


def message_items(
    data: bytes, descriptor: Any, budget: DecompressionBudget, at: int = 0, end: int | None = None, depth: int = 0
) -> Iterator[SubtreeItem]:
    """Yield the fields of a message in wire order; they tile it. Raises `WireError`, also past the budget."""
    stop = len(data) if end is None else end
    if depth > _DEEPEST:
        raise WireError("messages nested too deep", at)
    while at < stop:
        tag, content = _unsigned(data, at, stop)
        field = descriptor.fields_by_number.get(tag >> 3)
        budget.admit_parts(1, at, "fields of metrics")
        item = _field(data, field, tag, at, content, stop, depth, budget)
        yield item
        at = item.end


def _field(
    data: bytes, field: Any, tag: int, start: int, at: int, stop: int, depth: int, budget: DecompressionBudget
) -> SubtreeItem:
    name = field.name if field is not None else f"field_{tag >> 3}"
    kind = _TYPES.get(field.type, "?") if field is not None else "?"
    wire = tag & 7
    if wire == _VARINT:
        value, end = _unsigned(data, at, stop)
        return _varint(name, kind, field, start, end, value)
    if wire in (_I64, _I32):
        size = 8 if wire == _I64 else 4
        end = _within(at + size, stop, at)
        layout = _FIXED.get(kind, "<Q" if size == 8 else "<I")
        layout = layout if struct.calcsize(layout) == size else ("<Q" if size == 8 else "<I")
        return SubtreeItem(name, kind.removeprefix("TYPE_"), start, end, struct.unpack_from(layout, data, at)[0])
    if wire != _LEN:
        raise WireError(f"wire type {wire} of {name} is not known", start)
    size, at = _unsigned(data, at, stop)
    end = _within(at + size, stop, at)
    if kind == "TYPE_MESSAGE":
        items = tuple(message_items(data, field.message_type, budget, at, end, depth + 1))
        return SubtreeItem(name, "MESSAGE", start, end, None if items else {}, items=items)
    raw = data[at:end]
    value_read: object = raw.decode("utf-8", "surrogateescape") if kind == "TYPE_STRING" else raw
    if kind in _FIXED and len(raw) % struct.calcsize(_FIXED[kind]) == 0:
        value_read = [number for (number,) in struct.iter_unpack(_FIXED[kind], raw)]
    return SubtreeItem(name, kind.removeprefix("TYPE_"), start, end, value_read)


def _varint(name: str, kind: str, field: Any, start: int, end: int, value: int) -> SubtreeItem:
    note = ""
    result: object = value
    if kind in _SIGNED:
        result = (value >> 1) ^ -(value & 1)
    elif kind in ("TYPE_INT32", "TYPE_INT64") and value >= 1 << 63:
        result = value - (1 << 64)
    elif kind == "TYPE_BOOL":
        result = bool(value)
    elif kind == "TYPE_ENUM":
        named = field.enum_type.values_by_number.get(value)
        note = named.name if named is not None else ""
    return SubtreeItem(name, kind.removeprefix("TYPE_"), start, end, result, note)


def _unsigned(data: bytes, at: int, stop: int) -> tuple[int, int]:
    """Read a varint of up to 64 bits."""
    value, end = uvarlong(data, at)
    return value, _within(end, stop, at)


def _within(end: int, stop: int, at: int) -> int:
    if end > stop:
        raise WireError("runs past its message", at)
    return end
