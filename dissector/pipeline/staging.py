"""Rows of one part, written down by whoever made them, as Parquet files. Spark is told of the files, not of rows.

Few rows go through the JVM, none twice, and it sorts none. A task that is tried again writes other files: those
alone count that a task told of which ended well.

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
"""Of what is long in rows, about."""
MAX_OPEN_FILES: Final = 16
"""Files of a part that are written side by side."""
_TABLES: Final = BY_NAME | {each.name: each for each in (OBSERVATIONS, FOUND, UPDATES)}


class StagedFile(NamedTuple):
    """A file with rows of a table."""

    table: str
    path: str
    """In the folder of the run."""
    rows: int
    tally: bytes | None = None
    """Of a part, instead of a file: what it left out."""

    @property
    def batch(self) -> pa.RecordBatch:
        """As Spark takes it, of `STAGED_TYPES`."""
        return pa.RecordBatch.from_pylist([self._asdict()], _ARROW)


STAGED_TYPES: Final = "table STRING, path STRING, rows BIGINT, tally BINARY"
"""In Spark's words."""
_ARROW: Final = pa.schema([("table", pa.string()), ("path", pa.string()), ("rows", pa.int64()), ("tally", pa.binary())])


def write_rows(rows: Iterable[TableRow], uri: str) -> Iterator[StagedFile]:
    """Write rows of tables to files of a folder; all of them when it ends."""
    with infrequent_collection(), _StagingFiles(uri) as files:
        for name, row in rows:
            if name == TALLIES:
                assert isinstance(row, dict)
                yield StagedFile(name, "", 0, row["tally"])
            else:
                files.of(name, row.shared if isinstance(row, RowGroup) else row).add(row)
    yield from files.told


class _StagingFiles:
    """Those of one part. Of tables whose rows stay as they are there is a file for each capture, where it belongs below
    the table; a file that nothing was added to for longest is closed before there are more than `MAX_OPEN_FILES`."""

    def __init__(self, uri: str) -> None:
        self.told: list[StagedFile] = []
        """Files that are closed."""
        self._files, self._top = opened(uri)
        self._mine = uuid.uuid4().hex
        self._open: OrderedDict[tuple[str, str | None], _StagingWriter] = OrderedDict()
        """By table, and by capture where that is a file's."""

    def __enter__(self) -> "_StagingFiles":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        while self._open:
            self._close(is_whole=kind is None)

    def of(self, name: str, cells: Cells) -> "_StagingWriter":
        """The file for such a row."""
        key = name, cells["capture"] if name in UNCHANGED_TABLES else None
        writer = self._open.get(key)
        if writer is None:
            if len(self._open) == MAX_OPEN_FILES:
                self._close(is_whole=True)
            writer = self._open[key] = self._begun(name, cells)
        self._open.move_to_end(key)
        return writer

    def _begun(self, name: str, cells: Cells) -> "_StagingWriter":
        folder = f"{name}/day={cells['day']}/capture={cells['capture']}" if name in UNCHANGED_TABLES else name
        self._files.create_dir(f"{self._top}/{folder}", recursive=True)
        path = f"{folder}/{self._mine}-{len(self.told) + len(self._open)}.parquet"
        return _StagingWriter(_TABLES[name], path, self._files.open_output_stream(f"{self._top}/{path}"))

    def _close(self, *, is_whole: bool) -> None:
        (name, _), writer = self._open.popitem(last=False)
        writer.close(is_whole=is_whole)
        self.told.append(StagedFile(name, writer.path, writer.count))


class _StagingWriter:
    """Of one table's file. What stays is compressed well, what is read once and dropped, fast."""

    def __init__(self, table: TableSchema, path: str, file: pa.NativeFile) -> None:
        self.count = 0
        self.path = path
        stays = table.name in UNCHANGED_TABLES
        self._schema = arrow_schema(table, partitions=not stays)
        self._long = [c.name for c in table.columns if c.of_json or c.type == "BINARY"]
        self._file = file
        self._writer = pq.ParquetWriter(
            file, self._schema, compression="zstd" if stays else "lz4", use_dictionary=stays
        )
        self._begin()

    def _begin(self) -> None:
        self._shared: list[Cells] = []
        """What rows have in common; of how many that is each, the counts say."""
        self._counts: list[int] = []
        self._several: list[RowGroup] = []
        self._rows = self._size = 0

    def close(self, *, is_whole: bool) -> None:
        """Nothing is added any more. Of what is not whole, what waits is dropped."""
        with self._file:
            if is_whole:
                self._flush()
            self._writer.close()

    def add(self, row: Cells | RowGroup) -> None:
        """One row, or several."""
        if isinstance(row, RowGroup):
            self._several.append(row)
            self._shared.append(row.shared)
            self._counts.append(row.many)
            self._rows += row.many
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
            several = self._several
            own = several[0].columns([each.of for each in several]) if several else {}
            shared = self._taken_apart([each.name for each in self._schema if each.name not in own])
            columns = [
                column(own[each.name], each.type) if each.name in own else self._common(shared[each.name], each)
                for each in self._schema
            ]
            self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))
            self.count += self._rows
            self._begin()

    def _taken_apart(self, names: list[str]) -> dict[str, Sequence[Any]]:
        """What rows share, by column. Of rows that have all columns, as nearly all do, it is taken at once."""
        try:
            values: Iterable[Sequence[Any]] = zip(*map(itemgetter(*names), self._shared), strict=True)
        except KeyError:
            values = [[row.get(name) for row in self._shared] for name in names]
        return dict(zip(names, values, strict=True))

    def _common(self, values: Sequence[Any], field: pa.Field) -> pa.Array:
        """A column of what rows share, as often as each has it."""
        made = column(values, field.type)
        return made.take(pa.array(np.repeat(np.arange(len(made)), self._counts))) if self._counts else made
