"""Reads tables, as Spark's data frames and as exchanges.

Invariants:
  * all that is read is of one moment (`tables.snapshot`), and of captures that are in `captures`;
  * rows are numbered as in one capture of all captures, in the order of time; connections are those of Kafka only.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from dissector.exchange.model import Exchange
from dissector.filter import Filter, parse
from dissector.pipeline.filter_pushdown import PushedFilter, push_down
from dissector.pipeline.frames import frame
from dissector.pipeline.origins import SHORT
from dissector.pipeline.row_to_exchange import exchange_of_row
from dissector.tables.schemas import BY_NAME, ROW_KEY, ddl
from dissector.tables.snapshot import Snapshot

MIN_DIGITS: Final = 8
"""Minimum digits of a digest that select a capture."""
ROWS_PER_BATCH: Final = 256
"""Rows that go to Python in one batch: their bodies may be large."""
_ORDER: Final = ("log", "capture", "hex", "unread")
_NUMBERS: Final = pa.schema([("number", pa.int64())])
_FINDING: Final = ("code", "severity", "path", "message")
LATER: Final = 1 << 30
"""The place of a finding without one: behind the others of its row."""


class _CaptureRow(NamedTuple):
    """A row of `captures`. Rows compare in the order in which captures are read."""

    order: int
    """Position of its form in `_ORDER`."""
    first_ns: int
    end_ns: int
    digest: str
    path: str

    @property
    def capture(self) -> str:
        return self.digest[:SHORT]


class Tables:
    """The tables of one folder as a snapshot has them. With `capture`, only exchanges of that one, numbered as among
    all: a connection may have begun in another capture."""

    def __init__(
        self, spark: SparkSession, folder: str, snapshot: Snapshot, capture: str | None = None
    ) -> None:  # fmt: skip
        self._spark = spark
        self._only = capture
        self._folder = folder
        self._snapshot = snapshot
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(ROWS_PER_BATCH))

    def table(self, name: str) -> DataFrame:
        """Return a table by its name: of `findings` the rows that count."""
        schema = ddl(BY_NAME[name])
        if name == "captures":
            return frame(self._spark, [tuple(row.values()) for row in self._snapshot.captures], schema)
        paths = self._snapshot.files[name]
        if not paths:
            return self._spark.createDataFrame([], schema)
        live = [(row["capture"], row["epoch"]) for row in self._snapshot.captures]
        epochs = f.broadcast(frame(self._spark, live, "capture STRING, epoch BIGINT"))
        rows = self._spark.read.schema(schema).parquet(*paths).join(epochs, ["capture", "epoch"], "left_semi")
        return _current(rows) if name == "findings" else rows

    def count(self) -> tuple[int, int]:
        """Return the number of captures, and of their problems."""
        return len(self._snapshot.captures), sum(len(row["problems"] or ()) for row in self._snapshot.captures)

    @cached_property
    def _files(self) -> list[_CaptureRow]:
        """All captures in the order in which they are read as one: Kafka's own files, then captures by time, then those
        without times."""
        names = ("first_ns", "end_ns", "digest", "path")
        found = ((_ORDER.index(row["form"]), *(row[name] for name in names)) for row in self._snapshot.captures)
        return sorted(_CaptureRow(*row) for row in found)

    def captures_named(self, name: str) -> "list[Tables]":
        """Return the tables of each capture with a name: its path, its file name with or without the extension, or the
        first digits of its digest."""
        return [
            Tables(self._spark, self._folder, self._snapshot, each.capture)
            for each in self._files
            if _has_name(each, name)
        ]

    @property
    def start_ns(self) -> int:
        """Time of the first packet, nanoseconds since 1970: relative times count from it."""
        return next((each.first_ns for each in self._files if each.first_ns), 0)

    @cached_property
    def numbered_connections(self) -> DataFrame:
        """The table of connections, each with its number, `conn`."""
        return self._numbered(self.table("connections"), ("packet",), "conn")

    def _numbered(self, rows: DataFrame, by: tuple[str, ...], name: str) -> DataFrame:
        """Number rows from 1, capture by capture."""
        counts = {row.capture: row["count"] for row in rows.groupBy("capture").count().collect()}
        before, so_far = [], 0
        for each in self._files:
            before.append((each.capture, so_far))
            so_far += counts.get(each.capture, 0)
        order = frame(self._spark, before, "capture STRING, before BIGINT")
        place = f.row_number().over(Window.partitionBy("capture").orderBy(*by))
        return rows.join(f.broadcast(order), "capture").withColumn(name, f.col("before") + place).drop("before")

    def exchanges(self, row_filter: Filter | None = None, *, bodies: bool = False) -> tuple[DataFrame, PushedFilter]:
        """Return rows of `exchanges` that may match, with `number`, `conn` and `findings`, and the pushed filter; with
        `bodies`, or if the filter needs them, also the columns of `bodies`."""
        pushed = push_down(row_filter, self.start_ns)
        rows = self.table("exchanges")
        if self._only is not None:
            rows = rows.where(f.col("capture") == self._only)
        if pushed.uses_bodies:
            rows = self._with_bodies(rows)
        if pushed.uses_numbers:
            rows = self._with_findings(self._with_numbers(rows)).where(pushed.column)
        elif pushed.uses_findings:
            rows = self._with_numbers(self._with_findings(rows).where(pushed.column))
        else:
            rows = self._with_findings(self._with_numbers(rows.where(pushed.column)))
        return (self._with_bodies(rows) if bodies and not pushed.uses_bodies else rows), pushed

    def _with_bodies(self, rows: DataFrame) -> DataFrame:
        """Add the columns of `bodies`."""
        return rows.join(self.table("bodies").drop("day", "epoch"), list(ROW_KEY), "left")

    def _with_numbers(self, rows: DataFrame) -> DataFrame:
        """Add the numbers of rows and of their connections. One of Kafka's own files counts as a connection, before all
        others, as in a capture."""
        numbers = self._numbered(self.table("exchanges").select(*ROW_KEY), ROW_KEY[1:], "number")
        logs = [each.capture for each in self._files if _ORDER[each.order] == "log"]
        stored = {capture: number for number, capture in enumerate(logs, 1)}
        files = [(each.capture, each.path, stored.get(each.capture)) for each in self._files]
        paths = f.broadcast(frame(self._spark, files, "capture STRING, path STRING, file BIGINT"))
        found = self.numbered_connections.select("connection", (f.col("conn") + len(stored)).alias("of_packets"))
        return (
            rows.join(numbers, list(ROW_KEY)).join(paths, "capture").join(found, "connection", "left")
            .withColumn("conn", f.coalesce("of_packets", "file")).drop("of_packets", "file")
        )  # fmt: skip

    def _with_findings(self, rows: DataFrame) -> DataFrame:
        """Add the findings about rows, in the order in which they were written."""
        place = f.coalesce("nth", f.lit(LATER)).alias("place")
        found = self.table("findings").select(*ROW_KEY, f.struct(place, *_FINDING).alias("finding"))
        ordered = f.array_sort(f.collect_list("finding"))
        findings = found.groupBy(*ROW_KEY).agg(ordered.alias("findings"))
        return rows.join(findings, list(ROW_KEY), "left")

    @property
    def has_frames(self) -> bool:
        """Whether the bytes of any frame were kept."""
        kept = f.col("request_bytes").isNotNull() | f.col("response_bytes").isNotNull()
        return not self.table("bodies").where(kept).isEmpty()

    def matching_rows(self, row_filter: Filter | None) -> DataFrame:
        """Return the rows of `exchanges` that match, with `number` and `conn`."""
        rows, pushed = self.exchanges(row_filter)
        if pushed.is_exact:
            return rows
        numbers = self.map_exchanges(
            row_filter, lambda exchanges: ((each.fields.number,) for each in exchanges), _NUMBERS
        )
        return rows.join(numbers, "number", "left_semi")

    def map_exchanges(
        self,
        row_filter: Filter | None,
        convert: Callable[[Iterator[Exchange]], Iterator[tuple[Any, ...]]],
        schema: pa.Schema,
        *,
        most: int | None = None,
        of: DataFrame | None = None,
    ) -> DataFrame:
        """Return rows that `convert` yields as tuples from the exchanges that match: from the first `most` of them, or
        from those whose numbers are in the data frame `of`."""
        rows, pushed = self.exchanges(row_filter, bodies=True)
        text = None if row_filter is None or pushed.is_exact else row_filter.text
        start_ns = self.start_ns

        def convert_all(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                converted = list(convert(_matching(batch, text, start_ns)))
                yield pa.RecordBatch.from_arrays(
                    [pa.array([row[at] for row in converted], field.type) for at, field in enumerate(schema)],
                    schema=schema,
                )

        if of is not None:
            rows = rows.join(of, "number", "left_semi")
        if most is not None and pushed.is_exact:
            rows = rows.orderBy("number").limit(most)
        converted = rows.mapInArrow(convert_all, _ddl(schema))
        return converted if most is None else converted.orderBy("number").limit(most)


def _current(findings: DataFrame) -> DataFrame:
    """Return the rows of `findings` that no later row replaces."""
    same = [*ROW_KEY, "code", "path"]
    replaced = findings.where("replaces IS NOT NULL").select(*same, f.col("replaces").alias("message"))
    return findings.join(replaced, [*same, "message"], "left_anti")


def _has_name(file: _CaptureRow, name: str) -> bool:
    path = Path(file.path)
    return name in (file.path, path.name, path.stem) or (len(name) >= MIN_DIGITS and file.digest.startswith(name))


def _matching(batch: pa.RecordBatch, text: str | None, start_ns: int) -> Iterator[Exchange]:
    """Yield the exchanges of a batch that match."""
    row_filter = None if text is None else _parsed(text)
    for cells in batch.to_pylist():
        exchange = exchange_of_row(cells)
        if row_filter is None or row_filter.matches(exchange, start_ns):
            yield exchange


_parsed = lru_cache(maxsize=4)(parse)
_TYPES: Final = {pa.bool_(): "boolean", pa.int64(): "BIGINT", pa.binary(): "BINARY", pa.string(): "STRING"}


def _ddl(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {_TYPES[field.type]}" for field in schema)
