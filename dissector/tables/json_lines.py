"""Rows of tables as lines of `show --format json`, with their messages as they are stored.

Invariant: a line is that of `exchange.to_json` for the exchange of the row. Rows of other kinds are decoded, and so are
those with texts that SQL would escape differently.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from dissector.core.arrays import Int32
from dissector.core.grouping import cuts
from dissector.core.text import HOSTILE
from dissector.exchange.model import UNKNOWN_API
from dissector.exchange.row_fields import ROW_FIELDS, json_fields
from dissector.exchange.to_json import PARTIAL_BYTES, json_line
from dissector.tables.database import booleans
from dissector.tables.reader import ROWS, Tables
from dissector.tables.record_texts import PACKED, is_understood, with_records

if TYPE_CHECKING:  # imported on use: without a filter its parser is not needed
    from dissector.filter import Filter

_VALUES: Final = {
    "connection": "coalesce(conn, 0)", "client": "nullif(client, '')", "server": "coalesce(nullif(server, ''), path)",
    "api": f"nullif(api, '{UNKNOWN_API}')",
}  # fmt: skip
"""Values of fields at the top of the object, where they are not just a column."""
_IN_JSON: Final = ("version", "cipher", "sni", "alpn", "principal", "resumed", "state")
"""What of the columns about TLS is in the object."""
_NOTHING_LEFT: Final = f'"{PARTIAL_BYTES}":""'
"""What a cell has whose bytes were not kept, and the object has not."""
MOST_BYTES: Final = 8 << 20
"""Bytes of lines, with their records packed, that are written together, unless one line has more."""
Pieces = Iterable[bytes | memoryview]


def json_lines(tables: Tables, row_filter: "Filter | None", most: int | None) -> Iterator[tuple[int, Pieces]]:
    """Yield the lines of the rows that match, all or the first `most`: how many rows, and their text in pieces."""
    for part in tables.parts(row_filter, most):
        done = 0
        for batch in tables.with_bodies(part, _OF_ROWS, _LINES):
            _, offsets, text = batch.column("line").buffers()
            starts = np.frombuffer(offsets, np.int32)[: len(batch) + 1]
            edges = [0, *cuts(np.diff(starts), MOST_BYTES).tolist(), len(batch)]
            for first, end in pairwise(edges):
                rows = part.slice(done, end - first)
                done += end - first
                texts = bytes(memoryview(text or b"")[starts[first] : starts[end]])
                yield end - first, _pieces(texts, starts[first : end + 1] - starts[first], rows, tables)


def _pieces(text: bytes, starts: Int32, rows: pa.Table, tables: Tables) -> Iterator[bytes | memoryview]:
    """Yield the lines of rows, given the text that SQL has made of them: of some, none."""
    is_other = np.diff(starts) == 0
    if not is_understood(text):
        lines = (text[start:end] for start, end in pairwise(starts.tolist()))
        is_other |= ~np.array(list(map(is_understood, lines)), np.bool_)
    exchanges = tables.decoded(rows.filter(booleans(is_other))) if is_other.any() else iter(())
    places = np.flatnonzero(is_other)
    others = zip(starts[places].tolist(), starts[places + 1].tolist(), map(json_line, exchanges), strict=True)
    return with_records(text, others)


def _of_rows() -> str:
    """Return columns of rows `e` and their bodies `b`: what stands around the messages, and what is in them."""
    values = {key: _VALUES.get(key, ROW_FIELDS[key].table_columns[-1]) for key in json_fields()}
    marks = "{" + (len(values) - 1) * ","  # a structure of all cells takes twice as long
    cells = ", ".join(
        f"""'{mark}"{key}":', coalesce(to_json({value}), 'null')"""
        for mark, (key, value) in zip(marks, values.items(), strict=True)
    )
    tls = f"to_json(struct_pack({', '.join(f'{name} := tls_{name}' for name in _IN_JSON)}))"
    return (
        "number, kind, api_key, b.request, b.response,"
        f" concat({cells}, CASE WHEN tls_state IS NOT NULL THEN ',\"tls\":' || {tls} END, ',\"request\":') AS head,"
        """ ',"findings":' || coalesce(to_json(findings), '[]') || '}' AS tail,"""
        f" api_key IS NULL AND ({_either(PACKED.decode())}) AS is_unknown, {_either(_NOTHING_LEFT)} AS is_cut"
    )


def _either(words: str) -> str:
    """Return whether words are in either message."""
    return " OR ".join(f"coalesce(contains(b.{side}, '{words}'), FALSE)" for side in ("request", "response"))


_OF_ROWS: Final = _of_rows()
_HOSTILE: Final = r"\\u|[" + "".join(
    char if char in "-[]" else rf"\x{{{ord(char):x}}}" for char in HOSTILE.pattern.replace("\ud800-\udfff", "")[1:]
)  # fmt: skip
"""What `json_text` escapes, or SQL has escaped otherwise. (Text of tables has no halves of pairs.)"""
_IS_PLAIN: Final = (
    "kind = 'exchange' AND NOT is_cut AND NOT is_unknown"
    f" AND NOT regexp_matches(head, '{_HOSTILE}') AND NOT regexp_matches(tail, '{_HOSTILE}')"
)
_LINES: Final = (
    f"SELECT number, CASE WHEN {_IS_PLAIN} THEN concat(head, coalesce(request, 'null'), ',\"response\":',"
    f" coalesce(response, 'null'), tail, chr(10)) END AS line FROM ({ROWS})"
)
"""A query of lines, of which some are null; the query of rows with `_OF_ROWS` is to be put in."""
