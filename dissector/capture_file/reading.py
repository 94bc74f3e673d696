"""A capture read: each step takes one batch of packets all the way down, to rows of the index."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dissector.capture_file.opened import Opened
from dissector.events import PacketBatch, RunBatch
from dissector.findings import Finding, Severity


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
        self.problems += self._files.problems
        for reader in self._readers:
            self.problems += reader.problems
        self.problems += self._merged.problems
        self._feed(self._transport.finish(), final=True)
        self.problems += _left_out(self._transport.left_out) + _resumed(self._transport.flows.resumed)
        with self._lock:
            self._finish(settled=settled)
        self.problems += _strangers(self._session.strangers_untold)
        left_out = self._transport.resent.left_out
        self.problems += untold({"near-loss": left_out} if left_out else {})
        self._finished = True
        yield Progress(self.done, self.total, self.packets, len(self))

    def go_on(self) -> Iterator[Progress]:
        """Read what there is, and let wait what waits: for who carries it on with packets that come later."""
        yield from self._stored()
        for batch in self._merged.batches():
            if len(batch):
                self._take(batch)
            yield Progress(self.done, self.total, self.packets, len(self))

    def _stored(self) -> Iterator[Progress]:
        """Find the rows of Kafka's own files."""
        for _ in self._files.read():
            yield Progress(self.done, self.total, self.packets, len(self))
        if len(self._files):
            self.start_ns = self._files.exchange(0).row.time_ns

    def _take(self, batch: PacketBatch) -> None:
        if not self.packets and not len(self._files):
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

    def moved(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Where rows stand since reading ended that stood at `rows`, from 0, before: for who kept their numbers."""
        entries = len(self._files)
        return np.where(rows < entries, rows, self._session.table.moved(np.maximum(rows - entries, 0)) + entries)


def _strangers(count: int) -> list[Finding]:
    """A line about connections on Kafka's port that are not Kafka, where there are too many for a row each."""
    if not count:
        return []
    words = f"{count:,} more connections on Kafka's port are not Kafka: they have no row"
    return [Finding("strangers", Severity.WARNING, words)]


def _left_out(reasons: dict[str, int]) -> list[Finding]:
    """A line about packets that may have been Kafka's and were not read."""
    if not reasons:
        return []
    words = ", ".join(f"{reason} {count:,}" for reason, count in sorted(reasons.items()))
    return [
        Finding(
            "packets-left-out", Severity.WARNING, f"{sum(reasons.values()):,} packets were not looked into: {words}"
        )
    ]


def _resumed(connections: int) -> list[Finding]:
    """A line about connections that were taken for new ones, as so many were open that they had been forgotten."""
    if not connections:
        return []
    words = f"{connections:,} connections were idle while too many others were open, and are two each in the list"
    return [Finding("connections-forgotten", Severity.WARNING, words)]


def untold(counts: dict[str, int]) -> list[Finding]:
    """A line about findings that are not kept, as there are too many of a code."""
    words = ", ".join(f"{code} {count:,}" for code, count in sorted(counts.items()))
    return [Finding("findings-left-out", Severity.NOTE, f"more was found than is kept: {words}")] if counts else []
