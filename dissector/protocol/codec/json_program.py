"""A program with what JSON has around values: the names of fields, braces, commas (`kernel/json.c`).

Invariant: a message that the kernel writes along it is what `json_text.dumps` makes of the reader's values.
"""

from collections.abc import Callable, Iterable
from enum import IntFlag
from typing import Final

import numpy as np

from dissector.core.arrays import Int32, UInt8
from dissector.protocol.codec.plan import StructPlan
from dissector.protocol.codec.program import ColumnPlan, Operation, Part, Program

_BEFORE: Final = {"header": ',"header":', "body": ',"body":'}
SCOPE: Final = (
    "topic", "name", "topic_id", "group_id", "protocol_type", "protocol_name", "protocol_data", "protocol",
)  # fmt: skip
"""Fields of bodies, texts and topic ids, that say what others hold. Each stands in front of these, in the same
structure or one around it."""


class Mark(IntFlag):
    """What the kernel does with a field besides writing it. Bits of the flags of an operation."""

    NONE = 0
    TOPIC_ID = 4
    """A name may follow it, and records beside it may be those of an internal topic."""
    TOPIC_NAME = 8
    REPORTED = 16
    """Its value is reported. A number of two, four or eight bytes."""
    ERROR_CODE = 32
    """It is counted where it is not 0; a message with two different ones is not written. A number of two or four
    bytes."""
    OPENED = 64
    """Behind bytes a hole is left for what they hold."""


class JsonProgram(Program):
    """The program of a header and a body, as members of an object that has begun; it ends behind them."""

    def __init__(self, plans: Iterable[tuple[str, StructPlan]], marks: Callable[[ColumnPlan], Mark]) -> None:
        self._texts = bytearray()
        self._places: dict[str, int] = {}
        super().__init__(plans)
        for row in self._rows:
            if row[0] in (Operation.FIXED, Operation.VARIABLE):
                column = self.columns[row[2]]
                row[1] |= marks(column)
                row[5] = SCOPE.index(column.name) + 1 if is_scope(column) else 0
        self.code: Int32 = np.array(self._rows, np.int32)
        self._literals: UInt8 = np.frombuffer(bytes(self._texts), np.uint8)
        self.addresses = self.code.ctypes.data, self._literals.ctypes.data
        """Where the kernel finds it, as long as this object lives: the program, its literals."""

    def _struct(self, layout: StructPlan, path: tuple[str, ...], above: tuple[int, ...]) -> None:
        if len(path) == 1:
            self._literal(_BEFORE[path[0]])
        super()._struct(layout, path, above)
        if path == ("body",):
            self._literal("}")

    def _literal(self, text: str) -> None:
        place = self._places.setdefault(text, len(self._texts))
        if place == len(self._texts):
            self._texts += text.encode()
        self._emit(Operation.LITERAL, 0, -1, place, len(text.encode()))


def is_scope(column: ColumnPlan) -> bool:
    """Return whether a column is a field that says what others hold."""
    return column.name in SCOPE and is_value(column, "string", "uuid")


def is_value(column: ColumnPlan, *types: str) -> bool:
    """Return whether a column has the values of a field of the body, of one of these types."""
    return column.part is Part.VALUE and column.path[0] == "body" and column.type in types
