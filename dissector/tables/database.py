"""SQL over the files of tables, by DuckDB in this process; files of object stores are read by pyarrow.

Invariant: rows come as they are read: memory does not depend on their number, and what a query holds beyond `MEMORY`
goes to a folder that only this user can read.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import duckdb
import numpy as np
import pyarrow as pa

from dissector.core.arrays import Int64
from dissector.tables.arrow_types import arrow_schema
from dissector.tables.file_systems import LOCAL, opened
from dissector.tables.schemas import KEYS, TableSchema
from dissector.tables.sql import Row, rows_of_files

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset

ROWS_PER_BATCH: Final = 1 << 13
"""Rows without bodies that are in memory together."""
_ADDED_TOGETHER: Final = 1 << 16
"""Rows of Python that are added together."""
MEMORY: Final = "384MB"
THREADS: Final = 4
"""At most: each holds rows of its own."""


class Database:
    """A database in memory, which only has views of files and tables of a few rows."""

    def __init__(self) -> None:
        self._remote: dict[str, Dataset] = {}
        """Tables of object stores, by name. Each cursor must be told of them."""
        self._spilled = TemporaryDirectory(prefix="kdissect-")
        self._connection = duckdb.connect(
            config={
                "autoinstall_known_extensions": "false",
                "memory_limit": MEMORY,
                "temp_directory": self._spilled.name,
                "enable_object_cache": "true",  # footers of files are read once
            }
        )
        self._connection.execute(f"SET threads = least({THREADS}, current_setting('threads'))")

    def close(self) -> None:
        """Forget everything."""
        self._connection.close()
        self._spilled.cleanup()

    def define_files(self, name: str, table: TableSchema, uris: Sequence[str]) -> None:
        """Define a view of the files of a table."""
        columns = (*KEYS, *table.columns)
        if uris and not uris[0].startswith(LOCAL):
            from pyarrow.dataset import dataset  # imports pandas

            found = [opened(uri) for uri in uris]  # DuckDB itself would need an extension for each kind of store
            self._remote[name] = dataset(
                [path for _, path in found], arrow_schema(table), format="parquet", filesystem=found[0][0]
            )
            self._connection.register(name, self._remote[name])
            return
        names = ", ".join(f'"{each.name}"' for each in columns)  # without columns of users
        self.define(name, f"SELECT {names} FROM ({rows_of_files(columns, uris)})")

    def define_rows(self, name: str, types: Mapping[str, str], rows: Iterable[Sequence[object]]) -> None:
        """Define a table of rows of Python, by the types of their columns. (To make Arrow's arrays of Python objects,
        pyarrow imports pandas.)"""
        columns = ", ".join(f"{column} {kind}" for column, kind in types.items())
        self._connection.execute(f"CREATE OR REPLACE TABLE {name} ({columns})")
        columns = ", ".join(f"unnest(${column}::{kind}[])" for column, kind in types.items())
        left = iter(rows)
        while some := list(islice(left, _ADDED_TOGETHER)):
            values = {column: [row[at] for row in some] for at, column in enumerate(types)}
            self._connection.execute(f"INSERT INTO {name} SELECT {columns}", values)

    def define(self, name: str, sql: str, *, kept: bool = False) -> None:
        """Define a view of a query, or a table of its rows if they are `kept`."""
        self._connection.execute(f"CREATE OR REPLACE {'TABLE' if kept else 'VIEW'} {name} AS {sql}")

    def batches(
        self, sql: str, given: pa.Table | None = None, together: int = ROWS_PER_BATCH
    ) -> Iterator[pa.RecordBatch]:
        """Return the rows of a query, which may name the rows `given`; so many are in memory together."""
        cursor = self._connection.cursor()
        for name, rows in (self._remote | ({} if given is None else {"given": given})).items():
            cursor.register(name, rows)
        return iter(cursor.sql(sql).to_arrow_reader(together))

    def rows(self, sql: str) -> Iterator[Row]:
        """Return the rows of a query."""
        return (row for batch in self.batches(sql) for row in batch.to_pylist())


def numbers(column: pa.Array) -> Int64:
    """Return integers of 64 bits without nulls as numpy has them. (For `to_numpy`, pyarrow imports pandas.)"""
    _, data = column.buffers()
    return np.frombuffer(data or b"", np.int64)[column.offset : column.offset + len(column)]


def booleans(values: Sequence[bool]) -> pa.Array:
    """Return truth values as Arrow has them."""
    bits = np.packbits(np.array(values, np.bool_), bitorder="little").tobytes()
    return pa.BooleanArray.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])
