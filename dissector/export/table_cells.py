"""Columns of values as lines of cells: separated by tabs, or as CSV."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final, Literal

from dissector.bulk.cell_lines import CellColumn, cell_lines
from dissector.core.text import clean
from dissector.exchange.listing import Cells

TableForm = Callable[[Sequence[Sequence[object]]], bytes]
"""Takes columns of the same length, returns a line for each row."""
TABLE: Final = (
    "number", "time_ns", "connection", "kind", "api", "api_version", "correlation_id", "request.size", "response.size",
    "latency_ns", "client_id", "info",
)  # fmt: skip
"""The columns of CSV, unless others are chosen: those of the text format, with values for programs."""
_FORMULA: Final = re.compile(r"[=+\-@\t\r\n\uff0b\uff0d\uff1d\uff20]")
"""How a cell begins that spreadsheets may run as a formula (OWASP, "CSV Injection"); some take full-width signs."""
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_NO_VALUE: Final = type(None)


def as_tabs(columns: Sequence[Sequence[object]]) -> bytes:
    """Separate cells by tabs. All rows are formatted at once, in half the time of row by row."""
    cells = [*map(_cells, columns)]
    line = "\t".join("%d" if cell is column else "%s" for cell, column in zip(cells, columns, strict=True)) + "\n"
    return (line * len(columns[0]) % tuple(chain.from_iterable(zip(*cells, strict=True)))).encode()


def tab_lines(columns: Sequence[Cells]) -> bytes:
    """Write the same lines of many rows natively."""
    native = [
        CellColumn(
            b"\t" if number else b"", cells.values, cells.kinds, [_text(value).encode() for value in cells.texts]
        )
        for number, cells in enumerate(columns)
    ]
    return cell_lines(native, b"\n").text.tobytes()


def as_csv(columns: Sequence[Sequence[object]]) -> bytes:
    """Write CSV, with quotes where they are needed."""
    return _csv(map(_cells, columns), csv.QUOTE_MINIMAL)


def as_csv_without_formulas(columns: Sequence[Sequence[object]]) -> bytes:
    """Write CSV in which no cell is a formula: it gets an apostrophe, and all text quotes, as spreadsheets may
    separate cells elsewhere than at commas."""
    return _csv(([*map(_escaped, cells)] for cells in map(_cells, columns)), csv.QUOTE_NONNUMERIC)


def _csv(columns: Iterable[Sequence[object]], quoting: Literal[0, 2]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n", quoting=quoting).writerows(zip(*columns, strict=True))
    return out.getvalue().encode()


def _escaped(cell: object) -> object:
    if not isinstance(cell, str) or not _FORMULA.match(cell) or _NUMBER.fullmatch(cell):
        return cell
    return f"'{cell}"


def _cells(column: Sequence[object]) -> Sequence[object]:
    """Return the cells of a column, safe for a terminal: the column itself if all values are numbers."""
    types = set(map(type, column))
    if types == {int}:
        return column
    if types == {int, _NO_VALUE}:
        return ["" if value is None else value for value in column]
    return [*map(_text, column)]


def _text(value: object) -> str:
    """Return a value as a cell that is safe for a terminal."""
    if isinstance(value, int):
        return str(value)
    return "" if value is None else _clean(str(value))


_clean = lru_cache(maxsize=1024)(clean)
