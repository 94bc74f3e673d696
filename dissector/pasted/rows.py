"""Dumps: rows of an offset, bytes, and mostly their text, wherever in the lines they are.

A dump begins with a row whose offset is 0 (or an address, as debuggers print it, or where an earlier dump of the same
indentation ended, as in *Follow Stream*; where its first rows are missing, a multiple of 16 that the next row goes on
from). Each row's offset says how many bytes the row before it has, and in which
base offsets are; so timestamps, process ids and other numbers before them are never bytes, and no text column is. The
last row's bytes end before its text, or where that of the other rows begins.

Invariants:
  * every line is looked at a bounded number of times, however long a dump is;
  * what is left out is a `Hole` of the size that the offsets give: nothing is guessed but where ``*`` repeats a row.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from dissector.core import limits
from dissector.pasted.cells import UNITS, Cell, Cells, Unit, text_cells
from dissector.pasted.pieces import Hole, Piece
from dissector.pasted.plain_text import Lines

_BASES: Final = (16, 10, 8)
_LONGEST: Final = 2_048
"""Characters of the longest line that may be a row."""
_WORDS: Final = 12
"""Words of a line among which its offset is looked for."""
_MOST_REPEATED: Final = limits.DEFAULT.frame_size
"""Bytes that one ``*`` may stand for."""
_LARGEST_HOLE: Final = 1 << 24
_WORD: Final = re.compile(r"[^\s|│¦]+")
_OFFSET: Final = re.compile(
    r"[\[(+]?(?:0[xX])?(?P<digits>[0-9a-fA-F]{1,8}(?:[`'][0-9a-fA-F]{8})?|[0-9a-fA-F]{9,16})h?[\])]?(?P<colon>:?)"
)
_GLUED: Final = re.compile(r"(?:0[xX])?(?P<digits>[0-9a-fA-F]{4,16}):(?=[0-9a-fA-F]{2})")
_ZERO: Final = re.compile(
    r"(?<![0-9a-zA-Z.,])[\[(+]?(?:0[xX])?(?:0{3,16}|0{1,16}(?=h?[\])]?(?::|\s*[|│¦]))|(?<!\S)0(?=\t| {2,})"
    r"|0{8}[`']0{8})(?![0-9a-zA-Z.,])"
)
_ADDRESS: Final = re.compile(
    r"(?:^|[\s(])(?:0x[0-9a-fA-F]{3,16}(?:\s*<[^>\n]{1,200}>)?:\s|0x[0-9a-fA-F]{8,16}\s{2}|[0-9a-fA-F]{8,16}:\s"
    r"|[0-9a-fA-F]{8}[`'][0-9a-fA-F]{8}\s)"
)
_LATER: Final = re.compile(r"[>|\s]*(?:0[xX])?(?=[0-9a-fA-F]*[1-9a-fA-F])[0-9a-fA-F]{3,7}0:?\s")
"""A row behind others that are missing."""
_SYMBOL: Final = re.compile(r"\s*<[^>\n]{1,200}>:?")
_STAR: Final = re.compile(r"[>#\s|]*\*[\s|]*")
_OMISSION: Final = re.compile(
    r"[\s>#|*\[({<-]*(?:\.{2,}|…|snip|trunc|omit|redact|cut|skip|\d* ?more|\d+ (?:bytes|lines))", re.IGNORECASE
)
"""A line in place of rows that were left out."""
_TRIED: Final = 3
"""Words of a line that may be the offset of a dump's first row."""
_BARS: Final = ("|", "│", "¦")
_LEAST: Final = 4
"""Bytes of the shortest dump."""
_AROUND: Final = 8
"""Characters around the text of a row: bars, a blank in its middle."""
_GAP: Final = 3
"""Blanks between the last byte and what is none."""


class _Row(NamedTuple):
    """A line with an offset."""

    line: int
    offset: str
    """Its digits."""
    rest: str
    """What stands behind the offset."""
    place: int
    """Which word of the line the offset is."""
    is_known: bool
    """Whether it looks like an offset by itself."""
    is_bare: bool
    """Whether it is nothing but digits: no colon, prefix or bracket."""


class _Dump(NamedTuple):
    """Rows that follow each other."""

    rows: list[_Row]
    base: int
    unit: Unit
    sizes: list[int]
    """Bytes of each row but the last one."""
    is_ended: bool
    """Whether a line with nothing but an offset ends it."""
    repeats: dict[int, int]
    """How many bytes a ``*`` stands for, by the row before it."""
    holes: dict[int, int]
    """How many bytes are left out, by the row before them."""
    next_line: int
    is_later: bool = False
    """Whether rows before it are missing."""


def dumps(lines: Lines) -> list[Piece]:
    """Return the dumps in a text."""
    pieces: list[Piece] = []
    ends: dict[str, set[int]] = {}
    at = 0
    while at < len(lines.texts):
        line = lines.texts[at]
        found = _dump_at(lines, at, ends) if len(line) <= _LONGEST and _may_begin(line, ends) else None
        if found is None:
            at += 1
            continue
        indent = _indent(line)
        piece = _piece(found, lines)
        if len(piece.data) >= _LEAST:
            first = int(found.rows[0].offset, found.base)
            if found.is_later:
                piece.holes.insert(0, Hole(0, first))
            ends.setdefault(indent, set()).add(first + len(piece.data) + sum(hole.size for hole in piece.holes))
            pieces.append(piece)
        at = found.next_line
    _mark_by_indent(pieces, lines)
    return pieces


def _may_begin(line: str, ends: dict[str, set[int]]) -> bool:
    begins = _ZERO.search(line) is not None or _ADDRESS.search(line) is not None or _indent(line) in ends
    return begins or _LATER.match(line) is not None


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _mark_by_indent(pieces: list[Piece], lines: Lines) -> None:
    """Take dumps that are indented for the server's, where others are not: so does *Follow Stream*."""
    indents = [_indent(lines.texts[lines.number(piece.start) - 1]) for piece in pieces]
    if len(set(indents)) == 2 and "" in indents and all(each in ("", "    ", "\t") for each in indents):
        for piece, indent in zip(pieces, indents, strict=True):
            piece.from_client = not indent


def _rows_of(lines: Lines, number: int) -> Iterator[_Row]:
    """Yield the ways to read a line as a row: its first words that may be an offset."""
    line = lines.texts[number]
    if len(line) > _LONGEST:
        return
    for place, word in enumerate(_WORD.finditer(line)):
        if place == _WORDS:
            return
        text = word[0].replace("`", "").replace("'", "")
        whole = _OFFSET.fullmatch(word[0])
        glued = None if whole else _GLUED.match(word[0])
        found = whole or glued
        if found is None:
            continue
        end = word.end() if whole else word.start() + found.end()
        symbol = _SYMBOL.match(line, end)
        end = symbol.end() if symbol else end
        digits = found["digits"].replace("`", "").replace("'", "")
        behind = line[end : end + 8]
        known = (
            len(digits) > 2
            or found[0].endswith(":")
            or text[:2] in ("0x", "0X")
            or behind.lstrip()[:1] in _BARS
            or (place == 0 and (behind[:1] == "\t" or behind[:2] == "  "))
        )
        yield _Row(number, digits, line[end:], place, known, found[0] == digits)


def _dump_at(lines: Lines, number: int, ends: dict[str, set[int]]) -> _Dump | None:
    """Return the dump that begins in a line."""
    alone: _Dump | None = None
    line = lines.texts[number]
    goes_on = ends.get(_indent(line), ())
    tried = 0
    for row in _rows_of(lines, number):
        begins = (row.is_known and not row.offset.strip("0")) or int(row.offset, 16) in goes_on or _ADDRESS.search(line)
        is_later = not begins and _LATER.match(line) is not None and not row.place
        if not (begins or is_later):
            continue
        tried += 1
        if tried > _TRIED:
            break
        for unit in UNITS:
            cells = unit.read(row.rest)
            if not cells or (unit.name == "characters" and len(cells) < _LEAST) or _is_cell(row, cells[0]):
                continue
            found = _follow(lines, row, unit, cells)
            if len(found.rows) > 1 or (found.is_ended and not is_later):
                return found._replace(is_later=is_later)
            if is_later:
                continue
            if alone is None and len(row.offset) > 3 and sum(len(cell.data) for cell in cells) >= _LEAST:
                alone = found
    return alone


def _follow(lines: Lines, first: _Row, unit: Unit, cells: Cells) -> _Dump:
    """Return the dump of a row and those behind it."""
    rows, sizes = [first], []
    repeats: dict[int, int] = {}
    holes: dict[int, int] = {}
    base, ended = 0, False
    number, starred, skipped = first.line + 1, False, 0
    while number < len(lines.texts):
        line = lines.texts[number]
        if _STAR.fullmatch(line):
            starred, number = True, number + 1
            continue
        row = _row_like(lines, number, first)
        if row is None:
            skipped += 1
            if skipped > 1 or not base or not _is_omission(line):
                break
            number += 1
            continue
        indents = _indent(lines.texts[first.line]), _indent(line)
        if len(row.offset) == len(first.offset) and indents[0] != indents[1]:
            break  # the other direction of a followed stream
        step = _step(rows[-1], row, base, cells, starred=starred, may_skip=bool(base))
        later, is_end = unit.read(row.rest), not row.rest.strip(" \t|│")
        if step is None or not (later or is_end):
            break
        base, size, more = step
        sizes.append(size)
        if more:
            (repeats if starred else holes)[len(rows) - 1] = more
        number, starred, skipped = number + 1, False, 0
        if is_end:
            ended = True
            break
        cells = later
        rows.append(row)
    return _Dump(rows, base or 16, unit, sizes, ended, repeats, holes, number)


def _is_omission(line: str) -> bool:
    return _OMISSION.match(line) is not None


def _row_like(lines: Lines, number: int, first: _Row) -> _Row | None:
    """Return a line as a row whose offset is where the first row has its own."""
    for row in _rows_of(lines, number):
        if row.place == first.place:
            return row
        if row.place > first.place:
            break
    return None


def _step(
    last: _Row, row: _Row, base: int, cells: Cells, *, starred: bool, may_skip: bool
) -> tuple[int, int, int] | None:
    """Return the base of two rows' offsets, the size of the first row, and how many bytes are between them; None if
    the second does not follow the first."""
    total = sum(len(cell.data) for cell in cells)
    for each in (base,) if base else _BASES:
        try:
            step = int(row.offset, each) - int(last.offset, each)
        except ValueError:
            continue
        if 0 < step <= total and (_ends_at(step, cells, last.rest) or not row.rest.strip()):
            return each, step, 0
        width = text_cells(cells, last.rest)
        size = sum(len(cell.data) for cell in cells[:width]) if width else total
        if starred and size < step <= _MOST_REPEATED and (step - size) % size == 0:
            return each, size, step - size
        if may_skip and not starred and size < step <= _LARGEST_HOLE:
            return each, size, step - size
    return None


def _is_cell(row: _Row, cell: Cell) -> bool:
    """Return whether the offset of a row looks like the cell behind it: then it is one, of a row without an offset."""
    return row.is_bare and cell.start == 1 and cell.end - cell.start == len(row.offset) and row.rest[0] == " "


def _ends_at(size: int, cells: Cells, rest: str) -> bool:
    """Return whether a row may end behind so many bytes: with a cell, and then nothing but their text."""
    total = 0
    for cell in cells:
        if total == size:
            return len(rest) - cell.start <= size + _AROUND
        total += len(cell.data)
    return total == size


def _piece(dump: _Dump, lines: Lines) -> Piece:
    """Return the bytes of a dump."""
    parts: list[bytes] = []
    holes: list[Hole] = []
    column, at = 0, 0
    widths: set[int] = set()
    padding = b""
    usual = 0
    for number, row in enumerate(dump.rows):
        cells = dump.unit.read(row.rest)
        if not number and len(cells) > 1:
            usual = cells[1].start - cells[0].end
        is_known = number < len(dump.sizes)
        size = dump.sizes[number] if is_known else _last_size(cells, row.rest, column, usual)
        whole = b"".join(cell.data for cell in cells)
        data = whole[:size]
        total = 0
        for cell in cells:
            total += len(cell.data)
            widths.add(len(cell.data))
            if total >= size:
                column, padding = max(column, cell.end), whole[size:total]
                break
        repeat = dump.repeats.get(number, 0)
        if repeat and data:
            data *= 1 + repeat // len(data)
        parts.append(data)
        at += len(data)
        if number in dump.holes:
            holes.append(Hole(at, dump.holes[number]))
    first, last = dump.rows[0].line, dump.next_line - 1
    end = lines.starts[last] + len(lines.texts[last])
    is_even = len(widths) == 1 or (len(widths) == 2 and len(cells[-1].data) == min(widths))
    width = max(widths) if is_even and dump.unit.is_hex else 1
    return Piece(lines.starts[first], end, b"".join(parts), holes=holes, cell=width, padding=padding)


def _last_size(cells: Cells, rest: str, column: int, usual: int) -> int:
    """Return how many bytes the last row has; `usual` blanks are between two cells."""
    shown = text_cells(cells, rest)
    if shown is None:
        shown = len(cells)
        for number, cell in enumerate(cells):
            between = rest[cells[number - 1].end : cell.start] if number else ""
            narrower = cells[0].end - cells[0].start - (cell.end - cell.start)  # numbers are right-aligned
            gap = not between.strip() and (
                len(between) >= max(_GAP, usual + 1) + max(0, narrower) or between.count("\t") > 1
            )
            if (column and "\t" not in rest and cell.start >= column) or gap:
                shown = number
                break
    return sum(len(cell.data) for cell in cells[:shown])
