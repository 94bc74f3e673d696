"""A capture, opened: the stages wired together, its index filled as it is read, its exchanges decoded on demand.

`Capture.read` drives everything; each step takes one batch of packets all the way down. Faces (command line, screen)
talk to this module alone.
"""

import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache
from types import TracebackType
from typing import Final, NamedTuple, Self

from dissector import limits
from dissector.capture.files import Following, make_room, open_capture
from dissector.capture.merge import Merged
from dissector.events import PacketBatch, RunBatch
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
    """How far reading is, in bytes of all files as they lie on the disk; rows so far. `total` is 0 where a pipe, or a
    file that grows, is among them: nobody knows."""

    done: int
    total: int
    packets: int
    exchanges: int


class Capture:
    """One capture of one or more files, in the order of time. Opening reads the files' beginnings only.

    Secrets (passwords, tokens, keys) are masked unless asked for. `asked` is the API key and version that a response
    answers whose request is not there; hex without marks is then the server's. Raises `capture.CaptureError` where a
    file can't be opened, with one plain line.
    """

    def __init__(
        self,
        paths: Sequence[str | Following],
        bounds: limits.Limits = limits.DEFAULT,
        *,
        asked: tuple[int, int] | None = None,
        show_secrets: bool = False,
    ) -> None:
        self._store = Store()
        self._files = KafkaFiles(show_secrets=show_secrets)
        """What has no packets: its rows come before those of exchanges."""
        make_room(len(paths))
        self._readers = [
            open_capture(path, self._store, self._files.take, unmarked_from_client=asked is None, limits=bounds)
            for path in paths
        ]
        self._merged = Merged(self._readers, self._store, bounds)
        self._transport = Transport(self._store, bounds)
        self._session = Session(self._store, self._transport.flows, bounds)
        self._splitter = Splitter(self._store, self._session.recogniser, bounds)
        self._lookup = Lookup(
            self._session, self._transport.flows, self._splitter.ignored, asked, show_secrets=show_secrets
        )
        self._look = lru_cache(maxsize=KEPT_EXCHANGES)(self._exchange)
        self.names = [path.path if isinstance(path, Following) else path for path in paths]
        self.comments: dict[int, str] = {}
        """What somebody wrote on packets, by the packet's number."""
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
        self._merged.close()
        for reader in self._readers:
            reader.close()

    def __len__(self) -> int:
        return len(self._files) + len(self._session.table)

    def read(self) -> Iterator[Progress]:
        """Read it all, a batch of packets at a step; rows are there as soon as the step that completed them is done.

        A step of a file that grows may bring nothing. Raises `CaptureError` where a pipe turns out to be no capture."""
        yield from self._stored()
        for batch in self._merged.batches():
            if len(batch):
                self._take(batch)
            yield Progress(self.done, self.total, self.packets, len(self))
        yield from self._stored()  # of what a pipe turned out to be
        self.problems += self._files.problems
        for reader in self._readers:
            self.problems += reader.problems
        self.problems += self._merged.problems
        self._feed(self._transport.finish())
        self._session.feed(self._splitter.finish())
        self.problems += _left_out(self._transport.left_out)
        with self._lock:
            self._session.finish()
            self._look.cache_clear()
        self._finished = True
        yield Progress(self.done, self.total, self.packets, len(self))

    def _stored(self) -> Iterator[Progress]:
        """Find the rows of Kafka's own files."""
        for _ in self._files.read():
            yield Progress(self.done, self.total, self.packets, len(self))
        if len(self._files):
            self.start_ns = self.row(0).time_ns

    def _take(self, batch: PacketBatch) -> None:
        if not self.packets and not len(self._files):
            self.start_ns = int(batch.time_ns[0])
        self.comments |= {self.packets + row: text for row, text in batch.comments.items()}
        self.packets += len(batch)
        self._feed(self._transport.feed(batch))

    def _feed(self, runs: RunBatch) -> None:
        self._session.feed(self._splitter.feed(runs))
        while len(found := self._splitter.resync()):
            self._session.feed(found)

    @property
    def total(self) -> int:
        """Bytes of all files; 0 where one of them has no end yet."""
        return 0 if any(reader.grows for reader in self._readers) else sum(reader.total for reader in self._readers)

    @property
    def done(self) -> int:
        """Bytes of all files that are read."""
        return sum(reader.done for reader in self._readers)

    @property
    def remarks(self) -> list[str]:
        """What somebody wrote on the capture as a whole, or on its interfaces."""
        return [text for reader in self._readers if reader.notes for text in reader.notes.remarks]

    @property
    def host_names(self) -> dict[str, list[str]]:
        """What the files say that hosts are called, by address."""
        return {
            address: names for reader in self._readers if reader.notes for address, names in reader.notes.names.items()
        }

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
