"""A capture partition: some packets of a capture, with their numbers in the capture, as blocks that can be sent.

The shuffle makes blocks of a capture; `PartitionReader` turns them into batches again.

Invariants:
  * packets keep their order, and are read as in the complete capture;
  * their bytes go to a spool, so that memory does not grow with the partition.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import PacketBatch
from dissector.core.finding import Finding
from dissector.core.grouping import gathered
from dissector.core.limits import Limits
from dissector.core.spool import Spool
from dissector.core.store import Store

COLUMN_BYTES: Final = 40
"""Bytes of a packet's columns in a block."""
JOINED_BYTES: Final = 1 << 20
"""Minimum bytes of joined blocks: reading a small block takes nearly as long as reading a large one."""


class Block(NamedTuple):
    """Consecutive packets of a partition."""

    first: int
    """Number of the first packet."""
    heads: bytes
    """Number, time, bytes captured, length and link type of each, as columns of int64: `(5, n)`."""
    data: bytes
    """The captured bytes of all of them."""
    sources: bytes = b""
    """Of packets of files that were merged: number, file, number in that file, as columns of int64: `(3, n)`."""


@dataclass(frozen=True)
class CapturePartition:
    """A partition as an input of `Capture`, in place of a file."""

    name: str
    blocks: Iterable[Block]
    """In capture order; iterated once."""
    number: int = 0
    of: int = 1
    """Number of partitions."""
    secrets: bytes = field(default=b"", repr=False)
    """A key log with secrets of its TLS connections."""


def block_of_rows(batch: PacketBatch, rows: Int64, sources: Int64 | None = None) -> Block:
    """Return the packets of a batch at these `rows`, at least one, as a block; `sources` are those of the batch."""
    columns = (batch.number, batch.time_ns, batch.captured, batch.length, batch.link_type)
    heads = np.stack([column[rows].astype("<i8") for column in columns])
    data = gathered(batch.data, batch.offset[rows], batch.captured[rows]).data.tobytes()
    return Block(int(heads[0, 0]), heads.tobytes(), data, b"" if sources is None else sources[:, rows].tobytes())


def join_small_blocks(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield the same packets in the same order, with small blocks joined. Blocks without packets are passed through."""
    small: list[Block] = []
    size = 0
    for block in blocks:
        if not block.heads:
            yield block
            continue
        small.append(block)
        size += len(block.data)
        if size >= JOINED_BYTES:
            yield _joined(small)
            small, size = [], 0
    if small:
        yield _joined(small)


def _joined(blocks: list[Block]) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    heads = np.concatenate([np.frombuffer(block.heads, "<i8").reshape(5, -1) for block in blocks], axis=1)
    sources = np.concatenate([np.frombuffer(block.sources, "<i8").reshape(3, -1) for block in blocks], axis=1)
    return Block(
        blocks[0].first, heads.tobytes(), b"".join([block.data for block in blocks]), sources.tobytes()
    )  # fmt: skip


class PartitionReader:
    """Reads a partition, with the interface of `files.Reader`."""

    grows = False
    has_times = False
    notes = None

    def __init__(self, part: CapturePartition, store: Store, limits: Limits) -> None:
        self.name = part.name
        self.problems: list[Finding] = []
        self._blocks = part.blocks
        self._store = store
        self._spool = Spool(store, limits.spooled_bytes)

    @property
    def total(self) -> int:
        """Bytes read so far, as the total is unknown."""
        return self._spool.size

    @property
    def done(self) -> int:
        """Bytes read so far."""
        return self._spool.size

    def start_ns(self) -> None:
        """Return None: partitions are not merged with other inputs."""

    def batches(self, most: int | None = None) -> Iterator[PacketBatch]:
        """Yield all packets, once, as many at a time as a block has. Raises `SpoolFullError`, as an incomplete
        partition is useless."""
        for block in self._blocks:
            number, time_ns, captured, length, link_type = np.frombuffer(block.heads, "<i8").reshape(5, -1)
            at = self._spool.size
            self._spool.append(block.data)
            yield PacketBatch(
                self._spool.data, self._spool.base, number, time_ns, at + np.cumsum(captured) - captured, captured,
                length, link_type.astype(np.uint16),
            )  # fmt: skip
            self._store.release_pages()

    def close(self) -> None:
        """Release the spool."""
        self._spool.close()
