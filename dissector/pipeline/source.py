"""Spark's Python Data Source for packets of capture files. Its rows are locations of blocks (`shuffled`). A task reads
one input split, or some small ones.

Options are texts, and Spark makes their names lower case: `splits` has all input splits, `parts` is the number of
partitions, `folder` is where packets are written.
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
    def __init__(self, splits: list[InputSplit]) -> None:
        super().__init__(splits)


class PacketSource(DataSource):
    """The source behind `spark.read.format(NAME)`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return LOCATIONS

    def reader(self, schema: StructType) -> "PacketReader":
        return PacketReader(decode_splits(self.options["splits"]), int(self.options["parts"]), self.options["folder"])


class PacketReader(DataSourceReader):
    """Reads input splits."""

    def __init__(self, splits: list[InputSplit], parts: int, folder: str) -> None:
        self._splits = splits
        self._parts = parts
        self._folder = folder

    def __getstate__(self) -> dict[str, object]:
        """Omit the splits: each task gets those it reads as its input partition."""
        return self.__dict__ | {"_splits": []}

    def partitions(self) -> list[InputPartition]:
        return [_ReadTask(group) for group in group_splits(self._splits, 2 * self._parts)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        group = cast(list[InputSplit], partition.value)
        yield from write_blocks((each for split in group for each in route(split, self._parts)), self._folder)


def group_splits(splits: list[InputSplit], tasks: int) -> list[list[InputSplit]]:
    """Group splits for about so many tasks. Small neighbors share a task, as a task costs more than they do."""
    enough = sum(split.packets for split in splits) / tasks
    found: list[list[InputSplit]] = []
    remaining = 0.0
    for split in splits:
        if remaining <= 0:
            found.append([])
            remaining = enough
        found[-1].append(split)
        remaining -= split.packets
    return found


def encode_splits(splits: list[InputSplit]) -> str:
    """Return splits as the text of an option."""
    return base64.b64encode(pickle.dumps(splits)).decode()


def decode_splits(text: str) -> list[InputSplit]:
    """Return the splits in the text of an option."""
    return cast(list[InputSplit], pickle.loads(base64.b64decode(text)))
