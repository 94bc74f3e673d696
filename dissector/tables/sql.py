"""Texts of SQL as DuckDB takes it."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from dissector.tables.arrow_types import arrow_type
from dissector.tables.file_systems import LOCAL
from dissector.tables.schemas import ROW_KEY, TableColumn

Row = dict[str, Any]
"""A row of a query, by column."""


class PushedFilter(NamedTuple):
    """A filter as a condition on columns."""

    sql: str
    is_exact: bool
    """Whether every row that satisfies the condition matches the filter."""
    uses_numbers: bool = False
    """Whether it needs `number` or `conn`."""
    uses_findings: bool = False
    uses_bodies: bool = False
    undecided: str = ""
    """A condition for rows of `exchanges` without a value in a column that decides: these are to be decoded."""


EVERY_ROW: Final = PushedFilter("TRUE", is_exact=True)


def is_sql_error(error: BaseException) -> bool:
    """Whether an error is DuckDB's, which takes a while to import: where it is not, it has raised nothing."""
    duckdb = sys.modules.get("duckdb")
    return duckdb is not None and isinstance(error, duckdb.Error)


def text(value: str) -> str:
    """Return a text as a literal."""
    return "'" + value.replace("'", "''") + "'"


def quoted(name: str, mark: str = chr(34)) -> str:
    """Return the name of a column as it may be of a user."""
    return f"{mark}{name.replace(mark, 2 * mark)}{mark}"


def any_of(items: str, test: Callable[[str], str]) -> str:
    """Return whether a condition is true of any element of a list."""
    return f"coalesce(len(list_filter({items}, lambda each: {test('each')})) > 0, FALSE)"


def where(sql: str, condition: str) -> str:
    """Return a query of the rows of another one for which a condition is true."""
    return f"SELECT * FROM ({sql}) AS found WHERE {condition}"


def same(one: str, other: str, names: Sequence[str] = ROW_KEY) -> str:
    """Return whether two rows have the same values in some columns."""
    return " AND ".join(f"{one}.{name} = {other}.{name}" for name in names)


def rows_of_files(columns: Sequence[TableColumn], files: Sequence[str]) -> str:
    """Return a query of the rows of files of this machine. Files of earlier versions lack columns, which are null."""
    nulls = ", ".join(f"CAST(NULL AS {_type(arrow_type(each.type))}) AS {quoted(each.name)}" for each in columns)
    rows = f"SELECT * FROM (SELECT {nulls}) AS nothing WHERE FALSE"
    if files:
        paths = ", ".join(text(file.removeprefix(LOCAL)) for file in files)
        rows += f" UNION ALL BY NAME SELECT * FROM read_parquet([{paths}], union_by_name = true)"
    return rows


def _type(kind: pa.DataType) -> str:
    if pa.types.is_struct(kind):
        return f"STRUCT({', '.join(f'{field.name} {_type(field.type)}' for field in kind)})"
    if pa.types.is_map(kind):
        return f"MAP({_type(kind.key_type)}, {_type(kind.item_type)})"
    if pa.types.is_list(kind):
        return f"{_type(kind.value_type)}[]"
    return _SCALARS[kind]


_SCALARS: Final = {
    arrow_type(ours): name
    for ours, name in {
        "STRING": "VARCHAR", "BIGINT": "BIGINT", "INT": "INTEGER", "DATE": "DATE", "BINARY": "BLOB",
        "BOOLEAN": "BOOLEAN", "TIMESTAMP": "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_NTZ": "TIMESTAMP",
        "SMALLINT": "SMALLINT", "TINYINT": "TINYINT", "FLOAT": "FLOAT", "DOUBLE": "DOUBLE",
    }.items()
}  # fmt: skip
