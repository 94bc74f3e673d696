"""What tables hold, whatever files their rows lie in and in whatever order."""

import hashlib
from pathlib import Path

import pyarrow.dataset as ds

OF_RUNS = ("run", "path")
"""Columns of `captures` that describe the run, and not the capture."""


def contents(folder: Path) -> dict[str, tuple[int, str]]:
    """By table: how many rows, and a hash of them."""
    return {each.name: _of_table(each) for each in sorted(folder.iterdir())}


def _of_table(folder: Path) -> tuple[int, str]:
    table = ds.dataset(folder, partitioning="hive").to_table()
    names = [name for name in sorted(table.column_names) if name not in OF_RUNS]
    rows = sorted(repr(row) for row in table.select(names).to_pylist())
    return len(rows), hashlib.sha256("\n".join(rows).encode("utf-8", "surrogateescape")).hexdigest()
