"""Rows of tables as lines of `show --format json`, with their messages as they are stored.

Invariant: a line is that of `exchange.to_json` for the exchange of the row. Rows of other kinds are decoded, and so are
those with texts that SQL would escape differently.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from dissector.core.arrays import Int32
from dissector.core.grouping import cuts
from dissector.exchange.model import UNKNOWN_API
from dissector.exchange.row_fields import ROW_FIELDS, json_fields
from dissector.exchange.to_json import PARTIAL_BYTES, json_line
from dissector.tables.database import booleans
from dissector.tables.reader import Tables
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
    at = 0
    for place, exchange in zip(np.flatnonzero(is_other).tolist(), exchanges, strict=True):
        yield from with_records(text[at : starts[place]])
        yield json_line(exchange)
        at = starts[place + 1]
    yield from with_records(text[at:])


def _of_rows() -> str:
    """Return columns of rows `e` and their bodies `b`: what stands around the messages, and what is in them."""
    values = {key: _VALUES.get(key, ROW_FIELDS[key].table_columns[-1]) for key in json_fields()}
    tls = f"to_json(struct_pack({_members({name: f'tls_{name}' for name in _IN_JSON})}))"
    return (
        "number, kind, api_key, b.request, b.response,"
        f" rtrim(to_json(struct_pack({_members(values)})), '}}')"
        f""" || CASE WHEN tls_state IS NULL THEN '' ELSE ',"tls":' || {tls} END || ',"request":' AS head,"""
        """ ',"findings":' || coalesce(to_json(findings), '[]') || '}' || chr(10) AS tail,"""
        f" {_either(PACKED.decode())} AS is_packed, {_either(_NOTHING_LEFT)} AS is_cut"
    )


def _members(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name} := {value}" for name, value in values.items())


def _either(words: str) -> str:
    """Return whether words are in either message."""
    return " OR ".join(f"coalesce(contains(b.{side}, '{words}'), FALSE)" for side in ("request", "response"))


_OF_ROWS: Final = _of_rows()
_IS_PLAIN: Final = (
    r"kind = 'exchange' AND NOT is_cut AND (api_key IS NOT NULL OR NOT is_packed)"
    r" AND NOT regexp_matches(head, '[^ -~]|\\u') AND NOT regexp_matches(tail, '[^ -~\n]|\\u')"
)
_LINES: Final = (
    f"SELECT number, CASE WHEN {_IS_PLAIN} THEN concat(head, coalesce(request, 'null'), ',\"response\":',"
    " coalesce(response, 'null'), tail) END AS line FROM ({})"
)
"""A query of lines, of which some are null; the query of rows with `_OF_ROWS` is to be put in."""
