"""Draws a layout as in RFCs: rows of 32 bits, a box per field.

A box with slashes as sides has a variable length; the next box begins a new row. A structure is drawn once, below the
one that contains it. Every line fits 80 columns.
"""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from dissector.protocol.codec.plan import ArrayPlan, FieldPlan, ScalarPlan, StructPlan, VariablePlan, struct_of
from dissector.protocol.explain.field_rows import type_words

ROW: Final = 4
"""Bytes in a row."""
BYTE: Final = 16
"""Characters per byte, one border included."""
WIDTH: Final = ROW * BYTE + 1
RULER: Final = (
    " 0                   1                   2                   3",
    " 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1",
)


class Box(NamedTuple):
    """A box to draw. `size` is in bytes, or None for a variable length."""

    words: str
    size: int | None


class _BoxPiece(NamedTuple):
    """The part of a box in one row."""

    box: int
    words: str
    size: int


_Row = list[_BoxPiece] | str


def diagram(plan: StructPlan) -> Iterator[str]:
    """Yield the lines of a structure and of all structures in it, below a ruler of bits."""
    yield from RULER
    yield from _pictures(plan)


def _pictures(plan: StructPlan) -> Iterator[str]:
    yield from draw([*_boxes(plan)])
    for field in (*plan.fields, *plan.tagged):
        inner = struct_of(field.type)
        if inner is not None:
            kind = f"each of {field.name}" if isinstance(field.type, ArrayPlan) else field.name
            yield ""
            yield f"{inner.name} ({kind}):"
            yield from _pictures(inner)


def _boxes(plan: StructPlan) -> Iterator[Box]:
    for field in plan.fields:
        yield _box(field)
    if plan.flexible:
        tags = ", ".join(f"{field.tag} {field.name}" for field in plan.tagged)
        words = "(tagged fields)  UNSIGNED_VARINT count, then tag, size, value of each"
        yield Box(f"{words}: {tags}" if tags else words, None)


def _box(field: FieldPlan) -> Box:
    kind = field.type
    if isinstance(kind, ScalarPlan):
        return Box(field.name, kind.size)
    if isinstance(kind, VariablePlan):
        width = "UNSIGNED_VARINT length + 1" if kind.compact else f"INT{16 if kind.type == 'string' else 32} length"
        null = f" ({'0' if kind.compact else '-1'}: null)" if kind.nullable else ""
        return Box(f"{field.name}  {type_words(kind)}: {width}{null}, bytes", None)
    if isinstance(kind, ArrayPlan):
        width = "UNSIGNED_VARINT count + 1" if kind.compact else "INT32 count"
        null = f" ({'0' if kind.compact else '-1'}: null)" if kind.nullable else ""
        return Box(f"{field.name}  {type_words(kind)}: {width}{null}, elements", None)
    null = ": INT8 1, then its fields; or INT8 -1: null" if kind.nullable else ": its fields"
    return Box(f"{field.name}  {type_words(kind)}{null}", None)


def draw(boxes: Sequence[Box]) -> Iterator[str]:
    """Yield the lines of boxes, one after the other."""
    above: _Row | None = None
    for row in _rows(boxes):
        yield _border(above, row)
        yield from _text(row)
        above = row
    yield _border(above, None) if above is not None else "(no bytes)"


def _rows(boxes: Sequence[Box]) -> Iterator[_Row]:
    row: list[_BoxPiece] = []
    for number, box in enumerate(boxes):
        if box.size is None:
            if row:
                yield row
                row = []
            yield box.words
            continue
        for size, words in _cut(box, ROW - sum(piece.size for piece in row)):
            row.append(_BoxPiece(number, words, size))
            if sum(piece.size for piece in row) == ROW:
                yield row
                row = []
    if row:
        yield row


def _cut(box: Box, room: int) -> list[tuple[int, str]]:
    """Return a box's sizes row by row; its words are in the first of the widest pieces."""
    remaining, sizes = box.size or 0, []
    while remaining:
        sizes.append(min(remaining, room))
        remaining -= sizes[-1]
        room = ROW
    widest = sizes.index(max(sizes))
    return [(size, box.words if at == widest else "") for at, size in enumerate(sizes)]


def _border(above: _Row | None, below: _Row | None) -> str:
    """Return the line between two rows, open where a box continues."""
    width = max(_width(above), _width(below))
    line = ["+" if at % 2 == 0 else "-" for at in range(width)]
    for at in range(1, width - 1):
        box = _box_at(above, at)
        if box is not None and box == _box_at(below, at):
            line[at] = " "
    return "".join(line)


def _width(row: _Row | None) -> int:
    if isinstance(row, list):
        return BYTE * sum(piece.size for piece in row) + 1
    return 0 if row is None else WIDTH


def _box_at(row: _Row | None, column: int) -> int | None:
    """Return the box at a column of a row, or None at its sides and outside."""
    for piece in row if isinstance(row, list) else ():
        if column < BYTE * piece.size:
            return piece.box if column else None
        column -= BYTE * piece.size
    return None


def _text(row: _Row) -> Iterator[str]:
    if isinstance(row, str):
        for line in textwrap.wrap(row, WIDTH - 4, break_on_hyphens=False):
            yield f"/ {line:<{WIDTH - 4}} /"
        return
    cells = [_wrapped(piece.words, BYTE * piece.size - 1) for piece in row]
    for at in range(max(map(len, cells))):
        words = (
            (cell[at] if at < len(cell) else "").center(BYTE * piece.size - 1)
            for piece, cell in zip(row, cells, strict=True)
        )
        yield f"|{'|'.join(words)}|"


def _wrapped(name: str, width: int) -> list[str]:
    """Return a name in lines that fit, broken after underscores if possible."""
    lines = [""]
    for part in name.replace("_", "_ ").split():
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return [line[n : n + width] for line in lines for n in range(0, max(1, len(line)), width)]
