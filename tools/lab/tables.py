"""The tables that `kdissect ingest` writes, column by column, as a page: ``docs/tables.md``.

`python -m tools.lab.tables` writes it; a test holds it equal to what the pipeline has now.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from dissector.pipeline.tables import PARTITIONS, TABLES, Column

PAGE: Final = Path(__file__).parents[2] / "docs" / "tables.md"
_HEAD: Final = """# Tables

What `kdissect ingest CAPTURES --out DIR` writes: a folder a table, of Parquet. All but `captures` have these two
columns first, as folders: `day=2026-11-21/capture=4eee41ea8eea1218`.
"""


def page() -> str:
    """All of it."""
    parts = [_HEAD, *_columns(PARTITIONS)]
    for table in TABLES:
        parts += [f"\n## {table.name}\n", f"{table.words[0].upper()}{table.words[1:]}.\n", *_columns(table.columns)]
    return "".join(f"{part}\n" for part in parts)


def _columns(columns: Iterable[Column]) -> Iterator[str]:
    yield "| column | type | |"
    yield "|---|---|---|"
    for column in columns:
        yield f"| `{column.name}` | `{column.type}` | {column.words} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
