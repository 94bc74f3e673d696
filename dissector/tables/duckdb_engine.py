"""Runs SQL over tables by DuckDB, in this process.

Invariant: rows are made into tuples as they come; memory does not depend on their number.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

import duckdb
import pyarrow as pa
from pyarrow.dataset import Dataset, dataset

from dissector.tables.arrow_types import arrow_schema
from dissector.tables.engine import Convert, Dialect, DuckDbDialect, Row
from dissector.tables.file_systems import LOCAL, opened
from dissector.tables.schemas import TableSchema

ROWS_PER_BATCH: Final = 1_024
"""Rows that become Python objects together: their bodies may be large."""

_SQL_TYPES: Final = {
    pa.string(): "VARCHAR", pa.int64(): "BIGINT", pa.int32(): "INTEGER", pa.date32(): "DATE", pa.binary(): "BLOB",
    pa.bool_(): "BOOLEAN", pa.timestamp("us", tz="UTC"): "TIMESTAMPTZ",
}  # fmt: skip
"""DuckDB's names of the scalar types that columns of ours have."""


class DuckDb:
    """A database in memory, which only has views of files."""

    dialect: Dialect = DuckDbDialect()

    def __init__(self) -> None:
        self._remote: dict[str, Dataset] = {}
        """Tables of object stores, by name. Each cursor must be told of them."""
        self._connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})

    def define_files(self, name: str, table: TableSchema, uris: Sequence[str]) -> None:
        if uris and not uris[0].startswith(LOCAL):
            found = [opened(uri) for uri in uris]  # DuckDB itself would need an extension for each kind of store
            self._remote[name] = dataset(
                [path for _, path in found], arrow_schema(table), format="parquet", filesystem=found[0][0]
            )
            self._connection.register(name, self._remote[name])
            return
        schema = arrow_schema(table)
        # Files of earlier versions lack columns. To make a table without rows would take twice as long.
        nulls = ", ".join(f'NULL::{_sql_type(field.type)} AS "{field.name}"' for field in schema)
        rows = f"SELECT {nulls} WHERE FALSE"
        if uris:
            paths = ", ".join(self.dialect.text(uri.removeprefix(LOCAL)) for uri in uris)
            rows += f" UNION ALL BY NAME FROM read_parquet([{paths}], union_by_name = true)"
        names = ", ".join(f'"{each}"' for each in schema.names)  # without columns of users
        self.define(name, f"SELECT {names} FROM ({rows})")

    def define_rows(self, name: str, rows: pa.Table) -> None:
        self._connection.register("some_rows", rows)
        self.define(name, "SELECT * FROM some_rows", kept=True)
        self._connection.unregister("some_rows")

    def define(self, name: str, sql: str, *, kept: bool = False) -> None:
        self._connection.execute(f"CREATE OR REPLACE {'TABLE' if kept else 'VIEW'} {name} AS {sql}")

    def define_converted(self, name: str, sql: str, convert: Convert, schema: pa.Schema) -> None:
        self.define_rows(name, _table(convert(self.rows(sql)), schema))

    def rows(self, sql: str) -> Iterator[Row]:
        cursor = self._connection.cursor()
        for name, rows in self._remote.items():
            cursor.register(name, rows)
        result = cursor.sql(sql).to_arrow_reader(ROWS_PER_BATCH)
        return (row for batch in result for row in batch.to_pylist())

    def converted(self, sql: str, convert: Convert, schema: pa.Schema, most: int | None) -> Iterator[tuple[Any, ...]]:
        found = convert(self.rows(f"{sql} ORDER BY number"))
        return found if most is None else islice(found, most)


def _sql_type(kind: pa.DataType) -> str:
    """Return the name of DuckDB's type for a type of Arrow's."""
    if pa.types.is_map(kind):
        return f"MAP({_sql_type(kind.key_type)}, {_sql_type(kind.item_type)})"
    if pa.types.is_list(kind):
        return f"{_sql_type(kind.value_type)}[]"
    if pa.types.is_struct(kind):
        return "STRUCT(" + ", ".join(f'"{field.name}" {_sql_type(field.type)}' for field in kind) + ")"
    return _SQL_TYPES[kind]


def _table(rows: Iterator[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """Return tuples as a table, some at a time."""
    batches = []
    while some := list(islice(rows, ROWS_PER_BATCH)):
        columns = [pa.array([row[at] for row in some], field.type) for at, field in enumerate(schema)]
        batches.append(pa.RecordBatch.from_arrays(columns, schema=schema))
    return pa.Table.from_batches(batches, schema)
