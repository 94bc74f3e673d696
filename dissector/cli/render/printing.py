"""Rows in each output format, for `show` and for live captures."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, Self

import numpy as np

from dissector.capture_session import Capture
from dissector.cli.errors import UsageError
from dissector.cli.formats import Format
from dissector.cli.render.fields import (
    TABLE,
    are_indexed,
    exchange_lines,
    header_line,
    index_lines,
    parse,
)
from dissector.cli.render.lines import text_lines
from dissector.cli.render.rows import head_line, row_line
from dissector.cli.render.trees import tree_lines
from dissector.core.arrays import Int64
from dissector.exchange.model import Exchange
from dissector.exchange.row_fields import ROW_FIELDS
from dissector.exchange.to_json import json_line
from dissector.export.table_cells import TableForm, as_csv, as_csv_without_formulas, as_tabs

ROWS_TOGETHER: Final = 1 << 16
"""Rows that are rendered as text together: the more, the less each costs."""


class RowRenderer(NamedTuple):
    """Renders rows in a format: the fields of `names` as columns, or whole exchanges without names."""

    form: Format
    names: tuple[str, ...] = ()
    cells: TableForm = as_tabs
    """How columns are written."""

    @classmethod
    def of(cls, form: Format, fields: str | None, *, escape_formulas: bool = False) -> Self:
        """Return the renderer for the options. Raises `UsageError` for an invalid combination."""
        if escape_formulas and form is not Format.CSV:
            raise UsageError("--escape-formulas needs --format csv")
        if fields is not None and form not in (Format.TEXT, Format.CSV):
            raise UsageError("--fields needs --format text or csv")
        cells = as_csv_without_formulas if escape_formulas else as_csv if form is Format.CSV else as_tabs
        return cls(form, parse(fields) if fields is not None else TABLE if form is Format.CSV else (), cells)

    @property
    def head(self) -> bytes:
        """Output above the rows."""
        if self.form is Format.CSV:
            return header_line(self.names)
        return head_line().encode() + b"\n" if self.form is Format.TEXT and not self.names else b""

    @property
    def is_cheap(self) -> bool:
        """Whether the index has all values, so that no frame is decoded."""
        return bool(self.names) and are_indexed(self.names)

    @property
    def reads_columns(self) -> bool:
        """Whether nearly all rows are printed without being decoded one by one."""
        return self.is_cheap or (self.form is Format.TEXT and not self.names)

    @property
    def reads_messages(self) -> bool:
        """Whether rows of tables are printed from their messages, and not from their columns alone."""
        of_row = all(name in ROW_FIELDS and (ROW_FIELDS[name].is_indexed or name == "info") for name in self.names)
        return not of_row or (not self.names and self.form is not Format.TEXT)

    @property
    def shows_findings(self) -> bool:
        """Whether the output depends on cross-message findings."""
        return not self.names or any(name in ROW_FIELDS and ROW_FIELDS[name].reads_findings for name in self.names)

    @property
    def names_findings_only(self) -> bool:
        """Whether findings are printed as codes. Codes are known when a row is examined; messages may still change
        (how often, for how long) until the last row is examined."""
        return self.form in (Format.TEXT, Format.CSV)

    def lines(self, capture: Capture, rows: range | Int64) -> Iterator[bytes | memoryview]:
        """Render rows of a capture: numbers from 0, ascending."""
        if self.is_cheap:
            return index_lines(capture, self.names, rows, self.cells)
        if self.form is Format.TEXT and not self.names:
            steps = range(0, len(rows), ROWS_TOGETHER)
            return (text_lines(capture, np.asarray(rows[at : at + ROWS_TOGETHER], np.int64)) for at in steps)
        if self.form is Format.JSON:
            return json_lines(capture, rows)
        return self.exchanges(capture.at(rows), capture.start_ns)

    def exchanges(self, exchanges: Iterable[Exchange], start_ns: int) -> Iterator[bytes]:
        """Render exchanges of a capture that began at `start_ns`."""
        if self.names:
            return exchange_lines(self.names, exchanges, self.cells)
        render = RENDERERS[self.form]
        return (render(exchange, start_ns) for exchange in exchanges)


def json_lines(capture: Capture, rows: range | Int64) -> Iterator[bytes | memoryview]:
    """Render rows as JSON. Only those are decoded that need it."""
    first = 0
    for text in capture.messages.json_lines(rows):
        some = np.asarray(rows[first : first + len(text.ends)], np.int64)
        exchanges = iter(capture.at(some[text.careful]))
        yield from (json_line(next(exchanges)) if part is None else part for part in text.parts())
        first += len(text.ends)
        del text  # so that its memory is used again


def _text(exchange: Exchange, start_ns: int) -> bytes:
    return row_line(exchange.row, start_ns).encode() + b"\n"


def _tree(exchange: Exchange, start_ns: int) -> bytes:
    return "\n".join(tree_lines(exchange, start_ns)).encode() + b"\n"


def _json(exchange: Exchange, _start_ns: int) -> bytes:
    return json_line(exchange)


def _csv(exchange: Exchange, _start_ns: int) -> bytes:
    return b"".join(exchange_lines(TABLE, [exchange], as_csv))


RENDERERS: Final[dict[Format, Callable[[Exchange, int], bytes]]] = {
    Format.TEXT: _text,
    Format.TREE: _tree,
    Format.JSON: _json,
    Format.CSV: _csv,
}
"""Renderers of whole exchanges, by format."""
