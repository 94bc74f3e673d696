"""`show --format text`: one line for each exchange, in columns, for reading and for grep.

Lines of many rows at once are written by the native kernel (`kernel/lines.c`) from columns of the index.

Invariant: such a line is that of `row_line`, a property test.
"""

import ctypes
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from dissector.capture_session import Capture
from dissector.core.arrays import Int64, UInt8
from dissector.core.kernel import kernel_function, structure_fields
from dissector.core.text import clean, duration, seconds, shortened, size
from dissector.exchange.model import ExchangeRow
from dissector.index.index_columns import IndexColumns
from dissector.protocol.kernel.shredding import numbered_rows
from dissector.protocol.schema.loader import api_name

_lines = kernel_function("lines", "P")
API_WIDTH: Final = 24
_LAYOUT: Final = f"{{:>6}} {{:>12}} {{:>5}} {{:<{API_WIDTH}}} {{:>3}} {{:>7}} {{:>7}} {{:>7}} {{:>9}}  {{}}"
_HEAD: Final = ("No.", "Time", "Conn", "API", "v", "Corr", "Out", "In", "Latency", "Info")
NO_LATENCY: Final = -1 << 63
WHOLE_LINE: Final = -1
"""In place of an API: the text is the line."""
MOST_FIXED: Final = 320
"""Bytes that a line has at most besides its texts, the same as in lines.c."""
MOST_EXACT: Final = 1 << 53
"""Nanoseconds from which on a double is not each number."""


def head_line() -> str:
    """Return the line of column names."""
    return _LAYOUT.format(*_HEAD)


@lru_cache(maxsize=4096)
def words(client_id: str | None, info: str) -> str:
    """The last column, without spaces at its end."""
    return clean(info if client_id is None else f"{shortened(client_id)}: {info}").rstrip()


def row_line(row: ExchangeRow, start_ns: int) -> str:
    """Format a row as a line that is safe for a terminal."""
    return _LAYOUT.format(
        row.number,
        seconds(row.time_ns - start_ns),
        f"C{row.connection}",
        clean(row.api),
        "" if row.version is None else row.version,
        "" if row.correlation_id is None else row.correlation_id,
        "-" if row.request_size is None else size(row.request_size),
        "-" if row.response_size is None else size(row.response_size),
        "" if row.latency_ns is None else duration(row.latency_ns),
        words(row.client_id, row.info),
    ).rstrip()


def text_lines(capture: Capture, rows: Int64) -> memoryview:
    """Return the lines of rows, ascending. Only those are decoded that need it."""
    info, columns = capture.messages.info(rows), capture.index.numbers(rows)
    latency = np.where(columns.has_latency, columns.latency_ns, NO_LATENCY)
    is_exact = ~columns.has_latency | (np.abs(latency) < MOST_EXACT)
    has_columns = is_exact & np.array([text is not None for text in info], np.bool_)
    keys, which = np.unique(columns.api_key[has_columns], return_inverse=True)
    texts = [f"{clean(api_name(key)):<{API_WIDTH}}" for key in keys.tolist()]
    apis = np.full(len(rows), WHOLE_LINE)
    apis[has_columns] = which
    infos = _infos(capture, columns.client_id, info, texts)
    decoded = np.flatnonzero(~has_columns)
    for at, exchange in zip(decoded.tolist(), capture.at(rows[decoded]), strict=True):
        infos[at] = len(texts)
        texts.append(row_line(exchange.row, capture.start_ns))
    return write_lines(columns, rows + 1, capture.start_ns, latency, apis, infos, texts)


def _infos(capture: Capture, client_ids: Int64, info: Sequence[str | None], texts: list[str]) -> Int64:
    """The number of the last column's text for each row, where there is one; new ones are added to `texts`."""
    which, first = numbered_rows(client_ids, np.fromiter(map(id, info), np.int64, len(info)))  # most texts are shared
    start = len(texts)
    for client, at in zip(client_ids[first].tolist(), first.tolist(), strict=True):
        text = info[at]
        texts.append("" if text is None else words(capture.index.client_id(client), text))
    return start + which.astype(np.int64)


LINES: Final = """
int64_t rows;
const int64_t *numbers; /* by row, as are the columns below */
const int64_t *times;   /* nanoseconds since the capture began */
const int64_t *connections;
const int64_t *apis; /* numbers of texts, which are as wide as their column */
const int64_t *versions;
const int64_t *ids;
const int64_t *request_sizes; /* -1 for none */
const int64_t *response_sizes;
const int64_t *latencies; /* nanoseconds, INT64_MIN for none */
const int64_t *infos;     /* numbers of texts */
const uint8_t *texts;
int64_t texts_size;
const int64_t *starts; /* where each text begins, and where the last one ends */
int64_t count;         /* of texts */
uint8_t *out;
int64_t capacity;
"""
"""Rows of exchanges as columns, and where their lines are written: `KernelLines` of kernel.h."""


class _Lines(ctypes.Structure):
    """As `LINES`."""

    _fields_ = structure_fields(LINES)


def write_lines(
    columns: IndexColumns, numbers: Int64, start_ns: int, latency: Int64, apis: Int64, infos: Int64, texts: list[str]
) -> memoryview:
    """Return the lines of rows, whose latencies are exact. `apis` and `infos` are numbers of `texts`: those of APIs are
    as wide as their column, the others have no spaces at their end."""
    parts = [text.encode() for text in texts]
    sizes = np.array([len(part) for part in parts], np.int64)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    data: UInt8 = np.frombuffer(b"".join(parts), np.uint8)
    out = np.empty(len(numbers) * MOST_FIXED + int(sizes[infos].sum() + sizes[apis[apis >= 0]].sum()), np.uint8)
    by_row = (
        numbers, columns.request_time_ns - start_ns, columns.connection, apis, columns.version,
        columns.correlation_id, columns.request_size, columns.response_size, latency, infos,
    )  # fmt: skip
    held = [np.ascontiguousarray(column, np.int64) for column in by_row]
    call = _Lines(
        len(numbers), *(column.ctypes.data for column in held), data.ctypes.data, len(data), starts.ctypes.data,
        len(parts), out.ctypes.data, len(out),
    )  # fmt: skip
    written = _lines()(ctypes.byref(call))
    assert written >= 0, "there is room for all lines"
    return out[:written].data
