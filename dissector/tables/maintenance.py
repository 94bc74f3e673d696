"""What people do with tables once they are there: compact, clean up, check. An ingest compacts, too, where a table has
many small files: whoever opens it reads their names, and of `captures` the files, so that without this each small
capture would make all later ingests slower.

Invariant: readers and ingests go on meanwhile: what they commit makes a compaction fail, and no commit of theirs. What
is removed from the log stays on the disk until `vacuum`, for those who began to read before.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import ColumnProperties, DeltaTable, WriterProperties
from deltalake.exceptions import CommitFailedError

from dissector.core.text import counted
from dissector.tables.delta_log import (
    SMALL_BYTES,
    add_actions,
    create_tables,
    delta_table,
    existing_table,
    file_paths,
    is_crowded,
    plain_errors,
    size_problem,
    until_committed,
)
from dissector.tables.file_systems import opened
from dissector.tables.row_batches import RISING
from dissector.tables.schemas import BY_NAME, FACT_TABLES, KEYS, ROW_KEY
from dissector.tables.snapshot import Snapshot


def compact(uri: str) -> dict[str, tuple[int, int]]:
    """Rewrite small files of each table as large ones. Return the number of files before and after, by table."""
    create_tables(uri)
    return {name: until_committed(f"{uri}/{name}", partial(compacted, uri, name)) for name in BY_NAME}


def vacuum(uri: str, hours: int) -> int:
    """Remove files that no table has, and that are older than so many hours. Return how many."""
    create_tables(uri)
    tables = (existing_table(uri, name) for name in BY_NAME)
    return sum(
        len(each.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True)) for each in tables
    )  # fmt: skip


def problems(uri: str, seen: Snapshot) -> Iterator[str]:
    """Yield what is wrong with the tables, each in one line: files that are missing or cut, rows without the others
    that belong to them. Rows that do not count are no problem, but are told."""
    live = {(row["capture"], row["epoch"]) for row in seen.captures}
    keys: dict[str, Counter[tuple[Any, ...]]] = {}
    for name in FACT_TABLES:
        table = delta_table(uri, name)
        if table is None:
            yield f"{name}: the table is missing: of tables of an earlier version, kdissect tables upgrade adds it"
            continue
        keys[name] = Counter()
        for words in _file_problems(uri, name, table):
            yield f"{name}: {words}"
        dead = 0
        for row in _keys(uri, name, table):
            if row[:2] in live:
                keys[name][row] += 1
            else:
                dead += 1
        if dead:
            yield f"{name}: {counted(dead, 'row')} of captures that are not there: a killed ingest left them"
    yield from _unmatched(keys)


def _file_problems(uri: str, name: str, table: DeltaTable) -> Iterator[str]:
    """Yield what is wrong with files, by their sizes and their ends."""
    files, top = opened(f"{uri}/{name}")
    actions = add_actions(table)
    for path, size, rows in zip(
        *(actions.column(each).to_pylist() for each in ("path", "size_bytes", "num_records")), strict=True
    ):
        if problem := size_problem(files.get_file_info(f"{top}/{path}"), size):
            yield f"{path}: {problem}"
        else:
            try:
                found = pq.read_metadata(f"{top}/{path}", filesystem=files).num_rows
            except (OSError, pa.ArrowInvalid) as error:
                yield f"{path}: {str(error).splitlines()[0]}"
                continue
            if found != rows:
                yield f"{path}: {counted(found, 'row')} instead of {rows:,}"


def _keys(uri: str, name: str, table: DeltaTable) -> Iterator[tuple[Any, ...]]:
    """Yield capture, epoch and key of each row of the files that can be read."""
    files, top = opened(f"{uri}/{name}")
    columns = ["capture", "epoch", *(key for key in ROW_KEY[1:] if name not in ("connections", "quarantine"))]
    for path in add_actions(table).column("path").to_pylist():
        try:
            with pq.ParquetFile(f"{top}/{path}", filesystem=files) as file:
                for batch in file.iter_batches(columns=columns):
                    yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
        except (OSError, pa.ArrowInvalid):
            continue


def _unmatched(keys: dict[str, Counter[tuple[Any, ...]]]) -> Iterator[str]:
    """Yield which rows do not go with those of `exchanges`."""
    exchanges = keys.get("exchanges", Counter())
    twice = sum(count > 1 for count in exchanges.values())
    if twice:
        yield f"exchanges: {counted(twice, 'row')} more than once"
    if keys.get("bodies", Counter()) != exchanges:
        yield "bodies: not one for each row of exchanges"
    for name in ("records", "findings", "gaps"):
        lost = sum(key not in exchanges for key in keys.get(name, ()))
        if lost:
            yield f"{name}: {counted(lost, 'row')} of no row of exchanges"


def compacted(uri: str, name: str, target: int | None = None) -> tuple[int, int]:
    """Rewrite files of a table that are smaller than `target` bytes (None: the library's default) as large ones. Return
    the number of files before and after. Raises `DeltaError`."""
    table = existing_table(uri, name)
    before = len(file_paths(table))
    table.optimize.compact(target_size=target, writer_properties=_as_written(name))
    return before, len(file_paths(table))


def compact_crowded(uri: str, names: Iterable[str]) -> None:
    """Compact those of these tables that have many small files, unless others write to them. Raises `StorageError`."""
    with plain_errors(uri):
        for name in names:
            if is_crowded(existing_table(uri, name)):
                with suppress(CommitFailedError):
                    compacted(uri, name, SMALL_BYTES)


def _as_written(name: str) -> WriterProperties:
    """Return how numbers that rise are written, as by `data_files`: the library would make dictionaries of them."""
    rising = ColumnProperties(dictionary_enabled=False, encoding="DELTA_BINARY_PACKED")
    columns = (each.name for each in (*KEYS, *BY_NAME[name].columns))
    return WriterProperties(compression="ZSTD", column_properties={each: rising for each in columns if each in RISING})
