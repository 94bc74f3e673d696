"""The tables that `kdissect ingest` writes, column by column, as a page: ``docs/tables.md``.

`python -m tools.lab.tables` writes it; a test holds it equal to what the pipeline has now.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from dissector.tables.schemas import KEYS, TABLES, TableColumn
from dissector.tables.views import questions

PAGE: Final = Path(__file__).parents[2] / "docs" / "tables.md"
_HEAD: Final = """# Tables

`kdissect ingest CAPTURES --out DIR` writes these tables of Delta Lake, each a folder. All begin with three columns. A
row is valid if `captures` has its `capture` with the same `epoch`.
"""
_VIEWS: Final = """## Views

`kdissect tables views DIR` prints SQL, for DuckDB or Spark, that defines a view for each table above, with its valid
rows, and these views:
"""


_EVOLUTION: Final = """## Tables of other versions, and your own columns

Columns are found by name, in any order:

- If the tables of an earlier version lack a column, it is null in their rows. Every command that writes to them adds it
(`ingest`, `forget`, `compact`, `vacuum`); `kdissect tables upgrade DIR` does only that, and lists the columns that it
adds. `replace` fills the column, because it reads the captures again. - Columns that you add (with `ALTER TABLE … ADD
COLUMN site STRING`, or with any other writer of Delta Lake) are kept. Commands ignore them, new rows have nulls in
them, and rows that `compact`, `forget` or `replace` do not change keep their values. Views include your columns of
simple types. - A table in which a column of this page has another type is rejected with one line: ingest the captures
into another folder. A table that a later version wrote is read like one with your own columns.
"""


def page() -> str:
    """All of it."""
    parts = [_HEAD, *_columns(KEYS)]
    for table in TABLES:
        parts += [f"\n## {table.name}\n", f"{table.words}.\n", *_columns(table.columns)]
    parts += ["", _VIEWS, "| view | answers |", "|---|---|"]
    parts += [f"| `{question.name}` | {question.words} |" for question in questions()]
    parts += ["", _EVOLUTION.rstrip()]
    return "".join(f"{part}\n" for part in parts)


def _columns(columns: Iterable[TableColumn]) -> Iterator[str]:
    yield "| column | type | |"
    yield "|---|---|---|"
    for column in columns:
        yield f"| `{column.name}` | `{column.type}` | {column.words} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
