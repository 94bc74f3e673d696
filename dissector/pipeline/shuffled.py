"""Blocks of packets between the two sides of the shuffle: in files of the run, with the location of each.

Spark shuffles the locations and no packets: blocks are written once, and both passes read them from the files. A task
that is retried writes another file, and nothing refers to the first one.

Invariants:
  * about `GATHERED_BYTES` are held in memory before they are written;
  * a file is complete before its locations are emitted;
  * packets are as they were captured, secrets included: only the owner may read these files.
"""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.fs

from dissector.capture.partition import Block, join_small_blocks
from dissector.pipeline.splits import RoutedBlock
from dissector.tables.file_systems import create_folder, opened

GATHERED_BYTES: Final = 16 << 20
"""Bytes of packets that are gathered, so that those of a partition are contiguous in the file."""


class BlockLocation(NamedTuple):
    """Location of a block in a file: its heads, its data, its sources. A block without packets is in no file."""

    part: int
    first: int
    path: str | None
    at: int
    heads: int
    """Bytes."""
    data: int
    """Bytes."""
    sources: int
    """Bytes."""
    tally: bytes | None
    """Tally of what was ignored, of a block without packets."""


LOCATIONS: Final = (
    "part INT, first BIGINT, path STRING, at BIGINT, heads BIGINT, data BIGINT, sources BIGINT, tally BINARY"
)
"""Spark's types of a location."""
_ARROW: Final = pa.schema([
    ("part", pa.int32()), ("first", pa.int64()), ("path", pa.string()), ("at", pa.int64()), ("heads", pa.int64()),
    ("data", pa.int64()), ("sources", pa.int64()), ("tally", pa.binary()),
])  # fmt: skip


def location_without_packets(part: int, block: Block) -> BlockLocation:
    """Return the location of a block without packets."""
    return BlockLocation(part, block.first, None, 0, 0, 0, 0, block.data)


def write_blocks(routed: Iterable[RoutedBlock], uri: str) -> Iterator[pa.RecordBatch]:
    """Write blocks to a file in a folder, small ones of a partition together; then yield their locations."""
    files, top = opened(uri)
    create_folder(files, top)
    path = f"{top}/{uuid.uuid4().hex}"
    locations: list[BlockLocation] = []
    with files.open_output_stream(path) as file:
        if isinstance(files, pa.fs.LocalFileSystem):
            Path(path).chmod(0o600)  # secrets are masked in tables, but not here
        for part, block in _grouped_by_partition(routed):
            if block.heads:
                heads, data, sources = map(len, block[1:])
                locations.append(BlockLocation(part, block.first, path, file.tell(), heads, data, sources, None))
                for each in block[1:]:
                    file.write(each)
            else:
                locations.append(location_without_packets(part, block))
    yield pa.RecordBatch.from_pylist([each._asdict() for each in locations], _ARROW)


def _grouped_by_partition(routed: Iterable[RoutedBlock]) -> Iterator[RoutedBlock]:
    """Yield blocks partition by partition, some megabytes at a time; those of a partition stay in order."""
    waiting: dict[int, list[Block]] = defaultdict(list)
    size = 0
    for part, block in routed:
        waiting[part].append(block)
        size += len(block.data)
        if size >= GATHERED_BYTES:
            yield from _by_partition(waiting)
            waiting.clear()
            size = 0
    yield from _by_partition(waiting)


def _by_partition(waiting: dict[int, list[Block]]) -> Iterator[RoutedBlock]:
    return (RoutedBlock(part, block) for part, blocks in sorted(waiting.items()) for block in join_small_blocks(blocks))


def by_partition(batches: Iterable[pa.RecordBatch], uri: str) -> Iterator[tuple[int, Iterator[Block]]]:
    """Yield the number of each partition and its blocks, by locations that are sorted by partition."""
    ahead = _read_blocks(batches, uri)
    first = next(ahead, None)
    while first is not None:
        rest: list[RoutedBlock] = []

        def blocks(begin: RoutedBlock, rest: list[RoutedBlock] = rest) -> Iterator[Block]:
            yield begin.block
            for each in ahead:
                if each.part != begin.part:
                    rest.append(each)
                    return
                yield each.block

        yield first.part, join_small_blocks(blocks(first))
        first = rest[0] if rest else None


def _read_blocks(batches: Iterable[pa.RecordBatch], uri: str) -> Iterator[RoutedBlock]:
    files, _ = opened(uri)
    with ExitStack() as stack:
        path, file = None, None
        for location in (BlockLocation(**row) for batch in batches for row in batch.to_pylist()):
            if location.tally is not None:
                yield RoutedBlock(location.part, Block(location.first, b"", location.tally))
                continue
            if file is None or location.path != path:
                stack.close()
                path, file = location.path, stack.enter_context(files.open_input_file(location.path))
            read = file.read_at(location.heads + location.data + location.sources, location.at)
            ends = location.heads, location.heads + location.data
            block = Block(location.first, read[: ends[0]], read[ends[0] : ends[1]], read[ends[1] :])
            yield RoutedBlock(location.part, block)
