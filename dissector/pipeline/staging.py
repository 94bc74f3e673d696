"""Writes the rows of a partition to Parquet files, in the task that produces them. Spark gets the files, not the rows.

So few rows pass through the JVM, none twice, and it sorts none. A task that is tried again writes other files: only
files of tasks that succeeded count.

Invariant: a writer holds about `MAX_BYTES` of rows, or `MAX_ROWS` of them.
"""

import uuid
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dissector.core.garbage_collection import infrequent_collection
from dissector.pipeline.arrow import arrow_schema, column
from dissector.pipeline.folder import opened
from dissector.pipeline.partition_rows import TALLIES
from dissector.pipeline.table_rows import Cells, RowGroup, TableRow
from dissector.pipeline.table_schemas import BY_NAME, FOUND, OBSERVATIONS, UNCHANGED_TABLES, UPDATES, TableSchema

MAX_ROWS: Final = 8_000
MAX_BYTES: Final = 4 << 20
"""Approximate bytes of the long cells of rows."""
MAX_OPEN_FILES: Final = 16
"""Files of a partition that are open at the same time."""
_TABLES: Final = BY_NAME | {each.name: each for each in (OBSERVATIONS, FOUND, UPDATES)}


class StagedFile(NamedTuple):
    """A file with rows of a table."""

    table: str
    path: str
    """Relative to the folder of the run."""
    rows: int
    tally: bytes | None = None
    """The tally of what a partition ignored, in place of a file."""

    @property
    def batch(self) -> pa.RecordBatch:
        """The file as a row for Spark, of `STAGED_TYPES`."""
        return pa.RecordBatch.from_pylist([self._asdict()], _ARROW)


STAGED_TYPES: Final = "table STRING, path STRING, rows BIGINT, tally BINARY"
"""Spark's types of a staged file."""
_ARROW: Final = pa.schema([("table", pa.string()), ("path", pa.string()), ("rows", pa.int64()), ("tally", pa.binary())])


def write_rows(rows: Iterable[TableRow], uri: str) -> Iterator[StagedFile]:
    """Write rows of tables to files in a folder. Yield tallies as they come, and all files at the end."""
    with infrequent_collection(), _StagingFiles(uri) as files:
        for name, row in rows:
            if name == TALLIES:
                assert isinstance(row, dict)
                yield StagedFile(name, "", 0, row["tally"])
            else:
                files.of(name, row.shared if isinstance(row, RowGroup) else row).add(row)
    yield from files.closed


class _StagingFiles:
    """Files of one partition. Tables of `UNCHANGED_TABLES` have a file for each capture, in its final folder below the
    table. Before more than `MAX_OPEN_FILES` are open, the least recently used one is closed."""

    def __init__(self, uri: str) -> None:
        self.closed: list[StagedFile] = []
        self._files, self._top = opened(uri)
        self._file_prefix = uuid.uuid4().hex
        self._open: OrderedDict[tuple[str, str | None], _StagingWriter] = OrderedDict()
        """Writers by table, and by capture if a file has rows of one capture only."""

    def __enter__(self) -> "_StagingFiles":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        while self._open:
            self._close(is_complete=kind is None)

    def of(self, name: str, cells: Cells) -> "_StagingWriter":
        """Return the writer for a row of a table."""
        key = name, cells["capture"] if name in UNCHANGED_TABLES else None
        writer = self._open.get(key)
        if writer is None:
            if len(self._open) == MAX_OPEN_FILES:
                self._close(is_complete=True)
            writer = self._open[key] = self._new_writer(name, cells)
        self._open.move_to_end(key)
        return writer

    def _new_writer(self, name: str, cells: Cells) -> "_StagingWriter":
        folder = f"{name}/day={cells['day']}/capture={cells['capture']}" if name in UNCHANGED_TABLES else name
        self._files.create_dir(f"{self._top}/{folder}", recursive=True)
        path = f"{folder}/{self._file_prefix}-{len(self.closed) + len(self._open)}.parquet"
        return _StagingWriter(_TABLES[name], path, self._files.open_output_stream(f"{self._top}/{path}"))

    def _close(self, *, is_complete: bool) -> None:
        (name, _), writer = self._open.popitem(last=False)
        writer.close(is_complete=is_complete)
        self.closed.append(StagedFile(name, writer.path, writer.count))


class _StagingWriter:
    """Writes one file. Final files are compressed well; those that are read once and removed, fast."""

    def __init__(self, table: TableSchema, path: str, file: pa.NativeFile) -> None:
        self.count = 0
        self.path = path
        is_final = table.name in UNCHANGED_TABLES
        self._schema = arrow_schema(table, partitions=not is_final)
        self._long = [c.name for c in table.columns if c.of_json or c.type == "BINARY"]
        self._file = file
        self._writer = pq.ParquetWriter(
            file, self._schema, compression="zstd" if is_final else "lz4", use_dictionary=is_final
        )
        self._begin()

    def _begin(self) -> None:
        self._shared: list[Cells] = []
        """Cells of single rows, or cells that groups share."""
        self._counts: list[int] = []
        """Number of rows of each group."""
        self._groups: list[RowGroup] = []
        self._rows = self._size = 0

    def close(self, *, is_complete: bool) -> None:
        """Finish the file. If it is not complete, rows that are not written yet are dropped."""
        with self._file:
            if is_complete:
                self._flush()
            self._writer.close()

    def add(self, row: Cells | RowGroup) -> None:
        """Add one row or a group."""
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

    def _flush(self) -> None:
        if self._rows:
            groups = self._groups
            grouped = groups[0].columns([each.source for each in groups]) if groups else {}
            shared = self._shared_columns([each.name for each in self._schema if each.name not in grouped])
            columns = [
                column(grouped[each.name], each.type)
                if each.name in grouped
                else self._repeated(shared[each.name], each)
                for each in self._schema
            ]
            self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))
            self.count += self._rows
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
