"""The values of one frame from its columns, as the reader in Python gives them: for tests alone."""

import struct

from dissector.protocol.codec.plan import ArrayPlan, ScalarPlan, StructPlan, TypePlan, VariablePlan
from dissector.protocol.codec.program import Program
from dissector.protocol.codec.reader import UNKNOWN_TAGS, text
from dissector.protocol.kernel.shredding import Shredded
from dissector.protocol.wire import uuid_text


class ColumnReader:
    """Takes the columns of one frame apart along its plan."""

    def __init__(self, program: Program, shredded: Shredded, data: bytes) -> None:
        columns = [shredded.column(number) for number in range(len(program.columns))]
        self._values = [iter(list(zip(each.values.tolist(), each.positions.tolist(), strict=True))) for each in columns]
        self._data = data
        self._next = 0

    def values(self, layout: StructPlan) -> dict[str, object]:
        """Return the values of the layout whose columns come next."""
        made = self._struct(layout, self._next)
        self._next += _columns(layout)
        return made

    def is_used_up(self) -> bool:
        """Whether no column has a value left."""
        return all(next(each, None) is None for each in self._values)

    def _take(self, column: int) -> tuple[int, int]:
        return next(self._values[column])

    def _struct(self, layout: StructPlan, column: int) -> dict[str, object]:
        made: dict[str, object] = {}
        for field in layout.fields:
            made[field.name] = self._value(field.type, column)
            column += _columns_of(field.type)
        if layout.flexible:
            unknown, _ = self._take(column)
            presences = range(column + 1, column + 1 + len(layout.tagged))
            column = presences.stop
            for presence, field in zip(presences, layout.tagged, strict=True):
                there, _ = self._take(presence)
                if there:
                    made[field.name] = self._value(field.type, column)
                column += _columns_of(field.type)
            if unknown:
                made[UNKNOWN_TAGS] = unknown
        return made

    def _value(self, layout: TypePlan, column: int) -> object:
        match layout:
            case ScalarPlan():
                return self._scalar(layout.type, *self._take(column))
            case VariablePlan():
                size, at = self._take(column)
                raw = self._data[at : at + size]
                return None if size < 0 else text(raw) if layout.type == "string" else raw
            case ArrayPlan():
                count, _ = self._take(column)
                return None if count < 0 else [self._value(layout.element, column + 1) for _ in range(count)]
            case StructPlan() if layout.nullable:
                there, _ = self._take(column)
                return self._struct(layout, column + 1) if there else None
            case StructPlan():
                return self._struct(layout, column)

    def _scalar(self, kind: str, value: int, at: int) -> object:
        if kind == "bool":
            return bool(value)
        if kind == "uuid":
            return uuid_text(self._data[at : at + 16])
        return struct.unpack(">d", self._data[at : at + 8])[0] if kind == "float64" else value


def _columns(layout: StructPlan) -> int:
    plain = sum(_columns_of(field.type) for field in (*layout.fields, *layout.tagged))
    return plain + layout.flexible * (1 + len(layout.tagged))


def _columns_of(layout: TypePlan) -> int:
    match layout:
        case ArrayPlan():
            return 1 + _columns_of(layout.element)
        case StructPlan():
            return layout.nullable + _columns(layout)
        case _:
            return 1
