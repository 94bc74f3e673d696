"""A capture partition: some packets of a capture, with their numbers in the whole, as blocks that can be sent.

Routing makes blocks of a capture; the reader of a partition turns them into batches again.

Invariants:
  * packets keep their order, and are read as they would be in the whole capture;
  * their bytes go to a spool, so that memory does not grow with the partition.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from dissector.capture.spool import Spool
from dissector.core.arrays import Int64
from dissector.core.batches import PacketBatch
from dissector.core.finding import Finding
from dissector.core.limits import Limits
from dissector.core.store import Store

COLUMN_BYTES: Final = 40
"""Bytes of a packet's columns in a block."""
JOINED_BYTES: Final = 1 << 20
"""Minimum bytes of joined blocks: reading a small block takes nearly as long as reading a large one."""


class Block(NamedTuple):
    """Consecutive packets of a partition."""

    first: int
    """The number of the first."""
    heads: bytes
    """Number, time, bytes captured, length and link type of each, as columns of int64: `(5, n)`."""
    data: bytes
    """What was captured of them."""


@dataclass(frozen=True)
class CapturePartition:
    """What `Capture` reads instead of a file."""

    name: str
    blocks: Iterable[Block]
    """In capture order; iterated once."""
    number: int = 0
    of: int = 1
    """Number of partitions."""


def block(batch: PacketBatch, rows: Int64) -> Block:
    """Some packets of a batch, by row: at least one."""
    columns = (batch.number, batch.time_ns, batch.captured, batch.length, batch.link_type)
    heads = np.stack([column[rows].astype("<i8") for column in columns])
    view = memoryview(batch.data.data)
    places = zip(batch.offset[rows].tolist(), batch.captured[rows].tolist(), strict=True)
    return Block(int(heads[0, 0]), heads.tobytes(), b"".join([view[at : at + size] for at, size in places]))


def join_small_blocks(blocks: Iterable[Block]) -> Iterator[Block]:
    """The same packets in the same order, small blocks as one. Those without packets stay by themselves."""
    some: list[Block] = []
    size = 0
    for each in blocks:
        if not each.heads:
            yield each
            continue
        some.append(each)
        size += len(each.data)
        if size >= JOINED_BYTES:
            yield _joined(some)
            some, size = [], 0
    if some:
        yield _joined(some)


def _joined(some: list[Block]) -> Block:
    if len(some) == 1:
        return some[0]
    heads = np.concatenate([np.frombuffer(each.heads, "<i8").reshape(5, -1) for each in some], axis=1)
    return Block(some[0].first, heads.tobytes(), b"".join([each.data for each in some]))


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
        """Bytes so far; the total is unknown."""
        return self._spool.size

    @property
    def done(self) -> int:
        """Bytes so far."""
        return self._spool.size

    def start_ns(self) -> None:
        """Return None: partitions are not merged with other inputs."""

    def batches(self) -> Iterator[PacketBatch]:
        """Yield all packets, once. Raises `SpoolFullError`, as an incomplete partition is useless."""
        for each in self._blocks:
            number, time_ns, captured, length, link_type = np.frombuffer(each.heads, "<i8").reshape(5, -1)
            at = self._spool.size
            self._spool.append(each.data)
            yield PacketBatch(
                self._spool.data, self._spool.base, number, time_ns, at + np.cumsum(captured) - captured, captured,
                length, link_type.astype(np.uint16),
            )  # fmt: skip
            self._store.release_pages()

    def close(self) -> None:
        """Let go of the spool."""
        self._spool.close()
