"""Rows of one part, written down by whoever made them: a Parquet file a table. Spark is told of the files, not of rows.

Rows do not go through the JVM twice, and it sorts none. A task that is tried again writes other files: only those are
read that a task told of which ended well.

Invariant: a writer holds about `MOST_BYTES` of rows, or `MOST_ROWS` of them.
"""

import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from dissector.json_text import encodable
from dissector.pipeline.arrow import arrow_schema
from dissector.pipeline.folder import opened
from dissector.pipeline.parts import TALLIES
from dissector.pipeline.tables import ANEW, BY_NAME, FOUND, NOTES, Table

MOST_ROWS: Final = 8_000
MOST_BYTES: Final = 4 << 20
"""Of what is long in rows, about."""
_TABLES: Final = BY_NAME | {each.name: each for each in (NOTES, FOUND, ANEW)}
Cells = dict[str, Any]


class Staged(NamedTuple):
    """A file with rows of a table."""

    table: str
    path: str
    """In the folder of the run."""
    rows: int
    tally: bytes | None = None
    """Of a part, instead of a file: what it left out."""

    @property
    def batch(self) -> pa.RecordBatch:
        """As Spark takes it, of `SHAPE`."""
        return pa.RecordBatch.from_pylist([self._asdict()], _ARROW)


SHAPE: Final = "table STRING, path STRING, rows BIGINT, tally BINARY"
"""In Spark's words."""
_ARROW: Final = pa.schema([("table", pa.string()), ("path", pa.string()), ("rows", pa.int64()), ("tally", pa.binary())])


def staged(rows: Iterable[tuple[str, Cells]], uri: str) -> Iterator[Staged]:
    """Write rows of tables to files of a folder; all of them when it ends."""
    files, top = opened(uri)
    mine = uuid.uuid4().hex
    writers: dict[str, _Writer] = {}
    with ExitStack() as stack:
        for name, row in rows:
            if name == TALLIES:
                yield Staged(name, "", 0, row["tally"])
                continue
            writer = writers.get(name)
            if writer is None:
                files.create_dir(f"{top}/{name}", recursive=True)
                file = stack.enter_context(files.open_output_stream(f"{top}/{name}/{mine}.parquet"))
                writer = writers[name] = stack.enter_context(_Writer(_TABLES[name], file))
            writer.add(row)
    yield from (Staged(name, f"{name}/{mine}.parquet", writer.count) for name, writer in writers.items())


class _Writer:
    """Of one table's file."""

    def __init__(self, table: Table, file: pa.NativeFile) -> None:
        self.count = 0
        self._schema = arrow_schema(table)
        self._long = [c.name for c in table.columns if c.of_json or c.type == "BINARY"]
        self._writer = pq.ParquetWriter(file, self._schema, compression="lz4", use_dictionary=False)
        self._waiting: list[Cells] = []
        self._size = 0

    def __enter__(self) -> "_Writer":
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()
        self._writer.close()

    def add(self, row: Cells) -> None:
        """One row; columns that it does not have are null."""
        self.count += 1
        self._waiting.append(row)
        for name in self._long:
            value = row.get(name)
            if value is not None:
                self._size += len(value)
        if len(self._waiting) >= MOST_ROWS or self._size >= MOST_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            columns = [_column([row.get(each.name) for row in self._waiting], each.type) for each in self._schema]
            self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))
            self._waiting, self._size = [], 0


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    """A column; text that is not UTF-8 as JSON has it."""
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([encodable(value) if isinstance(value, str | list | dict) else value for value in values], kind)
