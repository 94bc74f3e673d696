"""Rows in each output format, for `show` and for live captures. `FORMATS` alone says what each format can do."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Final, NamedTuple, Self

import numpy as np

from dissector.capture_session import Capture
from dissector.cli.errors import UsageError
from dissector.cli.formats import Format
from dissector.cli.render.fields import are_indexed, exchange_lines, header_line, index_lines, parse
from dissector.cli.render.lines import head_line, row_line, text_lines
from dissector.cli.render.trees import TreeTexts, tree_lines
from dissector.core.arrays import Int64
from dissector.exchange.model import Exchange
from dissector.exchange.row_fields import ROW_FIELDS
from dissector.exchange.to_json import json_line
from dissector.export.table_cells import TABLE, TableForm, as_csv, as_csv_without_formulas, as_tabs

LINES_TOGETHER: Final = 4_096
"""Lines of a tree that are rendered together: those of a large frame would take as much memory as its tree."""
ROWS_TOGETHER: Final = 1 << 14
"""Rows that are rendered as text together: the more, the less each costs."""


class RowFormat(NamedTuple):
    """What an output format can do. An exchange is shown whole by what `begin` returns, or as columns by `cells`."""

    begin: Callable[[], Callable[[Exchange, int], Iterable[bytes]]] | None = None
    """Returns what renders the exchanges of one step: each, of a capture that began at that time, in pieces. None where
    all is columns."""
    render_many: Callable[[Capture, range | Int64], Iterator[bytes | memoryview]] | None = None
    """The same of many rows, of which few are decoded one by one."""
    head: Callable[[], bytes] = bytes
    """Output above whole exchanges."""
    is_of_rows: bool = False
    """Whether it shows of whole exchanges what a list does, and not their messages."""
    needs_frames: bool = False
    """Whether it shows bytes of frames."""
    names_findings_only: bool = False
    """Whether findings are printed as codes. Codes are known when a row is examined; messages may still change
    (how often, for how long) until the last row is examined."""
    cells: TableForm | None = None
    """How columns are written; None where there are none."""
    cells_without_formulas: TableForm | None = None
    """The same for spreadsheets, which would compute some; None where they don't read it."""
    columns: tuple[str, ...] = ()
    """Fields that are columns where the user names none."""
    names_columns: bool = False
    """Whether the names of columns come first, without rows too."""


class RowRenderer(NamedTuple):
    """Renders rows in a format: the fields of `names` as columns, or whole exchanges without names."""

    form: Format
    names: tuple[str, ...] = ()
    cells: TableForm = as_tabs
    """How columns are written."""

    @classmethod
    def of(cls, form: Format, fields: str | None, *, escape_formulas: bool = False) -> Self:
        """Return the renderer for the options. Raises `UsageError` for an invalid combination."""
        entry = FORMATS[form]
        if escape_formulas and entry.cells_without_formulas is None:
            raise UsageError(f"--escape-formulas needs --format {_those(lambda each: each.cells_without_formulas)}")
        if fields is not None and entry.cells is None:
            raise UsageError(f"--fields needs --format {_those(lambda each: each.cells)}")
        cells = entry.cells_without_formulas if escape_formulas else entry.cells
        return cls(form, parse(fields) if fields is not None else entry.columns, cells or as_tabs)

    @property
    def format(self) -> RowFormat:
        """What its format can do."""
        return FORMATS[self.form]

    @property
    def head(self) -> bytes:
        """Output above the rows."""
        if self.names:
            return header_line(self.names) if self.format.names_columns else b""
        return self.format.head()

    @property
    def is_cheap(self) -> bool:
        """Whether the index has all values, so that no frame is decoded."""
        return bool(self.names) and are_indexed(self.names)

    @property
    def reads_columns(self) -> bool:
        """Whether nearly all rows are printed without being decoded one by one, and without their messages."""
        return self.is_cheap or (not self.names and self.format.is_of_rows)

    @property
    def writes_messages(self) -> bool:
        """Whether nearly all rows are printed with their messages, without being decoded one by one."""
        return not self.names and self.format.render_many is not None and not self.format.is_of_rows

    @property
    def reads_messages(self) -> bool:
        """Whether rows of tables are printed from their messages, and not from their columns alone."""
        if not self.names:
            return not self.format.is_of_rows
        return not all(name in ROW_FIELDS and (ROW_FIELDS[name].is_indexed or name == "info") for name in self.names)

    @property
    def shows_findings(self) -> bool:
        """Whether the output depends on cross-message findings."""
        return not self.names or any(name in ROW_FIELDS and ROW_FIELDS[name].reads_findings for name in self.names)

    def lines(self, capture: Capture, rows: range | Int64) -> Iterator[bytes | memoryview]:
        """Render rows of a capture: numbers from 0, ascending."""
        if self.is_cheap:
            return index_lines(capture, self.names, rows, self.cells)
        if not self.names and self.format.render_many is not None:
            return self.format.render_many(capture, rows)
        return self.exchanges(capture.at(rows), capture.start_ns)

    def exchanges(self, exchanges: Iterable[Exchange], start_ns: int) -> Iterator[bytes]:
        """Render exchanges of a capture that began at `start_ns`."""
        if self.names or self.format.begin is None:
            return exchange_lines(self.names, exchanges, self.cells)
        render = self.format.begin()
        return (piece for exchange in exchanges for piece in render(exchange, start_ns))


def _text(exchange: Exchange, start_ns: int) -> tuple[bytes]:
    return (row_line(exchange.row, start_ns).encode() + b"\n",)


def _text_of_many(capture: Capture, rows: range | Int64) -> Iterator[memoryview]:
    for at in range(0, len(rows), ROWS_TOGETHER):
        yield text_lines(capture, np.asarray(rows[at : at + ROWS_TOGETHER], np.int64))


def _text_head() -> bytes:
    return head_line().encode() + b"\n"


def _trees() -> Callable[[Exchange, int], Iterator[bytes]]:
    return partial(_tree, TreeTexts())


def _tree(texts: TreeTexts, exchange: Exchange, start_ns: int) -> Iterator[bytes]:
    lines = tree_lines(exchange, start_ns, texts)
    while some := list(islice(lines, LINES_TOGETHER)):
        yield "".join(f"{line}\n" for line in some).encode()


def _json(exchange: Exchange, _start_ns: int) -> tuple[bytes]:
    return (json_line(exchange),)


def _json_of_many(capture: Capture, rows: range | Int64) -> Iterator[bytes | memoryview]:
    """Render rows as JSON. Only those are decoded that need it."""
    first = 0
    for text in capture.messages.json_lines(rows):
        some = np.asarray(rows[first : first + len(text.ends)], np.int64)
        exchanges = iter(capture.at(some[text.careful]))
        yield from (json_line(next(exchanges)) if part is None else part for part in text.parts())
        first += len(text.ends)
        del text  # before the next one is made


FORMATS: Final = {
    Format.TEXT: RowFormat(
        lambda: _text, _text_of_many, _text_head, is_of_rows=True, names_findings_only=True, cells=as_tabs
    ),
    Format.TREE: RowFormat(_trees, needs_frames=True),
    Format.JSON: RowFormat(lambda: _json, _json_of_many),
    Format.CSV: RowFormat(
        names_findings_only=True, cells=as_csv, cells_without_formulas=as_csv_without_formulas, columns=TABLE,
        names_columns=True,
    ),
}  # fmt: skip
"""What each format can do."""


def _those(can: Callable[[RowFormat], object]) -> str:
    """Return the names of the formats that can do something."""
    return " or ".join(name for name, entry in FORMATS.items() if can(entry))
