"""Merges files into one capture, in the order of time.

Files begin in the order of their first packets. If no two overlap, batches pass through unchanged. If some do, their
packets are copied to a spool in merged order, a stretch at a time. They are followed, one by one in the given order, by
texts, whose times are made up, and by growing files, whose next packet can't be waited for.

Invariants:
  * packets of one file keep their order: a packet that is earlier than the one before it counts as of the same time;
  * at the same time, the file that was given first comes first; the size of batches makes no difference;
  * a step looks only at files that have packets in it: a thousand files cost a thousand times one;
  * the more files overlap, the fewer packets of each wait: hundreds together have some times as many as one.
"""

import heapq
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from dissector.capture.file_opening import AnyReader
from dissector.core.arrays import Int64
from dissector.core.batches import PacketBatch
from dissector.core.finding import Finding, Severity
from dissector.core.limits import BATCH_PACKETS, Limits
from dissector.core.spool import Spool, SpoolFullError
from dissector.core.store import Store

_LEAST: Final = -(1 << 63)
_COPIED_PACKETS: Final = 1 << 12
"""Packets copied at once."""
_LEAST_PACKETS: Final = 256
"""Of each file that are read at once, however many files overlap."""


class _Position(NamedTuple):
    """Position of a packet in the merged order: its time, then its file."""

    time_ns: int
    which: int


@dataclass
class _PendingPackets:
    """Packets of one file that are read and not merged yet."""

    batch: PacketBatch
    key: Int64
    """Times that never decrease: `(n,)`."""


class _MergedFile:
    """One of the files that are merged."""

    def __init__(self, which: int, reader: AnyReader, most: int) -> None:
        """`most` packets are read at a time."""
        self.which = which
        self._batches = reader.batches(most)
        self._latest = _LEAST
        self.pending: _PendingPackets | None = None
        self.load()

    def load(self) -> None:
        """Read the next packets; `pending` is None if there are no more."""
        self.pending = None
        for batch in self._batches:
            if len(batch):
                key = np.maximum.accumulate(np.maximum(batch.time_ns, self._latest))
                self._latest = int(key[-1])
                self.pending = _PendingPackets(batch, key)
                return

    @property
    def first(self) -> _Position:
        """Position of the first pending packet."""
        assert self.pending is not None
        return _Position(int(self.pending.key[0]), self.which)

    @property
    def last(self) -> _Position:
        """Position of the last pending packet."""
        assert self.pending is not None
        return _Position(int(self.pending.key[-1]), self.which)

    def take(self, until: _Position) -> _PendingPackets:
        """Take the pending packets up to a position, inclusive, which is not before the first one."""
        assert self.pending is not None
        batch, key = self.pending.batch, self.pending.key
        count = int(np.searchsorted(key, until.time_ns, side="right" if self.which <= until.which else "left"))
        taken = _PendingPackets(slice_batch(batch, 0, count), key[:count])
        if count == len(key):
            self.load()
        else:
            self.pending = _PendingPackets(slice_batch(batch, count, len(key)), key[count:])
        return taken


class PacketMerger:
    """Merges the packets of readers. `problems` says why merging stopped."""

    def __init__(self, readers: Sequence[AnyReader], store: Store, limits: Limits) -> None:
        self._readers = readers
        self._store = store
        self._limits = limits
        self._spool: Spool | None = None
        self.problems: list[Finding] = []
        self.readers_of = self.numbers_of = np.zeros(0, np.int64)
        """Of each packet of the last batch: which of the readers has it, and its number there, from 0."""
        self._loaded: set[int] = set()

    def take_loaded(self) -> Set[int]:
        """Return which of the readers were read from since the last call, or since the last batch began."""
        loaded, self._loaded = self._loaded, set()
        return loaded

    def batches(self) -> Iterator[PacketBatch]:
        """Yield all packets, numbered over all files, and an empty batch if a growing file had none for a while.

        Raises `CaptureError` if a pipe turns out to be no capture."""
        if len(self._readers) == 1:
            for batch in self._readers[0].batches():
                self._loaded.add(0)
                self._place(np.zeros(len(batch), np.int64), batch.number)
                yield batch
            return
        first = 0
        for batch in self._in_order():
            yield replace(batch, number=np.arange(first, first + len(batch)))
            first += len(batch)

    def _in_order(self) -> Iterator[PacketBatch]:
        timed = [reader for reader in self._readers if reader.has_times]
        rest = [reader for reader in self._readers if not reader.has_times]
        if len(timed) > 1:
            yield from self._of_files()
        for reader in rest if len(timed) > 1 else timed + rest:
            which = self._readers.index(reader)
            for batch in reader.batches():
                self._loaded.add(which)
                self._place(np.full(len(batch), which), batch.number)
                yield batch

    def _place(self, readers: Int64, numbers: Int64) -> None:
        self.readers_of, self.numbers_of = readers, numbers

    def _of_files(self) -> Iterator[PacketBatch]:
        """Yield the packets of files that have times."""
        starts = [(reader.start_ns(), which) for which, reader in enumerate(self._readers) if reader.has_times]
        waiting = [_Position(start, which) for start, which in sorted((s, w) for s, w in starts if s is not None)][::-1]
        files: dict[int, _MergedFile] = {}
        firsts: list[_Position] = []
        lasts: list[_Position] = []
        """Of the pending packets of each file: two heaps."""
        while waiting or lasts:
            if waiting and (not lasts or waiting[-1] < lasts[0]):
                which = waiting.pop().which
                most = max(_LEAST_PACKETS, BATCH_PACKETS // (len(lasts) + 1))
                file = files[which] = _MergedFile(which, self._readers[which], most)
                self._loaded.add(which)
                if file.pending is not None:
                    heapq.heappush(firsts, file.first)
                    heapq.heappush(lasts, file.last)
                continue
            until = heapq.heappop(lasts)
            ready = []
            while firsts and firsts[0] <= until:
                ready.append(heapq.heappop(firsts).which)
            ready.sort()
            yield from self._joined(ready, [files[which].take(until) for which in ready])
            self._loaded.add(until.which)
            if files[until.which].pending is not None:
                heapq.heappush(lasts, files[until.which].last)
            for which in ready:
                if files[which].pending is not None:
                    heapq.heappush(firsts, files[which].first)

    def _joined(self, which: list[int], parts: list[_PendingPackets]) -> Iterator[PacketBatch]:
        """Yield packets of the files in the order of time; those of a single file unchanged."""
        if len(parts) == 1:
            self._place(np.full(len(parts[0].batch), which[0]), parts[0].batch.number)
            yield parts[0].batch
            return
        order = np.argsort(np.concatenate([each.key for each in parts]), kind="stable")
        batches = [each.batch for each in parts]
        pieces = [
            batch.data.data[at : at + size]
            for batch in batches
            for at, size in zip(batch.offset.tolist(), batch.captured.tolist(), strict=True)
        ]
        if self._spool is None:
            self._spool = Spool(self._store, self._limits.spooled_bytes)
        at = self._spool.size
        try:
            for start in range(0, len(order), _COPIED_PACKETS):
                self._spool.append(b"".join(pieces[n] for n in order[start : start + _COPIED_PACKETS].tolist()))
        except SpoolFullError as error:
            words = f"files that overlap in time could not be merged: {error}; they are read one after the other"
            self.problems = [Finding("not-merged", Severity.WARNING, words)]
            for reader, batch in zip(which, batches, strict=True):
                self._place(np.full(len(batch), reader), batch.number)
                yield batch
            return

        def column(name: str) -> Int64:
            return np.concatenate([getattr(batch, name) for batch in batches])[order]

        captured = column("captured")
        self._place(np.repeat(which, [len(batch) for batch in batches])[order], column("number"))
        starts = np.cumsum([0, *(len(batch) for batch in batches)])
        rows = np.argsort(order, kind="stable")
        comments = {
            int(rows[start + row]): text
            for start, batch in zip(starts.tolist(), batches, strict=False)
            for row, text in batch.comments.items()
        }
        yield PacketBatch(
            data=self._spool.data,
            base=self._spool.base,
            number=np.arange(len(order)),
            time_ns=column("time_ns"),
            offset=at + np.cumsum(captured) - captured,
            captured=captured,
            length=column("length"),
            link_type=column("link_type").astype(np.uint16),
            comments=comments,
        )
        self._store.release_pages()

    def close(self) -> None:
        """Release the spool."""
        if self._spool is not None:
            self._spool.close()


def slice_batch(batch: PacketBatch, start: int, end: int) -> PacketBatch:
    """Return the packets of a batch from row `start` to before `end`."""
    if (start, end) == (0, len(batch)):
        return batch
    rows = slice(start, end)
    return PacketBatch(
        batch.data, batch.base, batch.number[rows], batch.time_ns[rows], batch.offset[rows], batch.captured[rows],
        batch.length[rows], batch.link_type[rows],
        {row - start: text for row, text in batch.comments.items() if start <= row < end},
    )  # fmt: skip
