"""Delta's log of each table, written by the process that drives an ingest. No JVM is needed, and no lock.

Facts are appended first, then `captures`, which makes them count: a process that is killed between leaves rows of an
epoch that no capture has. The library now and then refuses an append beside a deletion, though it reads nothing: it
is tried again. A commit to `captures` depends on what is there, so any other commit to it makes this one fail; then it
looks again and decides again.

Invariants:
  * files are committed only if they are there, with the sizes that were reported;
  * a capture has one row in `captures`, however many ingests of it run at a time;
  * what is removed from `captures` counts no longer, whether or not its facts are removed already;
  * facts are removed by the epoch that wrote them: of the same capture others may be written meanwhile.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC
from functools import lru_cache, partial
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction
from deltalake.writer import write_deltalake

from dissector.core.text import clean
from dissector.tables.arrow_types import all_columns, arrow_schema, column
from dissector.tables.commit_probe import loses_commits
from dissector.tables.data_files import DataFile
from dissector.tables.evolution import add_columns, whole_schema
from dissector.tables.file_systems import ERRORS, LOCAL, delta_options, delta_uri, opened, reason
from dissector.tables.retries import tries
from dissector.tables.schemas import BY_NAME, FACT_TABLES
from dissector.tables.storage import StorageError

CAPTURES: Final = "captures"
_ALONE: Final = CommitProperties(max_commit_retries=0)
"""For a commit that any other commit makes wrong: the library would retry it, and it would land."""
_OUTSIDE: Final = re.compile(r"^/|(?:^|/)\.\.(?:/|$)|^[A-Za-z][A-Za-z0-9+.-]*:|[\\\0]")
"""In a path of a log: it leads out of the table's folder."""
_OFTEN: Final = {"delta.checkpointInterval": "10"}
"""Commits between checkpoints: who opens a table reads those after the last one, each for half a millisecond."""
MOST_SMALL: Final = 32
"""Small files of a table that an ingest leaves as they are."""
SMALL_BYTES: Final = 16 << 20
"""Larger files are not small for an ingest: else each would rewrite all rows now and then."""
_TOGETHER: Final = 200
"""Captures whose facts are removed by one condition."""
_ABSENT: Final[dict[pa.DataType, object]] = {pa.string(): "", pa.int64(): 0}
"""What says nothing, by the type of a column of `captures`, in place of what an earlier version did not write. Columns
of these types are plain."""
_OTHERWISE: Final = {"form": "unread"}
"""The same by name."""
_MERGED: Final = "merged_with"
_READERS: Final = 8
"""Files that are read at a time."""
_FILES_KEPT: Final = 64
"""Files of `captures` whose rows are kept, as a run reads `captures` three times: nobody changes a file of a table."""
Row = dict[str, Any]
Result = TypeVar("Result")
Decide = Callable[[Sequence[Row]], Sequence[Row]]
"""Gets the rows of `captures`; returns those to be put there, in place of rows of the same captures."""


def delta_table(uri: str, name: str) -> DeltaTable | None:
    """Return a table of a storage; None if it does not exist. Raises `StorageError`."""
    with plain_errors(uri):
        try:
            return existing_table(uri, name)
        except TableNotFoundError:
            return None


def existing_table(uri: str, name: str) -> DeltaTable:
    """Return a table of a storage. Raises `TableNotFoundError`, one of `ERRORS`, and `StorageError` for one whose log
    is damaged, or names files outside of it: they would be read, or removed."""
    shown = f"{uri.removeprefix(LOCAL)}/{name}"
    try:
        table = DeltaTable(delta_uri(f"{uri}/{name}"), storage_options=delta_options(uri))
        paths = file_paths(table)
    except TableNotFoundError:
        raise
    except DeltaError as error:
        raise StorageError(f"{shown}: its log cannot be read: {reason(error)}") from None
    for path in paths:
        if _OUTSIDE.search(path):
            raise StorageError(f"{shown}: its log names a file outside the folder: {clean(path)}")
    return table


@contextmanager
def plain_errors(uri: str) -> Iterator[None]:
    """Turn errors of the storage into a `StorageError`, whose text is one line."""
    try:
        yield
    except (DeltaError, *ERRORS) as error:
        raise StorageError(f"{uri}: {reason(error)}") from None


def create_tables(uri: str) -> dict[str, list[str]]:
    """Create the tables that do not exist yet, and add the columns that others lack; return which, by table. Raises
    `StorageError`, also for tables that can't be read, and for a store that loses commits."""
    with plain_errors(uri):
        if not uri.startswith(LOCAL) and delta_table(uri, CAPTURES) is None and loses_commits(uri):
            raise StorageError(
                f"{uri}: this store ignores If-None-Match: if two ingests committed at once, rows of one would be lost"
            )
        found = {name: delta_table(uri, name) for name in BY_NAME}
        for name, table in found.items():
            if table is not None:
                whole_schema(uri, name, table)
        return {
            name: until_committed(f"{uri}/{name}", partial(_completed, uri, name, table))
            for name, table in found.items()
        }


def _completed(uri: str, name: str, table: DeltaTable | None) -> list[str]:
    """Create a table, or add the columns that it lacks; return those."""
    schema = arrow_schema(BY_NAME[name])
    if table is None:
        DeltaTable.create(
            delta_uri(f"{uri}/{name}"), schema, mode="ignore", configuration=_OFTEN, storage_options=delta_options(uri)
        )
        return list(schema.names)
    table.update_incremental()
    if not _OFTEN.keys() & table.metadata().configuration.keys():
        table.alter.set_table_properties(dict(_OFTEN))
    return add_columns(name, table)


def append_facts(uri: str, files: Iterable[DataFile], transaction: tuple[str, int] | None = None) -> list[str]:
    """Append data files to the tables of facts; return which have many small files now. With a `transaction`, an id and
    a version that rises, files are appended once, however often it is tried. Raises `StorageError`."""
    by_table: dict[str, list[DataFile]] = {name: [] for name in FACT_TABLES}
    for file in files:
        by_table[file.table].append(file)
    with plain_errors(uri):
        _check_files(uri, [file for of_table in by_table.values() for file in of_table])
        return [name for name, mine in by_table.items() if mine and _append(uri, name, mine, transaction)]


def _check_files(uri: str, files: list[DataFile]) -> None:
    """Raise `StorageError` unless all files are there with the sizes that their writers reported: Delta's log takes any
    file, and every reader of the table would fail on it."""
    storage, top = opened(uri)
    for file, found in zip(files, storage.get_file_info([f"{top}/{file.path}" for file in files]), strict=True):
        if problem := size_problem(found, file.size):
            raise StorageError(f"{uri.removeprefix(LOCAL)}/{file.path}: {problem}: nothing was committed")


def size_problem(found: pa.fs.FileInfo, size: int) -> str:
    """Return what is wrong with a file that has to have `size` bytes; nothing if it has."""
    if found.type != pa.fs.FileType.File:
        return "the file is missing"
    return "" if found.size == size else f"{found.size:,} bytes instead of {size:,}"


def until_committed(uri: str, commit: Callable[[], Result]) -> Result:
    """Try a commit to the table at a URI again while others commit. Raises `StorageError` if they do not end."""
    for _ in tries(uri):
        with suppress(CommitFailedError):
            found = commit()
            break
    return found


def is_crowded(table: DeltaTable, more: int = 0) -> bool:
    """Return whether a table has many small files, or will have with some more."""
    sizes: list[int] = add_actions(table).column("size_bytes").to_pylist()
    return sum(size < SMALL_BYTES for size in sizes) + more > MOST_SMALL


def _append(uri: str, name: str, files: list[DataFile], transaction: tuple[str, int] | None) -> bool:
    properties = None if transaction is None else CommitProperties(app_transactions=[Transaction(*transaction)])
    actions: list[AddAction | RemoveAction] = [_added(file) for file in files]

    def append() -> bool:
        table = existing_table(uri, name)
        if transaction is None or _committed_version(table, transaction[0]) < transaction[1]:
            schema = arrow_schema(BY_NAME[name])
            table.create_write_transaction(actions, "append", schema, commit_properties=properties)
        return is_crowded(table, len(files))

    return until_committed(f"{uri}/{name}", append)


def _committed_version(table: DeltaTable, application: str) -> int:
    """Return the last version that an application committed; -1 if there is none. The library itself does not refuse a
    version that is there already."""
    version = table.transaction_version(application)
    return -1 if version is None else version


def _added(file: DataFile) -> AddAction:
    path = file.path.removeprefix(f"{file.table}/")
    return AddAction(path, file.size, {}, time.time_ns() // 1_000_000, True, file.statistics)


def put_captures(uri: str, decide: Decide) -> list[Row]:
    """Put the rows into `captures` that `decide` returns, which may be called more than once, in place of those of the
    same captures or contents. Return them. Facts of captures that they replace are removed. Raises `StorageError`."""
    for _ in tries(f"{uri}/{CAPTURES}"):
        table = existing_table(uri, CAPTURES)
        before = captures_in(uri, table)
        rows = list(decide(before))
        digests = {digest for row in rows for digest in digests_of(row)}
        replaced = [each for each in before if not digests.isdisjoint((each["digest"], each["contents"]))]
        if not rows or _write_captures(uri, table, rows, replaced):
            break
    remove_facts(uri, replaced)
    return rows


def digests_of(capture: Row) -> list[str]:
    """Return the digests by which a row of `captures` is known: of the file's bytes and, if it has one, of its
    contents."""
    return [digest for digest in (capture["digest"], capture.get("contents")) if digest]


def remove_facts(uri: str, captures: Iterable[Row]) -> None:
    """Remove the facts of captures, each as one ingest wrote it. Raises `StorageError`."""
    rows = list(captures)
    for first in range(0, len(rows), _TOGETHER):
        some = (f"(capture = '{row['capture']}' AND epoch = {row['epoch']})" for row in rows[first : first + _TOGETHER])
        _remove_facts(uri, " OR ".join(some))


def _write_captures(uri: str, table: DeltaTable, rows: Sequence[Row], replaced: Sequence[Row]) -> bool:
    """Write rows of `captures`, in place of others; return whether nobody else wrote meanwhile."""
    schema = arrow_schema(BY_NAME[CAPTURES])
    columns = all_columns(schema, lambda field: column([row.get(field.name) for row in rows], field.type))
    data = pa.Table.from_arrays(columns, schema=schema)
    with plain_errors(uri):
        try:
            if replaced:
                listed = ", ".join(sorted({f"'{row['capture']}'" for row in (*rows, *replaced)}))
                where = f"capture IN ({listed})"
                write_deltalake(
                    table, data, mode="overwrite", predicate=where, schema_mode="merge", commit_properties=_ALONE
                )
            else:
                write_deltalake(table, data, mode="append", schema_mode="merge", commit_properties=_ALONE)
        except CommitFailedError:
            return False
    return True


def remove_captures(uri: str, captures: Iterable[str]) -> int:
    """Remove captures and their facts; return how many were there. Raises `StorageError`."""
    names = set(captures)
    listed = ", ".join(f"'{each}'" for each in names)

    def remove() -> list[Row]:
        table = existing_table(uri, CAPTURES)
        found = [row for row in captures_in(uri, table) if row["capture"] in names]
        if found:
            table.delete(f"capture IN ({listed})", commit_properties=_ALONE)
        return found

    create_tables(uri)
    with plain_errors(uri):
        removed = until_committed(f"{uri}/{CAPTURES}", remove)
    # Of these epochs only: an ingest of the same capture may be at work.
    remove_facts(uri, removed)
    return len(removed)


def _remove_facts(uri: str, condition: str) -> None:
    """Delete rows. What others commit meanwhile, a compaction for one, is looked at again."""
    with plain_errors(uri):
        for name in FACT_TABLES:
            until_committed(f"{uri}/{name}", partial(_delete, uri, name, condition))


def _delete(uri: str, name: str, condition: str) -> None:
    existing_table(uri, name).delete(condition, commit_properties=_ALONE)


def captures_in(uri: str, table: DeltaTable, *, whole: bool = False) -> list[Row]:
    """Return the rows of `captures` in a version of the table: the cells that are texts or integers, or `whole`.
    pyarrow reads the files by itself: as a data set of the library, now and then it ends the process with an abort.
    Raises `StorageError`."""
    read = partial(_captures_of_file, whole=True) if whole else _kept_captures_of_file
    try:
        with ThreadPoolExecutor(_READERS) as pool:
            paths = [f"{uri}/{CAPTURES}/{path}" for path in file_paths(table)]
            return [row for rows in pool.map(read, paths) for row in rows]
    except ERRORS as error:
        raise StorageError(f"{uri.removeprefix(LOCAL)}/{CAPTURES}: cannot be read: {reason(error)}") from None


def _captures_of_file(uri: str, *, whole: bool = False) -> list[Row]:
    absent = {
        field.name: _OTHERWISE.get(field.name, _ABSENT.get(field.type))
        for field in arrow_schema(BY_NAME[CAPTURES])
        if whole or field.type in _ABSENT
    }
    files, path = opened(uri)
    with pq.ParquetFile(path, filesystem=files) as file:
        found = file.read([name for name in absent if name in file.schema_arrow.names])
    cells = [_cells(found, name, otherwise) for name, otherwise in absent.items()]
    return [dict(zip(absent, row, strict=True)) for row in zip(*cells, strict=True)]


_kept_captures_of_file = lru_cache(_FILES_KEPT)(_captures_of_file)


def _cells(rows: pa.Table, name: str, otherwise: object) -> list[Any]:
    """Return a column of `captures`, by columns as there may be many rows; what is null in it, or all if the files do
    not have it, is `otherwise`. A capture is merged with itself if with no other."""
    if name not in rows.column_names:
        return rows["capture"].to_pylist() if name == _MERGED else [otherwise] * len(rows)
    if pa.types.is_timestamp(kind := rows[name].type):  # pyarrow imports pandas for those of a zone
        naive = (chunk.view(pa.timestamp(kind.unit)).to_pylist() for chunk in rows[name].chunks)
        return [otherwise if cell is None else cell.replace(tzinfo=UTC) for cells in naive for cell in cells]
    cells: list[Any] = rows[name].to_pylist()
    if not rows[name].null_count:
        return cells
    others = rows["capture"].to_pylist() if name == _MERGED else [otherwise] * len(cells)
    return [other if cell is None else cell for cell, other in zip(cells, others, strict=True)]


def live_captures(uri: str) -> list[Row]:
    """Return the rows of `captures`, without lists and times; none if there are no tables. Raises `StorageError`."""
    table = delta_table(uri, CAPTURES)
    return [] if table is None else captures_in(uri, table)


def remove_epoch(uri: str, epoch: int) -> None:
    """Remove the facts of an ingest that was killed, unless it came as far as `captures`."""
    captures = delta_table(uri, CAPTURES)
    if captures is not None and all(row["epoch"] != epoch for row in captures_in(uri, captures)):
        _remove_facts(uri, f"epoch = {epoch}")


def add_actions(table: DeltaTable) -> pa.Table:
    """Return what the log says of a table's files. `pyarrow.table` would import pandas, to ask whether it is its."""
    return pa.RecordBatchReader.from_stream(table.get_add_actions()).read_all()


def file_paths(table: DeltaTable) -> list[str]:
    """Return the paths of a table's files, relative to it. The library's URIs have escapes, which not all readers
    undo."""
    paths: list[str] = add_actions(table).column("path").to_pylist()
    return sorted(paths)
