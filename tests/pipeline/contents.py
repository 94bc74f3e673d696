"""What tables hold, whatever files their rows lie in and in whatever order: of `captures`, and of rows that count."""

import hashlib
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from dissector.exchange.silence_causes import SILENCE_CAUSES, UNANSWERED_CODE
from dissector.tables.file_systems import normal_uri, opened
from dissector.tables.schemas import BY_NAME
from dissector.tables.snapshot import Snapshot, snapshot

OF_RUNS = ("epoch", "path", "nth")
"""Columns that describe the run, and not the capture: a finding has no place in its row if it was made later."""
Rows = list[dict[str, Any]]


def contents(folder: Path | str) -> dict[str, tuple[int, str]]:
    """By table: how many rows, and a hash of them."""
    return {name: _hashed(rows) for name, rows in rows_that_count(folder).items()}


def rows_that_count(folder: Path | str) -> dict[str, Rows]:
    """The rows of all tables, by table."""
    seen = snapshot(normal_uri(str(folder)))
    return {} if seen is None else {name: _of_table(seen, name) for name in BY_NAME}


def _of_table(seen: Snapshot, name: str) -> Rows:
    if name == "captures":
        return seen.captures
    live = {(row["capture"], row["epoch"]) for row in seen.captures}
    rows = [row for uri in seen.files[name] for row in _read(uri)]
    rows = [row for row in rows if (row["capture"], row["epoch"]) in live]
    return current_findings(rows) if name == "findings" else rows


def _read(uri: str) -> Rows:
    files, path = opened(uri)
    with pq.ParquetFile(path, filesystem=files) as file:
        rows: Rows = file.read().to_pylist()
    return rows


def current_findings(findings: Rows) -> Rows:
    """Findings that no later row replaces, and that no other of their row says better, as if they had been found at
    once."""
    of_row = ("capture", "packet", "start")
    key = (*of_row, "code", "path")
    replaced = {(*(row[name] for name in key), row.get("replaces")) for row in findings}
    explained = {tuple(row[name] for name in of_row) for row in findings if row["code"] in SILENCE_CAUSES}
    return [
        row | {"replaces": None} for row in findings
        if (*(row[name] for name in key), row["message"]) not in replaced
        and not (row["code"] == UNANSWERED_CODE and tuple(row[name] for name in of_row) in explained)
    ]  # fmt: skip


def _hashed(rows: Rows) -> tuple[int, str]:
    return len(rows), hashlib.sha256("\n".join(lines(rows)).encode("utf-8", "surrogateescape")).hexdigest()


def lines(rows: Rows) -> list[str]:
    """Rows as text, in the order of the text."""
    return sorted(repr([(name, row[name]) for name in sorted(row) if name not in OF_RUNS]) for row in rows)
