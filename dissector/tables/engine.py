"""What runs SQL over the tables: DuckDB in this process, or Spark."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa

from dissector.tables.dialect import Dialect
from dissector.tables.schemas import TableSchema

Row = dict[str, Any]
Convert = Callable[[Iterator[Row]], Iterator[tuple[Any, ...]]]
"""Makes tuples of rows, any number of each. On a cluster it is pickled."""


class Engine(Protocol):
    """Runs SQL."""

    dialect: Dialect

    def define_files(self, name: str, table: TableSchema, uris: Sequence[str]) -> None:
        """Define a view of the files of a table."""

    def define_rows(self, name: str, rows: pa.Table) -> None:
        """Define a view of a few rows."""

    def define(self, name: str, sql: str, *, kept: bool = False) -> None:
        """Define a view of a query. Its rows are made once, when they are first asked for, if they are `kept`."""

    def define_converted(self, name: str, sql: str, convert: Convert, schema: pa.Schema) -> None:
        """Define a view of tuples that are made of the rows of a query."""

    def rows(self, sql: str) -> Iterator[Row]:
        """Yield the rows of a query."""

    def converted(self, sql: str, convert: Convert, schema: pa.Schema, most: int | None) -> Iterator[tuple[Any, ...]]:
        """Yield the tuples that are made of the rows of a query, in the order of `number`, which both have: all, or
        the first `most`."""
