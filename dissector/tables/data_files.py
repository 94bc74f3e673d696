"""Writes rows to Parquet files, in the task that produces them: those of tables where they stay, others for the run.

So no row passes through the JVM. A task that is tried again writes other files: only the files count that are in the
log of their table, and those are of tasks that succeeded.

Invariant: a writer holds about `MAX_BYTES` of rows, or `MAX_ROWS` of them.
"""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dissector.core.garbage_collection import infrequent_collection
from dissector.tables.arrow_types import TIMES, all_columns, arrow_schema, column
from dissector.tables.file_statistics import FileStatistics
from dissector.tables.rows import Cells, RowGroup, TableRow
from dissector.tables.schemas import BY_NAME, OBSERVATIONS, TableSchema
from dissector.tables.storage import opened

MAX_ROWS: Final = 8_000
MAX_BYTES: Final = 4 << 20
"""Approximate bytes of the long cells of rows."""
TALLIES: Final = "tallies"
"""In place of a table's name: the row is the tally of what a partition ignored."""
_LONG: Final = frozenset(("request", "response", "rest", "request_bytes", "response_bytes", "value", "data"))
"""Columns with long cells, nearly all of them different: a dictionary is of no use."""


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
    """With which the names of its data files begin, so that those of a killed ingest can be told."""


def write_rows(rows: Iterable[TableRow], output: Output) -> Iterator[DataFile]:
    """Write rows of tables to files in a storage, observations to the ingest's own folder. Yield tallies as they come,
    and all files at the end."""
    with infrequent_collection(), _DataFiles(output) as files:
        for name, row in rows:
            if name == TALLIES:
                assert isinstance(row, dict)
                yield DataFile(name, "", 0, 0, "", row["tally"])
            else:
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
        self._files.create_dir(f"{self._top}/{folder}", recursive=True)
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
        self._schema = arrow_schema(table)
        self._long = [name for name in self._schema.names if name in _LONG]
        self._file = file
        self._statistics = FileStatistics()
        is_kept = table.name != OBSERVATIONS.name
        short = [each for each in self._schema.names if each not in _LONG] if is_kept else False
        self._tables: list[pa.Table] = []
        self._table_rows = self._table_size = 0
        self._writer = pq.ParquetWriter(
            file, self._schema, compression="zstd" if is_kept else "lz4", use_dictionary=short
        )
        self._begin()

    def _begin(self) -> None:
        self._shared: list[Cells] = []
        """Cells of single rows, or cells that groups share."""
        self._counts: list[int] = []
        """Number of rows of each group."""
        self._groups: list[RowGroup] = []
        self._rows = self._size = 0

    def close(self, *, is_complete: bool) -> DataFile:
        """Finish the file. If it is not complete, rows that are not written yet are dropped."""
        with self._file:
            if is_complete:
                self._flush()
                self._write_tables()
            self._writer.close()
            size = self._file.tell()
        return DataFile(self._table, self._path, self._count, size, self._statistics.json())

    def add(self, row: Cells | RowGroup | pa.Table) -> None:
        """Add one row, a group, or a table with all columns."""
        if isinstance(row, pa.Table):
            self._add_table(row)
            return
        if isinstance(row, RowGroup):
            self._groups.append(row)
            self._shared.append(row.shared)
            self._counts.append(row.row_count)
            self._rows += row.row_count
            self._size += row.size
        else:
            self._shared.append(row)
            self._rows += 1
            for name in self._long:
                if value := row.get(name):
                    self._size += len(value)
        if self._rows >= MAX_ROWS or self._size >= MAX_BYTES:
            self._flush()

    def _add_table(self, table: pa.Table) -> None:
        """Add a table. Small ones become one group of rows."""
        columns = all_columns(self._schema, lambda field: table.column(field.name))
        self._tables.append(pa.table(columns, schema=self._schema))
        self._table_rows += table.num_rows
        self._table_size += table.nbytes
        if self._table_rows >= MAX_ROWS or self._table_size >= MAX_BYTES:
            self._write_tables()

    def _write_tables(self) -> None:
        for batch in pa.concat_tables(self._tables).combine_chunks().to_batches() if self._tables else ():
            self._write(batch)
        self._tables, self._table_rows, self._table_size = [], 0, 0

    def _write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)
        self._statistics.add(batch)
        self._count += batch.num_rows

    def _flush(self) -> None:
        if self._rows:
            groups = self._groups
            grouped = groups[0].columns([each.source for each in groups]) if groups else {}
            shared = self._shared_columns(
                [name for name in self._schema.names if name not in grouped and name not in TIMES]
            )
            columns = all_columns(
                self._schema,
                lambda field: (
                    column(grouped[field.name], field.type)
                    if field.name in grouped
                    else self._repeated(shared[field.name], field)
                ),
            )
            self._write(pa.RecordBatch.from_arrays(columns, schema=self._schema))
            self._begin()

    def _shared_columns(self, names: list[str]) -> dict[str, Sequence[Any]]:
        """Return the shared cells by column. The fast path is for rows with all columns, as nearly all are."""
        try:
            values: Iterable[Sequence[Any]] = zip(*map(itemgetter(*names), self._shared), strict=True)
        except KeyError:
            values = [[row.get(name) for row in self._shared] for name in names]
        return dict(zip(names, values, strict=True))

    def _repeated(self, values: Sequence[Any], field: pa.Field) -> pa.Array:
        """Return a column of shared cells, each repeated for all rows of its group."""
        cells = column(values, field.type)
        return cells.take(pa.array(np.repeat(np.arange(len(cells)), self._counts))) if self._counts else cells
