"""A capture, opened: the stages wired together, its index filled as it is read, its exchanges decoded on demand.

`Capture.read` drives everything; each step takes one batch of packets all the way down. Faces (command line, screen)
talk to this module alone.
"""

import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache
from types import TracebackType
from typing import Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from dissector import limits
from dissector.capture.files import open_capture
from dissector.events import RunBatch
from dissector.findings import Finding, Severity
from dissector.framing import Splitter
from dissector.session.exchange import Exchange, Row
from dissector.session.lookup import Lookup
from dissector.session.session import Session
from dissector.storage import KafkaFiles
from dissector.store import Store
from dissector.transport import Transport

KEPT_EXCHANGES: Final = 256
"""Decoded exchanges kept for who looks at the same rows again: a screenful and more."""


class Progress(NamedTuple):
    """How far reading is, in bytes of all files; rows so far."""

    done: int
    total: int
    packets: int
    exchanges: int


class Capture:
    """One capture of one or more files, in the order given. Opening reads the files' beginnings only.

    Secrets (passwords, tokens, keys) are masked unless asked for. `asked` is the API key and version that a response
    answers whose request is not there; hex without marks is then the server's. Raises `capture.CaptureError` where a
    file can't be opened, with one plain line.
    """

    def __init__(
        self,
        paths: Sequence[str],
        bounds: limits.Limits = limits.DEFAULT,
        *,
        asked: tuple[int, int] | None = None,
        show_secrets: bool = False,
    ) -> None:
        self._store = Store()
        self._files = KafkaFiles(show_secrets=show_secrets)
        """What has no packets: its rows come before those of exchanges."""
        self._readers = [
            open_capture(path, self._store, self._files.take, unmarked_from_client=asked is None) for path in paths
        ]
        self._transport = Transport(self._store, bounds)
        self._session = Session(self._store, self._transport.flows, bounds)
        self._splitter = Splitter(self._store, self._session.recogniser, bounds)
        self._lookup = Lookup(
            self._session, self._transport.flows, self._splitter.ignored, asked, show_secrets=show_secrets
        )
        self._look = lru_cache(maxsize=KEPT_EXCHANGES)(self._exchange)
        self.names = list(paths)
        self.problems: list[Finding] = []
        """What is wrong with the files themselves, and which packets could not be looked into."""
        self._finished = False
        self._lock = threading.Lock()
        """Rows change their places once, at the end of reading, while a screen may look at them."""
        self.packets = 0
        self.start_ns = 0
        """Time of the first packet."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the files. Exchanges that were decoded before stay readable."""
        self._look.cache_clear()
        self._store.release()
        for reader in self._readers:
            reader.close()

    def __len__(self) -> int:
        return len(self._files) + len(self._session.table)

    def read(self, *, settled: bool = True) -> Iterator[Progress]:
        """Read it all, a batch of packets at a step; rows are there as soon as the step that completed them is done.

        At the end they are brought in the order in which they began, unless rows that somebody saw are to keep their
        numbers: not `settled`."""
        total = self.total
        done = 0
        for _ in self._files.read():
            yield Progress(0, total, 0, len(self))
        self.problems += self._files.problems
        if len(self._files):
            self.start_ns = self.row(0).time_ns
        for reader in self._readers:
            for batch in reader.batches(self.packets):
                if not self.packets and len(batch) and not len(self._files):
                    self.start_ns = int(batch.time_ns[0])
                self.packets += len(batch)
                self._feed(self._transport.feed(batch))
                yield Progress(done + reader.done, total, self.packets, len(self))
            self.problems += reader.problems
            done += reader.total
        self._feed(self._transport.finish())
        self._session.feed(self._splitter.finish())
        self.problems += _left_out(self._transport.left_out)
        with self._lock:
            self._session.finish(settled=settled)
            self._look.cache_clear()
        self._finished = True
        yield Progress(total, total, self.packets, len(self))

    def _feed(self, runs: RunBatch) -> None:
        self._session.feed(self._splitter.feed(runs))
        while len(found := self._splitter.resync()):
            self._session.feed(found)

    @property
    def total(self) -> int:
        """Bytes of all files."""
        return sum(reader.total for reader in self._readers)

    @property
    def connections(self) -> int:
        """TCP connections seen, of any protocol."""
        return len(self._transport.flows)

    @property
    def ignored(self) -> dict[str, int]:
        """Packets that are not TCP, or could not be read, by reason."""
        return self._transport.ignored

    def exchange(self, number: int) -> Exchange:
        """Row `number`, from 0, decoded on demand."""
        return self._look(number)

    def exchanges(self) -> Iterator[Exchange]:
        """All exchanges in order, reading the capture first if nobody has."""
        if not self._finished:
            for _ in self.read():
                pass
        return map(self._exchange, range(len(self)))

    def row(self, number: int) -> Row:
        """Row `number`, from 0, for a list; its frames are decoded for the words."""
        return self._look(number).row

    def is_complete(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which rows nothing is added to any more, `(n,)`: they can be shown as they are before reading ends."""
        entries = len(self._files)
        complete: npt.NDArray[np.bool_] = rows < entries
        complete[~complete] = self._session.is_complete(rows[~complete] - entries)
        return complete

    def connection_of(self, number: int) -> int:
        """The connection of a row, as `Row.connection` counts them; decodes nothing."""
        entries = len(self._files)
        if number < entries:
            return self._files.file_of(number)
        return int(self._session.table.connection.values[number - entries]) + 1 + self._files.count

    def is_trouble(self, number: int) -> bool:
        """Whether a row has a finding that is a warning or worse."""
        return self._exchange(number).row.severity in (Severity.WARNING, Severity.ERROR)

    def _exchange(self, number: int) -> Exchange:
        entries = len(self._files)
        if number < entries:
            return self._files.exchange(number)
        with self._lock:
            exchange = self._lookup.exchange(number - entries)
        if entries:
            row = exchange.row
            exchange.row = row._replace(number=number + 1, connection=row.connection + self._files.count)
        return exchange


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
