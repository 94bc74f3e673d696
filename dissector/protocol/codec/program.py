"""A plan as a flat program, which the native kernel follows through frames (`kernel/shred.c`).

A program is rows of six numbers: an operation and its operands. Each leaf, each count of an array, and each "is it
there" of a nullable structure or a tagged field has a column, in the order of the plan. A header and the body behind it
are one program, so that a frame is read at once.

Invariant: what the kernel reads along a program is what `reader` and `tracer` read along the plan (a property test).
"""

from collections.abc import Iterable, Sequence
from enum import Enum, IntEnum
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Int32, UInt8
from dissector.protocol.codec.plan import (
    SCALARS,
    ArrayPlan,
    FieldPlan,
    ScalarPlan,
    StructPlan,
    TypePlan,
    VariablePlan,
    least_size,
    plan,
)

COMPACT, NULLABLE, KNOWN_TAGS = 1, 2, 4
WIDTH: Final = 6
_KINDS: Final = {name: number for number, name in enumerate(SCALARS)}
_LENGTHS: Final = {"string": 0, "bytes": 1, "records": 2}


class Operation(IntEnum):
    """What a row of a program does, with its operands behind flags and column."""

    END = 0
    FIXED = 1
    """A fixed-width value: its kind, its size."""
    VARIABLE = 2
    """A string, bytes or records: the kind of its length."""
    ARRAY = 3
    """An array: the row behind it, the fewest bytes of an element. Its element follows, then `NEXT`."""
    NEXT = 4
    STRUCT = 5
    """A nullable structure: the row behind it."""
    TAGS = 6
    """Tagged fields: how many are known, the row behind them. A `TAG` for each of them follows, then their values. With
    the flag `KNOWN_TAGS` there may be no others."""
    TAG = 7
    """A tagged field: its tag, the row of its value."""
    TAG_END = 8
    TAGGED_STRUCT = 9
    """A nullable structure that is the value of a tagged field: the row behind it."""
    LITERAL = 10
    """Text of `JsonProgram` that is written: where it begins, its size."""


class Want(IntEnum):
    """What of a column the kernel keeps. `KEY` or `OUTLINE`, and `CHECKED`, can be added to the others."""

    NOTHING = 0
    VALUES = 1
    NONZERO = 2
    """Only the values that are not zero."""
    KEY = 4
    CHECKED = 8
    """Whether it has what a message with secrets has, if it was read from the right places (`secrets.is_clean`)."""
    OUTLINE = 16
    """A key of less: of numbers those that are negative; of records the magic of their entries, and the attributes and
    producer ids of their batches."""


class Part(Enum):
    """What of a field a column has."""

    VALUE = "value"
    """A number; of a string, bytes or records the size of its content, -1 for null."""
    COUNT = "count"
    """Of an array's elements, -1 for null."""
    PRESENCE = "presence"
    UNKNOWN_TAGS = "unknown tags"
    """How many tagged fields of a structure no schema has."""


class ColumnPlan(NamedTuple):
    """A column of a program. `path` leads to its field from ``header`` or ``body`` on, without indexes."""

    path: tuple[str, ...]
    part: Part
    type: str
    """The type of a value in the schema; empty for the other parts."""
    above: tuple[int, ...]
    """The columns that say how often it occurs: counts of the arrays and presences around it, outermost first."""

    @property
    def name(self) -> str:
        """The field's own name."""
        return self.path[-1]


class Wanted:
    """What is wanted of each column of a program, `(columns,)`, as the kernel reads it: made once, used often."""

    __slots__ = ("address", "columns", "count")

    def __init__(self, columns: UInt8) -> None:
        self.columns = np.ascontiguousarray(columns, np.uint8)
        self.address: int = self.columns.ctypes.data
        self.count = int(np.count_nonzero(columns & (Want.VALUES | Want.NONZERO)))
        """Columns of which values are kept."""

    def __len__(self) -> int:
        return len(self.columns)

    def __getstate__(self) -> UInt8:
        """For a checkpoint: an address is that of this process only."""
        return self.columns

    def __setstate__(self, columns: UInt8) -> None:
        Wanted.__init__(self, columns)


MessageKey = tuple[str, int, str, int, int]
"""Arguments of `message_program`."""


class Program:
    """The program of some plans, one behind the other, each under a name: ``header``, ``body``."""

    def __init__(self, plans: Iterable[tuple[str, StructPlan]], key: MessageKey | None = None) -> None:
        self._key = key
        self._rows: list[list[int]] = []
        self.columns: list[ColumnPlan] = []
        for name, layout in plans:
            self._struct(layout, (name,), ())
        self._emit(Operation.END)
        self.code: Int32 = np.array(self._rows, np.int32)
        self.address: int = self.code.ctypes.data

    def __getstate__(self) -> MessageKey:
        """For a checkpoint: of which message it is, as the kernel follows a program wherever it leads. Raises
        `TypeError` for one that is of no message."""
        if self._key is None:
            raise TypeError("a program that is of no message")
        return self._key

    def __setstate__(self, key: MessageKey) -> None:
        self.__dict__.update(vars(message_program(*key)))

    @cached_property
    def values(self) -> Sequence[tuple[int, ColumnPlan]]:
        """The columns of values, with their numbers."""
        return [(number, column) for number, column in enumerate(self.columns) if column.part is Part.VALUE]

    def wanted(
        self,
        values: Iterable[int] = (),
        keys: Iterable[int] = (),
        nonzero: Iterable[int] = (),
        outlines: Iterable[int] = (),
        *,
        checked: bool = False,
    ) -> Wanted:
        """Return what is wanted: the `values` of some columns, `nonzero` values of others; a key of others, and of the
        `outlines` of others, numbers or records, which has the counts around them too, so that equal keys mean equal
        values in equal places; whether all columns that can be `checked` are clean."""
        wanted = bytearray([Want.CHECKED if checked else Want.NOTHING]) * len(self.columns)
        chosen = set(keys)
        chosen.update(above for key in (*chosen, *outlines) for above in self.columns[key].above)
        wants = (Want.VALUES, values), (Want.NONZERO, nonzero), (Want.OUTLINE, outlines), (Want.KEY, chosen)
        for want, columns in wants:
            for column in columns:
                wanted[column] |= want
        return Wanted(np.frombuffer(wanted, np.uint8))

    def _emit(self, operation: Operation, flags: int = 0, column: int = -1, first: int = 0, second: int = 0) -> int:
        self._rows.append([operation, flags, column, first, second, 0])
        return len(self._rows) - 1

    def _column(self, path: tuple[str, ...], part: Part, above: tuple[int, ...], kind: str = "") -> int:
        self.columns.append(ColumnPlan(path, part, kind, above))
        return len(self.columns) - 1

    def _struct(self, layout: StructPlan, path: tuple[str, ...], above: tuple[int, ...]) -> None:
        self._literal("{")
        for number, field in enumerate(layout.fields):
            self._literal(f'{"," if number else ""}"{field.name}":')
            self._value(field.type, (*path, field.name), above)
        if layout.flexible:
            self._tags(layout.tagged, path, above)
        self._literal("}")

    def _literal(self, text: str) -> None:
        """Add what is around values, where a program has that."""

    def _tags(self, tagged: Sequence[FieldPlan], path: tuple[str, ...], above: tuple[int, ...]) -> None:
        flags = KNOWN_TAGS if path == ("header",) and self._key is not None else 0
        start = self._emit(Operation.TAGS, flags, self._column(path, Part.UNKNOWN_TAGS, above), len(tagged))
        presences = [self._column((*path, field.name), Part.PRESENCE, above) for field in tagged]
        rows = [
            self._emit(Operation.TAG, 0, column, field.tag or 0)
            for column, field in zip(presences, tagged, strict=True)
        ]
        around = (*above, *presences)  # all of them: in a key, values stand in the order of the wire
        for row, field in zip(rows, tagged, strict=True):
            self._rows[row][4] = len(self._rows)
            self._literal(f'"{field.name}":')
            self._value(field.type, (*path, field.name), around, is_tagged=True)
            self._emit(Operation.TAG_END)
        self._rows[start][4] = len(self._rows)

    def _value(
        self, layout: TypePlan, path: tuple[str, ...], above: tuple[int, ...], *, is_tagged: bool = False
    ) -> None:
        match layout:
            case ScalarPlan():
                column = self._column(path, Part.VALUE, above, layout.type)
                self._emit(Operation.FIXED, 0, column, _KINDS[layout.type], layout.size)
            case VariablePlan():
                column = self._column(path, Part.VALUE, above, layout.type)
                self._emit(Operation.VARIABLE, _flags(layout), column, _LENGTHS[layout.type])
            case ArrayPlan():
                count = self._column(path, Part.COUNT, above)
                start = self._emit(Operation.ARRAY, _flags(layout), count, 0, max(1, least_size(layout.element)))
                self._value(layout.element, path, (*above, count))
                self._emit(Operation.NEXT)
                self._rows[start][3] = len(self._rows)
            case StructPlan() if layout.nullable:
                presence = self._column(path, Part.PRESENCE, above)
                start = self._emit(Operation.TAGGED_STRUCT if is_tagged else Operation.STRUCT, 0, presence)
                self._struct(layout, path, (*above, presence))
                self._rows[start][3] = len(self._rows)
            case StructPlan():
                self._struct(layout, path, above)


def _flags(layout: VariablePlan | ArrayPlan) -> int:
    return layout.compact * COMPACT | layout.nullable * NULLABLE


@lru_cache(maxsize=1024)
def message_program(header: str, header_version: int, body: str, body_version: int, other: int = 0) -> Program:
    """Return the program of a frame behind its size: a header, then a body; `other` is as in `plan`. A header with a
    tagged field that no schema has does not fit: where secrets may be, its message is masked whole."""
    plans = ("header", plan(header, header_version)), ("body", plan(body, body_version, other))
    return Program(plans, (header, header_version, body, body_version, other))
