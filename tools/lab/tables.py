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
rows, and these:
"""


_EVOLUTION: Final = """## Tables of other versions, and columns of yours

Columns are found by name, wherever they stand:

- A column that tables of an earlier version lack is null in their rows. What writes to them adds it: an ingest,
  `forget`, `compact`, `vacuum`; `kdissect tables upgrade DIR` does nothing else, and says which it adds. `replace`
  fills it, as it reads the captures again.
- Columns that you add (`ALTER TABLE … ADD COLUMN site STRING`, or any other writer of Delta Lake) stay. Commands read
  around them, new rows have nulls there, and rows that `compact`, `forget` or `replace` leave as they are keep their
  values. Views have those of a plain type.
- A table is refused, in one line, if a column of this page has another type there: ingest the captures into another
  folder. A table written by a later version is read like one with columns of yours.
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
