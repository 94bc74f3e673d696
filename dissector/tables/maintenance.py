"""What people do with tables once they are there: compact, clean up. An ingest compacts, too, where a table has
many small files: whoever opens it reads their names, and of `captures` the files, so that without this each small
capture would make all later ingests slower.

Invariant: readers and ingests go on meanwhile: what they commit makes a compaction fail, and no commit of theirs. What
is removed from the log stays on the disk until `vacuum`, for those who began to read before.
"""

from collections.abc import Iterable
from contextlib import suppress
from functools import partial

import pyarrow as pa
import pyarrow.fs
from deltalake import ColumnProperties, WriterProperties
from deltalake.exceptions import CommitFailedError

from dissector.tables.delta_log import (
    SMALL_BYTES,
    create_tables,
    delta_table,
    existing_table,
    file_paths,
    is_crowded,
    plain_errors,
    until_committed,
)
from dissector.tables.file_systems import opened
from dissector.tables.row_batches import RISING
from dissector.tables.schemas import BY_NAME, KEYS


def compact(uri: str) -> dict[str, tuple[int, int]]:
    """Rewrite small files of each table as large ones. Return the number of files before and after, by table."""
    create_tables(uri)
    return {name: until_committed(f"{uri}/{name}", partial(compacted, uri, name)) for name in BY_NAME}


def vacuum(uri: str, hours: int, *, dry_run: bool = False) -> int:
    """Remove files that no table has, and that are older than so many hours. Return how many; with `dry_run`, of those
    that are there now, and nothing is written."""
    if not dry_run:
        create_tables(uri)
    return sum(_vacuum(uri, name, hours, dry_run=dry_run) for name in BY_NAME)


def _vacuum(uri: str, name: str, hours: int, *, dry_run: bool) -> int:
    """Vacuum a table. The library also names files that it has removed before, as long as the log has them."""
    table = delta_table(uri, name)
    if table is None:
        return 0
    remove = partial(table.vacuum, hours, enforce_retention_duration=False, full=True)
    storage, top = opened(f"{uri}/{name}")
    found = storage.get_file_info([f"{top}/{path}" for path in remove(dry_run=True)])
    there: int = sum(each.type == pa.fs.FileType.File for each in found)
    if there and not dry_run:
        remove(dry_run=False)
    return there


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
