"""Writes rows to Parquet files, in the task that produces them: those of tables where they stay, others for the run.

So no row passes through the JVM. A task that is tried again writes other files: only the files count that are in the
log of their table, and those are of tasks that succeeded.
"""

import uuid
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from dissector.core.process_memory import infrequent_collection
from dissector.tables.file_statistics import FileStatistics
from dissector.tables.file_systems import create_folder, opened
from dissector.tables.row_batches import LONG, RISING, Cells, RowBatches, RowGroup, TableRow
from dissector.tables.schemas import BY_NAME, OBSERVATIONS, TableSchema

TALLIES: Final = "tallies"
"""In place of a table's name: the row is the tally of what a partition ignored."""

VALUES_TOGETHER: Final = 1 << 14
"""Values of a column that are encoded before the size of a page is looked at."""
PAGE_BYTES: Final = 4 << 20
"""Larger than a library's default: what lies in one page is compressed together."""


class DataFile(NamedTuple):
    """A file with rows of a table."""

    table: str
    path: str
    """Relative to the storage."""
    rows: int
    size: int
    """Bytes."""
    statistics: str
    """As JSON, for the log."""
    tally: bytes | None = None
    """The tally of what a partition ignored, in place of a file."""

    @property
    def batch(self) -> pa.RecordBatch:
        """The file as a row for Spark, of `DATA_FILE_TYPES`."""
        return pa.RecordBatch.from_pylist([self._asdict()], _ARROW)


DATA_FILE_TYPES: Final = "table STRING, path STRING, rows BIGINT, size BIGINT, statistics STRING, tally BINARY"
"""Spark's types of a data file."""
_ARROW: Final = pa.schema([
    ("table", pa.string()), ("path", pa.string()), ("rows", pa.int64()), ("size", pa.int64()),
    ("statistics", pa.string()), ("tally", pa.binary()),
])  # fmt: skip


class Output(NamedTuple):
    """Where an ingest writes."""

    uri: str
    """The storage."""
    folder: str
    """For its own files, relative to the storage."""
    epoch: int
    """With which the names of its data files begin, so that those of a killed ingest can be recognized."""


def write_rows(rows: Iterable[TableRow], output: Output) -> Iterator[DataFile]:
    """Write rows of tables to files in a storage, observations to the ingest's own folder. Yield tallies as they come,
    and all files at the end."""
    with infrequent_collection(), _DataFiles(output) as files:
        for name, row in rows:
            if name == TALLIES:
                assert isinstance(row, dict)
                yield DataFile(name, "", 0, 0, "", row["tally"])
            elif not isinstance(row, pa.Table) or row.num_rows:  # Parquet has no row groups of no rows
                files.of(name).add(row)
    yield from files.closed


class _DataFiles:
    """The files of one task, one for each table."""

    def __init__(self, output: Output) -> None:
        self.closed: list[DataFile] = []
        self._files, self._top = opened(output.uri)
        self._output = output
        self._open: dict[str, _DataFileWriter] = {}

    def __enter__(self) -> "_DataFiles":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for writer in self._open.values():
            self.closed.append(writer.close(is_complete=kind is None))

    def of(self, name: str) -> "_DataFileWriter":
        """Return the writer for the rows of a table."""
        writer = self._open.get(name)
        return writer if writer is not None else self._opened(name)

    def _opened(self, name: str) -> "_DataFileWriter":
        is_staged = name == OBSERVATIONS.name
        folder = f"{self._output.folder}/{name}" if is_staged else name
        create_folder(self._files, f"{self._top}/{folder}")
        path = f"{folder}/{self._output.epoch}-{uuid.uuid4().hex}.parquet"
        file = self._files.open_output_stream(f"{self._top}/{path}")
        self._open[name] = writer = _DataFileWriter(OBSERVATIONS if is_staged else BY_NAME[name], path, file)
        return writer


class _DataFileWriter:
    """Writes one file. Files of tables are compressed well; those that are read once and removed, fast."""

    def __init__(self, table: TableSchema, path: str, file: pa.NativeFile) -> None:
        self._table = table.name
        self._path = path
        self._count = 0
        self._file = file
        self._statistics = FileStatistics()
        self._rows = RowBatches(table, self._write)
        self._writer = _parquet_writer(file, self._rows.schema, is_kept=table.name != OBSERVATIONS.name)

    def add(self, row: Cells | RowGroup | pa.Table) -> None:
        """Add one row, a group, or a table with all columns."""
        self._rows.add(row)

    def close(self, *, is_complete: bool) -> DataFile:
        """Finish the file. If it is not complete, rows that are not written yet are dropped."""
        with self._file:
            if is_complete:
                self._rows.finish()
            self._writer.close()
            size = self._file.tell()
        return DataFile(self._table, self._path, self._count, size, self._statistics.json())

    def _write(self, rows: pa.Table) -> None:
        self._writer.write_table(rows, row_group_size=len(rows))
        self._statistics.add(rows)
        self._count += len(rows)


def _parquet_writer(file: pa.NativeFile, schema: pa.Schema, *, is_kept: bool) -> pq.ParquetWriter:
    """Return a writer of tables of a schema."""
    if not is_kept:
        return pq.ParquetWriter(file, schema, compression="lz4", use_dictionary=False, store_schema=False)
    leaves = [path for field in schema for path in _leaves(field)]
    return pq.ParquetWriter(
        file, schema, compression="zstd", use_dictionary=[each for each in leaves if each not in LONG | RISING],
        column_encoding={each: "DELTA_BINARY_PACKED" for each in leaves if each in RISING},
        write_statistics=[each for each in leaves if each not in LONG and each in schema.names],
        write_batch_size=VALUES_TOGETHER, data_page_size=PAGE_BYTES,
        store_schema=False,  # dictionaries are how we write, and not what a reader is to make of it
    )  # fmt: skip


def _leaves(field: pa.Field) -> Iterator[str]:
    """Yield the paths of the columns of which a file has a field made."""
    kind = field.type
    if pa.types.is_map(kind):
        inside = [pa.field("key", kind.key_type), pa.field("value", kind.item_type)]
        yield from (f"{field.name}.key_value.{path}" for each in inside for path in _leaves(each))
    elif pa.types.is_list(kind):
        yield from (f"{field.name}.list.{path}" for path in _leaves(pa.field("element", kind.value_type)))
    elif pa.types.is_struct(kind):
        yield from (f"{field.name}.{path}" for each in kind for path in _leaves(each))
    else:
        yield field.name
