"""The Python Data Source: packets of capture files, dealt out to parts. Its rows are their places (`dealt`). A task
reads a segment, or some small ones.

Options are texts, their names in lower case whoever wrote them: `segments` has all, `parts` says how many there are,
`folder` where packets go.
"""

import base64
import pickle
from collections.abc import Iterator
from typing import cast

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from dissector.pipeline.shuffled import LOCATIONS, write_blocks
from dissector.pipeline.splits import InputSplit, route

NAME = "kafka_packets"


class _ReadTask(InputPartition):
    def __init__(self, segments: list[InputSplit]) -> None:
        super().__init__(segments)


class PacketSource(DataSource):
    """What `spark.read.format(NAME)` finds."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return LOCATIONS

    def reader(self, schema: StructType) -> "PacketReader":
        return PacketReader(decode_splits(self.options["segments"]), int(self.options["parts"]), self.options["folder"])


class PacketReader(DataSourceReader):
    """Reads segments."""

    def __init__(self, segments: list[InputSplit], parts: int, folder: str) -> None:
        self._segments = segments
        self._parts = parts
        self._folder = folder

    def __getstate__(self) -> dict[str, object]:
        """What goes to every task: each is told its own segment beside it, and the others are none of its business."""
        return self.__dict__ | {"_segments": []}

    def partitions(self) -> list[InputPartition]:
        return [_ReadTask(some) for some in group_splits(self._segments, 2 * self._parts)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        some = cast(list[InputSplit], partition.value)
        yield from write_blocks((each for segment in some for each in route(segment, self._parts)), self._folder)


def group_splits(segments: list[InputSplit], tasks: int) -> list[list[InputSplit]]:
    """Segments for about so many tasks: small ones that stand side by side together, as a task costs more than they
    do."""
    enough = sum(segment.packets for segment in segments) / tasks
    found: list[list[InputSplit]] = []
    left = 0.0
    for segment in segments:
        if left <= 0:
            found.append([])
            left = enough
        found[-1].append(segment)
        left -= segment.packets
    return found


def encode_splits(segments: list[InputSplit]) -> str:
    """Segments as an option's text."""
    return base64.b64encode(pickle.dumps(segments)).decode()


def decode_splits(text: str) -> list[InputSplit]:
    """The other way."""
    return cast(list[InputSplit], pickle.loads(base64.b64decode(text)))
