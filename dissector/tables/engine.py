"""What runs SQL over the tables: DuckDB in this process, or Spark; and where their SQL differs. All other SQL means the
same in both.

Invariant: what a method of one dialect gives has the value of what the same method of the other gives.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa

from dissector.tables.schemas import TableSchema

Test = Callable[[str], str]
"""Makes a condition about an expression."""


class Dialect(Protocol):
    """Expressions and clauses, as text."""

    def text(self, value: str) -> str:
        """A text as a literal."""

    def structs(self, fields: dict[str, str]) -> str:
        """Aggregate: a list of structs with these fields, in the order of their values."""

    def least(self, columns: Sequence[str]) -> str:
        """Aggregate: the smallest tuple of these columns, as a value that can be compared."""

    def any_of(self, items: str, test: Test) -> str:
        """Whether a test is true of any element of a list."""

    def at_path(self, json: str, steps: Sequence[tuple[str, bool]], kind: str, test: Test) -> str:
        """Whether a test is true of a value in JSON text, at the names of `steps`, each of which may be an array.
        Values have the SQL type `kind`; those of another type are null."""

    def each(self, items: str, name: str) -> str:
        """Clause behind a FROM: a row for each element of a list, in the column `name`."""

    def each_range(self, ranges: str, names: tuple[str, str, str]) -> str:
        """Clause behind a FROM: a row for each key of a map of ranges, in columns for key, low and high; one with nulls
        for an empty map."""

    def quotient(self, number: str, by: int) -> str:
        """The quotient of integers."""


class DuckDbDialect:
    """Of DuckDB."""

    def text(self, value: str) -> str:
        return "'" + value.replace("'", "''") + "'"

    def structs(self, fields: dict[str, str]) -> str:
        packed = "struct_pack(" + ", ".join(f"{name} := {value}" for name, value in fields.items()) + ")"
        return f"list({packed} ORDER BY {packed})"

    def least(self, columns: Sequence[str]) -> str:
        return f"min(row({', '.join(columns)}))"

    def any_of(self, items: str, test: Test) -> str:
        return f"coalesce(len(list_filter({items}, lambda each: {test('each')})) > 0, FALSE)"

    def at_path(self, json: str, steps: Sequence[tuple[str, bool]], kind: str, test: Test) -> str:
        path = "$" + "".join(f'."{name}"' + "[*]" * is_array for name, is_array in steps)
        values = f"json_extract_string({json}, {self.text(path)})"
        if not any(is_array for _, is_array in steps):
            return test(_as_kind(values, kind))
        return self.any_of(values, lambda each: test(_as_kind(each, kind)))

    def each(self, items: str, name: str) -> str:
        return f", unnest({items}) AS unnested({name})"

    def each_range(self, ranges: str, names: tuple[str, str, str]) -> str:
        key, low, high = names
        entries = f"unnest(map_entries({ranges})) AS entry"
        return (
            f" LEFT JOIN LATERAL (SELECT entry.key AS {key}, entry.value.low AS {low}, entry.value.high AS {high}"
            f" FROM (SELECT {entries})) ON TRUE"
        )

    def quotient(self, number: str, by: int) -> str:
        return f"({number}) // {by}"


def _as_kind(value: str, kind: str) -> str:
    """A text of JSON as a value of an SQL type: integers may be truth values."""
    if kind == "STRING":
        return value
    return f"CASE {value} WHEN 'true' THEN 1 WHEN 'false' THEN 0 ELSE try_cast({value} AS {kind}) END"


class SparkDialect:
    """Of Spark."""

    def text(self, value: str) -> str:
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def structs(self, fields: dict[str, str]) -> str:
        packed = "struct(" + ", ".join(f"{value} AS {name}" for name, value in fields.items()) + ")"
        return f"array_sort(collect_list({packed}))"

    def least(self, columns: Sequence[str]) -> str:
        return f"min(struct({', '.join(columns)}))"

    def any_of(self, items: str, test: Test) -> str:
        return f"coalesce(exists({items}, each -> {test('each')}), FALSE)"

    def at_path(self, json: str, steps: Sequence[tuple[str, bool]], kind: str, test: Test) -> str:
        return _in_variant(f"try_parse_json({json})", "$", list(steps), kind, test, 0)

    def each(self, items: str, name: str) -> str:
        return f" LATERAL VIEW explode({items}) AS {name}"

    def each_range(self, ranges: str, names: tuple[str, str, str]) -> str:
        key, low, high = names
        columns = f"struct(each.key AS {key}, each.value.low AS {low}, each.value.high AS {high})"
        entries = f"transform(map_entries({ranges}), each -> {columns})"
        return f" LATERAL VIEW OUTER inline({entries}) AS {key}, {low}, {high}"

    def quotient(self, number: str, by: int) -> str:
        return f"({number}) DIV {by}"


def _in_variant(value: str, path: str, steps: list[tuple[str, bool]], kind: str, test: Test, depth: int) -> str:
    """A test of values at a path in a VARIANT, arrays element by element."""
    if not steps:
        return test(f"try_variant_get({value}, '{path}', '{kind}')")
    (name, is_array), *rest = steps
    inner = f"{path}.{name}"
    if not is_array:
        return _in_variant(value, inner, rest, kind, test, depth)
    each = f"each{depth}"
    condition = _in_variant(each, "$", rest, kind, test, depth + 1)
    return f"coalesce(exists(try_variant_get({value}, '{inner}', 'array<variant>'), {each} -> {condition}), FALSE)"


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
