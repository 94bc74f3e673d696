"""Cells of many rows as lines, written by the native kernel (`cells.c`)."""

import ctypes
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Int64, UInt8
from dissector.core.kernel import kernel_function, structure_fields
from dissector.exchange.listing import EMPTY, TEXT

_cell_lines = kernel_function("cell_lines", "PqqPqP")
MOST_NUMBER: Final = 25
"""Bytes that the kernel wants for a number and for what is behind it."""


class CellColumn(NamedTuple):
    """Cells of a column, and what is in front of each."""

    before: bytes
    values: Int64
    """Numbers, or the numbers of texts, `(n,)`."""
    kinds: UInt8
    """`EMPTY`, `NUMBER` or `TEXT`."""
    texts: list[bytes]


class CellLines(NamedTuple):
    """Lines, one behind the other, and where each ends, `(n,)`."""

    text: UInt8
    ends: Int64


def cell_lines(columns: Sequence[CellColumn], end: bytes) -> CellLines:
    """Return the lines of rows: their cells, then `end`."""
    rows, room, kept = len(columns[0].values), MOST_NUMBER, []
    native = (_KernelCells * (len(columns) + 1))()
    last = CellColumn(end, np.zeros(rows, np.int64), np.full(rows, EMPTY, np.uint8), [])
    for number, column in enumerate((*columns, last)):
        sizes = np.array([len(text) for text in column.texts], np.int64)
        arrays = (
            np.frombuffer(column.before, np.uint8), np.ascontiguousarray(column.values, np.int64),
            np.ascontiguousarray(column.kinds, np.uint8), np.frombuffer(b"".join(column.texts), np.uint8),
            np.cumsum(sizes),
        )  # fmt: skip
        before, values, kinds, text, ends = (array.ctypes.data for array in arrays)
        native[number] = _KernelCells(
            before, len(arrays[0]), values, kinds, text, len(arrays[3]), ends, len(column.texts)
        )
        kept.append(arrays)
        room += (len(column.before) + MOST_NUMBER) * rows + int(sizes[column.values[column.kinds == TEXT]].sum())
    out, ends_of_rows = np.empty(room, np.uint8), np.zeros(rows, np.int64)
    size = _cell_lines()(
        ctypes.addressof(native), len(native), rows, out.ctypes.data, len(out), ends_of_rows.ctypes.data
    )
    assert size >= 0, "there is room for all lines"
    return CellLines(out[:size], ends_of_rows)


CELLS: Final = """
const uint8_t *before; /* what is written in front of each cell */
int64_t before_size;
const int64_t *values; /* numbers, or the numbers of texts */
const uint8_t *kinds;  /* 0 for an empty cell, 1 for a number, 2 for a text */
const uint8_t *text;   /* all texts, one behind the other, */
int64_t size;          /* their bytes, */
const int64_t *ends;   /* where each ends, */
int64_t texts;         /* and how many there are */
"""
"""A column of cells: `KernelCells` of kernel.h."""


class _KernelCells(ctypes.Structure):
    """As `CELLS`."""

    _fields_ = structure_fields(CELLS)
