"""A capture read: each step takes one batch of packets all the way down, to rows of the index."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dissector.capture_session.opened import Opened
from dissector.capture_session.tally import CaptureTally
from dissector.core.arrays import Int64
from dissector.core.batches import PacketBatch, RunBatch


class Progress(NamedTuple):
    """How far reading is, in bytes of all files as they lie on the disk; rows so far. `total` is 0 where a pipe, or a
    file that grows, is among them: nobody knows."""

    done: int
    total: int
    packets: int
    exchanges: int


class Reading(Opened):
    """Reads; rows are there as soon as the step that completed them is done."""

    def read(self, *, settled: bool = True) -> Iterator[Progress]:
        """Read it all, a batch of packets at a step; rows are there as soon as the step that completed them is done.

        At the end they are brought in the order in which they began, unless rows that somebody saw are to keep their
        numbers: not `settled`. A step of a file that grows may bring nothing. Raises `CaptureError` where a pipe turns
        out to be no capture."""
        yield from self.go_on()
        yield from self._stored()  # of what a pipe turned out to be
        self._feed(self._transport.finish(), final=True)
        with self._lock:
            self._finish(settled=settled)
        self.tally = self._counted()
        self.problems += self.tally.problems
        self._finished = True
        yield Progress(self.done, self.total, self.packets, len(self))

    def go_on(self) -> Iterator[Progress]:
        """Read what there is, and let wait what waits: for who carries it on with packets that come later."""
        yield from self._stored()
        for batch in self._merged.batches():
            if len(batch):
                self._take(batch)
            yield Progress(self.done, self.total, self.packets, len(self))

    def _counted(self) -> CaptureTally:
        """What could not be read."""
        of_files = [problem for reader in self._readers for problem in reader.problems]
        return CaptureTally(
            self._files.problems + of_files + self._merged.problems, Counter(self._transport.ignored),
            self._transport.flows.resumed, self._session.strangers_untold, self._transport.resent.left_out,
        )  # fmt: skip

    def _stored(self) -> Iterator[Progress]:
        """Find the rows of Kafka's own files."""
        for _ in self._files.read():
            yield Progress(self.done, self.total, self.packets, len(self))
        self.start_ns = self._files.start_ns or self.start_ns

    def _take(self, batch: PacketBatch) -> None:
        if not self.packets and not self._files.start_ns:
            self.start_ns = int(batch.time_ns[0])
        self.comments |= {int(batch.number[row]): text for row, text in batch.comments.items()}
        self.packets += len(batch)
        self._feed(self._transport.feed(batch))

    def _feed(self, runs: RunBatch, *, final: bool = False) -> None:
        self._session.feed(self._splitter.feed(runs))
        left = self._transport.left
        if len(left):
            self._splitter.leave(left)
        while len(found := self._splitter.resync(final=final)):
            self._session.feed(found)
        if len(left):
            self._session.leave(left)

    def _read_all(self) -> None:
        if not self._finished:
            for _ in self.read():
                pass

    def _finish(self, *, settled: bool) -> None:
        """What waited is complete; if settled, rows change their places."""
        self._session.finish(settled=settled)

    def moved(self, rows: Int64) -> Int64:
        """Where rows stand since reading ended that stood at `rows`, from 0, before: for who kept their numbers."""
        entries = len(self._files)
        return np.where(rows < entries, rows, self._session.table.moved(np.maximum(rows - entries, 0)) + entries)
