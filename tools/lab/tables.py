"""The tables that `kdissect ingest` writes, column by column, as a page: ``docs/tables.md``.

`python -m tools.lab.tables` writes it; a test holds it equal to what the pipeline has now.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from dissector.pipeline.table_schemas import PARTITIONS, TABLES, TableColumn

PAGE: Final = Path(__file__).parents[2] / "docs" / "tables.md"
_HEAD: Final = """# Tables

`kdissect ingest CAPTURES --out DIR` writes these tables: one folder of Parquet files each. All but `captures` are
partitioned by two columns, which are folders: `day=2026-11-21/capture=4eee41ea8eea1218`.
"""


def page() -> str:
    """All of it."""
    parts = [_HEAD, *_columns(PARTITIONS)]
    for table in TABLES:
        parts += [f"\n## {table.name}\n", f"{table.words}.\n", *_columns(table.columns)]
    return "".join(f"{part}\n" for part in parts)


def _columns(columns: Iterable[TableColumn]) -> Iterator[str]:
    yield "| column | type | |"
    yield "|---|---|---|"
    for column in columns:
        yield f"| `{column.name}` | `{column.type}` | {column.words} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
