"""Updates rows that are in the tables already, as a follower learns more about them later.

A new finding about an exchange changes its info column and adds a row of `findings`; a finding's message may change. A
file with such a row is rewritten under the same name and staged: one rename replaces the old file.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dissector.pipeline import cross_connection
from dissector.pipeline.arrow import frame
from dissector.pipeline.observations import FINDING_KEY
from dissector.pipeline.table_rows import Cells
from dissector.pipeline.table_schemas import BY_NAME, FOUND, PARTITIONS, PARTITIONS_DDL, ddl

WHERE: Final = (*(each.name for each in PARTITIONS), "packet", "start")
_WHERE_TYPES: Final = f"{PARTITIONS_DDL}, packet BIGINT, start BIGINT"
"""`WHERE` with types, as Spark's DDL."""
RowKey = tuple[Any, ...]


def key_of_row(cells: Cells) -> RowKey:
    """Return the key of an exchange, for rows of it and of its findings."""
    return tuple(cells[name] for name in WHERE)


def only_found(exchanges: DataFrame, found: list[Cells]) -> DataFrame:
    """Return the exchanges that findings are about."""
    keys = frame(exchanges.sparkSession, [key_of_row(each) for each in found], _WHERE_TYPES)
    return exchanges.join(f.broadcast(keys), list(WHERE), "left_semi")


def rewrite_findings(tables: Path, stage: Path, updates: Iterable[Cells]) -> None:
    """Stage the files of `findings` with these updates (`table_schemas.UPDATES`)."""
    by_partition: dict[str, dict[RowKey, str]] = {}
    for update in updates:
        messages = by_partition.setdefault(_partition_folder(update), {})
        messages[(*(update[name] for name in FINDING_KEY), update["before"])] = update["message"]
    for partition, messages in by_partition.items():
        for file in sorted((tables / "findings" / partition).glob("*.parquet")):
            _rewrite(file, stage / "findings" / partition / file.name, messages)


def _rewrite(file: Path, to: Path, new_messages: dict[RowKey, str]) -> None:
    with pq.ParquetFile(file) as read:
        if not any(_updated_messages(batch, new_messages) is not None for batch in read.iter_batches()):
            return
        to.parent.mkdir(parents=True, exist_ok=True)
        with pq.ParquetWriter(to, read.schema_arrow) as writer:
            for batch in read.iter_batches():
                messages = _updated_messages(batch, new_messages)
                at = batch.schema.get_field_index("message")
                writer.write_batch(
                    batch if messages is None else batch.set_column(at, batch.schema.field(at), messages)
                )


def _updated_messages(batch: pa.RecordBatch, new_messages: dict[RowKey, str]) -> pa.Array | None:
    """Return the messages of a batch with its updates; None if there are none."""
    packets = pa.array({key[0] for key in new_messages}, pa.int64())
    if not pc.any(pc.is_in(batch.column("packet"), packets)).as_py():
        return None
    keys = zip(*(batch.column(name).to_pylist() for name in (*FINDING_KEY, "message")), strict=True)
    messages = [new_messages.get(key, key[-1]) for key in keys]
    return pa.array(messages, batch.schema.field("message").type)


class ExchangeUpdates:
    """Exchanges in the tables that new findings are about."""

    def __init__(self, spark: SparkSession, tables: Path, found: list[Cells]) -> None:
        self._spark = spark
        self._top = tables / "exchanges"
        self._found = found
        partitions = sorted({_partition_folder(each) for each in found})
        folders = [str(self._top / each) for each in partitions if any((self._top / each).glob("*.parquet"))]
        self.keys: set[RowKey] = set()
        self._files: list[Path] = []
        if folders:
            written = self._read(folders).select(*WHERE, "_metadata.file_name")
            rows = only_found(written, found).distinct().collect()
            self.keys = {tuple(row)[:-1] for row in rows}
            self._files = sorted({self._top / _partition_folder(row.asDict()) / row.file_name for row in rows})

    def _read(self, paths: list[str]) -> DataFrame:
        read = self._spark.read.schema(f"{ddl(BY_NAME['exchanges'])}, {PARTITIONS_DDL}")
        return read.option("basePath", str(self._top)).parquet(*paths)

    def rewrite(self, stage: Path) -> None:
        """Stage their files with the new findings, and rows of `findings`."""
        found = [each for each in self._found if key_of_row(each) in self.keys]
        if not found:
            return
        cells = [tuple(each[column.name] for column in (*PARTITIONS, *FOUND.columns)) for each in found]
        findings = frame(self._spark, cells, f"{PARTITIONS_DDL}, {ddl(FOUND)}")
        rows = cross_connection.finding_rows(findings, self._read([str(file) for file in self._files]))
        rows.write.mode("append").partitionBy("day", "capture").parquet(str(stage / "findings"))
        for file in self._files:
            marked = cross_connection.with_found(self._read([str(file)]), findings).drop("day", "capture")
            marked.coalesce(1).write.mode("overwrite").parquet(str(stage / "updated"))
            [rewritten] = (stage / "updated").glob("*.parquet")
            to = stage / file.relative_to(self._top.parent)
            to.parent.mkdir(parents=True, exist_ok=True)
            rewritten.rename(to)


def _partition_folder(cells: Cells) -> str:
    return f"day={cells['day']}/capture={cells['capture']}"
