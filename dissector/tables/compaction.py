"""Small files of a table become large ones: when a user asks, and by an ingest where there are many.

Whoever opens a table reads the names of its files, and of `captures` the files: without this, each small capture would
make all later ingests slower.

Invariant: rows and their values stay as they are. What others commit meanwhile makes a compaction fail, and no commit
of theirs.
"""

from collections.abc import Iterable
from contextlib import suppress

from deltalake import ColumnProperties, WriterProperties
from deltalake.exceptions import CommitFailedError

from dissector.tables.delta_log import SMALL_BYTES, existing_table, file_paths, is_crowded, plain_errors
from dissector.tables.row_batches import RISING
from dissector.tables.schemas import BY_NAME, KEYS


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
