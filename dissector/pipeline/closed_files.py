"""Spark's Python Data Source for streams: files of a folder as they are closed. The offset is the log's length."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, cast

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from dissector.pipeline.ring import Ring, logged_files

NAME = "kafka_closed_files"


class ClosedFilesSource(DataSource):
    """The source behind `spark.readStream.format(NAME)`. Options: `folder`, `log`, `quiet`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return "position BIGINT, path STRING, size BIGINT, changed_ns BIGINT, inode BIGINT"

    def streamReader(self, schema: StructType) -> "ClosedFilesReader":  # noqa: N802  # Spark's name
        return ClosedFilesReader(self.options["folder"], self.options["log"], float(self.options["quiet"]))


class ClosedFilesReader(DataSourceStreamReader):
    """Appends closed files to the log, and reads from it."""

    def __init__(self, folder: str, log: str, quiet: float) -> None:
        self._folder = folder
        self._log = Path(log)
        self._quiet = quiet
        self._ring: Ring | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  # Spark's name
        return {"files": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802  # Spark's name
        if self._ring is None:
            self._ring = Ring(self._folder, self._log, self._quiet)
        return {"files": self._ring.take()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition((start["files"], end["files"]))]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        start, end = cast(tuple[int, int], partition.value)
        for position, entry in enumerate(islice(logged_files(self._log), start, end), start):
            yield (position, *entry)
