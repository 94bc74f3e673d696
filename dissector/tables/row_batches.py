"""Rows of tables on their way to files: single rows, groups of rows that share most cells, or Arrow tables; and all of
one table as Arrow tables, however they come.

Invariant: about `MAX_BYTES` of rows are held, or `MAX_ROWS` of them; of tables about `MAX_TABLE_BYTES`.
"""

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from dissector.tables.arrow_types import TIMES, all_columns, arrow_schema, column, of_type, with_dictionaries
from dissector.tables.schemas import TableSchema

Cells = dict[str, Any]
"""A row by column; missing columns are null."""


class RowGroup(NamedTuple):
    """Rows of one table. Either all rows of a table come in groups, with the same `columns`, or none does."""

    shared: Cells
    """Cells that all rows share."""
    row_count: int
    size: int
    """Approximate bytes of the long cells."""
    source: Any
    """Source of the other cells. Sources of many groups become columns together: thousands of rows take little longer
    than one."""
    columns: Callable[[Sequence[Any]], dict[str, Sequence[Any]]]
    """Makes columns of sources."""

    @property
    def rows(self) -> list[Cells]:
        """The rows one by one."""
        columns = self.columns([self.source])
        return [self.shared | dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


TableRow = tuple[str, Cells | RowGroup | pa.Table]
"""Name of a table, and a row or rows of it."""


MAX_ROWS: Final = 32_000
"""Of tables, which become a group of rows each: larger ones are smaller on the disk, and written faster."""
MAX_SINGLE_ROWS: Final = 8_000
"""Of rows that come one by one or in groups."""
MAX_BYTES: Final = 4 << 20
"""Approximate bytes of the long cells of rows."""
MAX_TABLE_BYTES: Final = 8 << 20
"""Bytes of tables."""
LONG: Final = frozenset(("request", "response", "rest", "request_bytes", "response_bytes", "value", "data"))
"""Columns with long cells, nearly all of them different: a dictionary is of no use."""
RISING: Final = frozenset((
    "packet", "start", "time", "time_ns", "merged_packet", "correlation_id", "latency_ns", "offset", "timestamp",
    "timestamp_ms",
))  # fmt: skip
"""Columns with numbers that differ, each a little from the one before: differences take a third of a dictionary."""


class RowBatches:
    """Makes tables of the rows of one table, and hands them to `write`."""

    def __init__(self, table: TableSchema, write: Callable[[pa.Table], None]) -> None:
        self.schema = with_dictionaries(arrow_schema(table))
        self._given = pa.schema([field for field in self.schema if field.name not in TIMES])
        self._write = write
        self._long = [name for name in self.schema.names if name in LONG]
        self._tables: list[pa.Table] = []
        self._table_rows = self._table_size = 0
        self._begin()

    def _begin(self) -> None:
        self._shared: list[Cells] = []
        """Cells of single rows, or cells that groups share."""
        self._counts: list[int] = []
        """Number of rows of each group."""
        self._groups: list[RowGroup] = []
        self._rows = self._size = 0

    def add(self, row: Cells | RowGroup | pa.Table) -> None:
        """Add one row, a group, or a table with all columns."""
        if isinstance(row, pa.Table):
            self._add_table(row)
            return
        if isinstance(row, RowGroup):
            self._groups.append(row)
            self._shared.append(row.shared)
            self._counts.append(row.row_count)
            self._rows += row.row_count
            self._size += row.size
        else:
            self._shared.append(row)
            self._rows += 1
            for name in self._long:
                if value := row.get(name):
                    self._size += len(value)
        if self._rows >= min(MAX_SINGLE_ROWS, MAX_ROWS) or self._size >= MAX_BYTES:
            self._flush()

    def finish(self) -> None:
        """Write what is held."""
        self._flush()
        self._write_tables()

    def _add_table(self, table: pa.Table) -> None:
        """Add a table. Small ones become one group of rows."""
        columns = [of_type(table.column(field.name), field) for field in self._given]
        self._tables.append(pa.Table.from_arrays(columns, schema=self._given))
        self._table_rows += table.num_rows
        self._table_size += table.nbytes
        if self._table_rows >= MAX_ROWS or self._table_size >= MAX_TABLE_BYTES:
            self._write_tables()

    def _write_tables(self) -> None:
        """Write the tables as they lie in memory, one behind the other: to copy them together would take longer."""
        if self._tables:
            whole = pa.concat_tables(self._tables).unify_dictionaries()
            columns = all_columns(self.schema, lambda field: whole.column(field.name))
            self._write(pa.Table.from_arrays(columns, schema=self.schema))
        self._tables, self._table_rows, self._table_size = [], 0, 0

    def _flush(self) -> None:
        if self._rows:
            groups = self._groups
            grouped = groups[0].columns([each.source for each in groups]) if groups else {}
            shared = self._shared_columns(
                [name for name in self.schema.names if name not in grouped and name not in TIMES]
            )
            columns = all_columns(
                self.schema,
                lambda field: (
                    column(grouped[field.name], field.type)
                    if field.name in grouped
                    else self._repeated(shared[field.name], field)
                ),
            )
            self._write(pa.Table.from_arrays(columns, schema=self.schema))
            self._begin()

    def _shared_columns(self, names: list[str]) -> dict[str, Sequence[Any]]:
        """Return the shared cells by column. The fast path is for rows with all columns, as nearly all are."""
        try:
            values: Iterable[Sequence[Any]] = zip(*map(itemgetter(*names), self._shared), strict=True)
        except KeyError:
            values = [[row.get(name) for row in self._shared] for name in names]
        return dict(zip(names, values, strict=True))

    def _repeated(self, values: Sequence[Any], field: pa.Field) -> pa.Array:
        """Return a column of shared cells, each repeated for all rows of its group."""
        cells = column(values, field.type)
        return cells.take(pa.array(np.repeat(np.arange(len(cells)), self._counts))) if self._counts else cells
