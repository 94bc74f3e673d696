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


def page() -> str:
    """All of it."""
    parts = [_HEAD, *_columns(KEYS)]
    for table in TABLES:
        parts += [f"\n## {table.name}\n", f"{table.words}.\n", *_columns(table.columns)]
    parts += ["", _VIEWS, "| view | answers |", "|---|---|"]
    parts += [f"| `{question.name}` | {question.words} |" for question in questions()]
    return "".join(f"{part}\n" for part in parts)


def _columns(columns: Iterable[TableColumn]) -> Iterator[str]:
    yield "| column | type | |"
    yield "|---|---|---|"
    for column in columns:
        yield f"| `{column.name}` | `{column.type}` | {column.words} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
