"""A capture, opened: the stages wired together, its index filled as it is read, its exchanges decoded on demand.

`Capture.read` drives everything; each step takes one batch of packets all the way down. Faces (command line, screen)
talk to this module alone.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self, cast

import numpy as np
import numpy.typing as npt

from dissector import limits
from dissector.analysis.findings.examination import Examination
from dissector.capture.files import Following, make_room, open_capture
from dissector.capture.merge import Merged
from dissector.events import PacketBatch, RunBatch
from dissector.findings import Finding, Severity
from dissector.framing import Splitter
from dissector.session.exchange import Exchange, Row
from dissector.session.figures import ENTRY, Figures, figures
from dissector.session.listing import FACTS, Listing, Value
from dissector.session.lookup import Lookup
from dissector.session.raw import raw_frames
from dissector.session.session import Session
from dissector.session.table import NO_FRAME
from dissector.storage import KafkaFiles
from dissector.store import Store
from dissector.transport import Transport

if TYPE_CHECKING:  # who has no filter does not pay for importing what parses one
    from dissector.analysis.filter import Filter
    from dissector.analysis.filter.columns import IndexRows
    from dissector.analysis.filter.selection import Selected

Rows = npt.NDArray[np.int64]
KEPT_EXCHANGES: Final = 256
"""Decoded exchanges kept for who looks at the same rows again: a screenful and more."""


class Progress(NamedTuple):
    """How far reading is, in bytes of all files as they lie on the disk; rows so far. `total` is 0 where a pipe, or a
    file that grows, is among them: nobody knows."""

    done: int
    total: int
    packets: int
    exchanges: int


class Span(NamedTuple):
    """Where a frame, or what stands between frames, is in its stream."""

    direction: int
    start: int
    """Stream offset of its first byte."""
    size: int
    packet: int
    """With its first byte."""
    of_client: bool


class Capture:
    """One capture of one or more files, in the order of time. Opening reads the files' beginnings only.

    Secrets (passwords, tokens, keys) are masked unless asked for. `asked` is the API key and version that a response
    answers whose request is not there; hex without marks is then the server's. On `ports` Kafka's servers are, whatever
    the content says: but TLS is told. Raises `capture.CaptureError` where a file can't be opened, with one plain line.
    """

    def __init__(
        self,
        paths: Sequence[str | Following],
        bounds: limits.Limits = limits.DEFAULT,
        *,
        asked: tuple[int, int] | None = None,
        ports: Set[int] = frozenset(),
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
        self._session = Session(self._store, self._transport.flows, bounds, ports)
        self._splitter = Splitter(self._store, self._session.recogniser, bounds)
        self._lookup = Lookup(
            self._session, self._store, self._transport.flows, self._splitter.ignored, asked, show_secrets=show_secrets
        )
        self._listing = Listing(self._session, self._lookup)
        self._examination: Examination | None = None
        self._look = lru_cache(maxsize=KEPT_EXCHANGES)(self._exchange)
        self.bounds = bounds
        self.ports = ports
        self.names = [path.path if isinstance(path, Following) else path for path in paths]
        self.comments: dict[int, str] = {}
        """What somebody wrote on packets, by the packet's number."""
        self.problems: list[Finding] = []
        """What is wrong with the files themselves, and which packets could not be looked into."""
        self._finished = False
        self._lock = threading.Lock()
        """Rows change their places once, at the end of reading, while a screen may look at them."""
        self._examining = threading.Lock()
        """Whoever does a step of the examination holds it."""
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

    def read(self, *, settled: bool = True) -> Iterator[Progress]:
        """Read it all, a batch of packets at a step; rows are there as soon as the step that completed them is done.

        At the end they are brought in the order in which they began, unless rows that somebody saw are to keep their
        numbers: not `settled`. A step of a file that grows may bring nothing. Raises `CaptureError` where a pipe turns
        out to be no capture."""
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
        self._feed(self._transport.finish(), final=True)
        self.problems += _left_out(self._transport.left_out) + _resumed(self._transport.flows.resumed)
        with self._lock:
            self._session.finish(settled=settled)
            self._look.cache_clear()
            if settled:
                self._examination = None  # rows have changed their places
        self.problems += _strangers(self._session.strangers_untold)
        left_out = self._transport.resent.left_out
        self.problems += _untold({"near-loss": left_out} if left_out else {})
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

    def _feed(self, runs: RunBatch, *, final: bool = False) -> None:
        self._session.feed(self._splitter.feed(runs))
        left = self._transport.left
        if len(left):
            self._splitter.leave(left)
        while len(found := self._splitter.resync(final=final)):
            self._session.feed(found)
        if len(left):
            self._session.leave(left)

    @property
    def is_read(self) -> bool:
        """Whether all is read."""
        return self._finished

    @property
    def grows(self) -> bool:
        """Whether packets come when they like, from a pipe or from who captures them."""
        return any(reader.grows for reader in self._readers)

    @property
    def total(self) -> int:
        """Bytes of all files; 0 where one of them has no end yet."""
        return 0 if self.grows else sum(reader.total for reader in self._readers)

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
    def protocols(self) -> dict[str, int]:
        """How many connections speak what, by the protocol's name, the most frequent first.

        ``{"TLS": 12, "Kafka": 3}``; "unknown" are those with data that tells nothing, "without data" those without."""
        return self._session.recogniser.protocols()

    @property
    def ignored(self) -> dict[str, int]:
        """Packets that are not TCP, or could not be read, by reason."""
        return self._transport.ignored

    def exchange(self, number: int) -> Exchange:
        """Row `number`, from 0, decoded on demand."""
        return self._look(number, self._answered_by(number))

    def exchanges(self, filter: str | None = None) -> Iterator[Exchange]:  # noqa: A002  # the promised name
        """All exchanges in order, or those that fit a filter, reading the capture first if nobody has.

        Raises `analysis.filter.FilterError` at once, before anything is read."""
        if filter is None:
            self._read_all()
            return self.between(0, len(self))
        from dissector.analysis.filter import parse

        wanted = parse(filter)
        self._read_all()
        for _ in self.examine() if wanted.asks_findings else ():
            pass
        return (exchange for found in self.select(wanted) for exchange in self.at(found.rows))

    def _read_all(self) -> None:
        if not self._finished:
            for _ in self.read():
                pass

    def between(self, start: int, stop: int) -> Iterator[Exchange]:
        """The exchanges from row `start`, from 0, to before `stop`, once all is read; none of them is kept."""
        return self.at(range(start, stop))

    def at(self, rows: range | Rows) -> Iterator[Exchange]:
        """The exchanges of these rows, from 0 and ascending; none of them is kept."""
        stored, indexed = self._parted(rows)
        for number in stored:
            yield self._files.exchange(int(number))
        for row, exchange in zip(indexed, self._lookup.exchanges(indexed), strict=True):
            self._mark(exchange, int(row))
            if len(self._files):
                self._count_files(exchange)
            yield exchange

    def _parted(self, rows: range | Rows) -> tuple[range | Rows, range | Rows]:
        """The entries of files among rows; and the others, as rows of the index."""
        entries = len(self._files)
        if isinstance(rows, range):
            indexed = range(max(0, rows.start - entries), max(0, rows.stop - entries))
            return range(rows.start, min(rows.stop, entries)), indexed
        return rows[rows < entries], rows[rows >= entries] - entries

    def select(self, filter: "Filter", start: int = 0, stop: int | None = None) -> "Iterator[Selected]":  # noqa: A002
        """The rows from `start` to before `stop`, or to the last one that there is now, that fit a filter, from 0 and
        ascending: in short steps, decoded on demand. Rows that are not complete yet may fit later: see `matching`."""
        from dissector.analysis.filter.selection import select

        return select(filter, self, start, len(self) if stop is None else min(stop, len(self)))

    def matching(self, filter: "Filter", rows: Rows) -> Rows:  # noqa: A002
        """Which of these rows, from 0 and ascending, fit a filter as they are now."""
        from dissector.analysis.filter.selection import matching

        return matching(filter, self, rows)

    def index_rows(self, rows: range | Rows) -> "tuple[int, IndexRows]":
        """How many of these rows, which stand first, are entries of files; and the others as columns of the index."""
        from dissector.analysis.filter.columns import IndexRows

        stored, indexed = self._parted(rows)
        columns = IndexRows(self._session, self._lookup, indexed, self.start_ns, len(self._files), self._files.count)
        return len(stored), columns

    def row(self, number: int) -> Row:
        """Row `number`, from 0, for a list; its frames are decoded for the words."""
        return self.exchange(number).row

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

    def spans(self, number: int) -> list[Span]:
        """Where what a row holds stands in the streams: nowhere for an entry of a file of Kafka's."""
        at = number - len(self._files)
        if at < 0:
            return []
        table, frames = self._session.table, self._session.frames
        sides = ((int(table.request.values[at]), True), (int(table.response.values[at]), False))
        columns = (frames.direction.values, frames.start.values, frames.size.values, frames.packet.values)
        spans = []
        for frame, of_client in sides:
            if frame != NO_FRAME:
                direction, start, size, packet = (int(column[frame]) for column in columns)
                spans.append(Span(direction, start, size, packet, of_client))
        return spans

    def raw(self, rows: npt.NDArray[np.int64]) -> Iterator[tuple[bytes, bytes]]:
        """The bytes of these rows, from 0: of the request and of the response. Secrets are in them: they are to be
        looked through, and not for anybody's eyes."""
        entries = len(self._files)
        for number in rows[rows < entries].tolist():
            stored = self._files.exchange(number).request
            yield stored.data if stored is not None else b"", b""
        yield from raw_frames(self._session.table, self._session.frames, self._store, rows[rows >= entries] - entries)

    def moved(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Where rows stand since reading ended that stood at `rows`, from 0, before: for who kept their numbers."""
        entries = len(self._files)
        return np.where(rows < entries, rows, self._session.table.moved(np.maximum(rows - entries, 0)) + entries)

    def examine(self) -> Iterator[Progress]:
        """Find what only several rows together tell; `done` and `total` are rows here. From then on exchanges have it
        in their findings. Called again where a capture grows, it goes on where it stopped, with rows that are complete;
        once reading is over it takes them all. Several threads may do so at a time: they take turns, step by step."""
        if self._examination is None:
            self._examination = Examination(
                self._session, self._store, self._lookup, self._transport.flows, self._transport.resent
            )
        entries = len(self._files)
        with self._lock:
            self._lookup.learn()
        steps = self._examination.go_on(self.bounds.pending_requests, final=self._finished)
        while True:
            with self._examining:
                rows = next(steps, None)
            if rows is None:
                break
            self._look.cache_clear()
            yield Progress(entries + rows, len(self), self.packets, len(self))
        if self._finished:
            self.problems += _untold(self._examination.found.take_left_out())

    def troubles(self) -> list[tuple[int, Finding]]:
        """All that `examine` has found so far, with rows from 0, by row."""
        if self._examination is None:
            return []
        entries = len(self._files)
        with self._examining:
            return [(entries + row, finding) for row, finding in self._examination.found.all()]

    def _mark(self, exchange: Exchange, row: int) -> Exchange:
        """Add what was found about a row of the index."""
        found = self._examination.found.of(row) if self._examination is not None else []
        if found:
            exchange.mark(found)
        return exchange

    def learn(self) -> None:
        """Learn now what the conversations teach, and not when the first exchange is decoded."""
        self._lookup.learn()

    def columns(self, names: Sequence[str], start: int, stop: int) -> list[list[Value]]:
        """Columns of the index by name (`session.listing.FACTS`), with the rows from `start` to before `stop`."""
        return self.columns_at(names, range(start, stop))

    def columns_at(self, names: Sequence[str], rows: range | Rows) -> list[list[Value]]:
        """Columns of the index by name, with these rows, from 0 and ascending."""
        entries = len(self._files)
        stored, indexed = self._parted(rows)
        exchanges = [self._files.exchange(int(number)) for number in stored]
        columns: list[list[Value]] = [[FACTS[name](exchange) for exchange in exchanges] for name in names]
        if len(indexed):
            found = self._listing.columns(names, indexed)
            added = {"number": entries, "connection": self._files.count}
            for name, column, more in zip(names, columns, found, strict=True):
                column += [cast(int, value) + added[name] for value in more] if entries and name in added else more
        return columns

    def figures(self, rows: npt.NDArray[np.int64]) -> Figures:
        """What the index has of these rows, from 0, as numbers; an entry's size stands where a request's does."""
        entries = len(self._files)
        is_entry = rows < entries
        if not is_entry.any():
            found = figures(self._session.table, self._session.frames, rows - entries)
            return found._replace(connection=found.connection + self._files.count)
        others = self.figures(rows[~is_entry])
        columns = []
        for name, column in zip(Figures._fields, others, strict=True):
            whole = np.full(
                len(rows), -1 if name in ("api_key", "version", "answered_size") else ENTRY if name == "kind" else 0
            )
            whole[~is_entry] = column
            columns.append(whole)
        made = Figures(*columns)
        made.asked_size[is_entry] = self._files.sizes()[rows[is_entry]]
        made.connection[is_entry] = [self._files.file_of(number) for number in rows[is_entry].tolist()]
        return made

    @property
    def nodes(self) -> Mapping[int, str]:
        """The addresses (`host:port`) of nodes, by their ids, as far as the conversations teach them."""
        self.learn()
        return self._session.knowledge.nodes

    def client_id(self, number: int) -> str | None:
        """The client id of that number in `Figures`."""
        return self._session.client_ids.texts[number]

    def ends(self, connection: int) -> tuple[str, str]:
        """The client's end of a connection and the server's, as `host:port`; of a file of Kafka's, its name."""
        at = connection - 1 - self._files.count
        return self._lookup.ends(at) if at >= 0 else ("", self._files.name_of(connection))

    def offered(self, connection: int) -> Mapping[int, tuple[int, int]]:
        """The versions that the server of a connection said it has, by API key; empty where it was not asked."""
        self.learn()
        return self._session.knowledge.offered(connection - 1 - self._files.count)

    def software(self, connection: int) -> tuple[str, str]:
        """Name and version of the software that the client of a connection said it is (KIP-511); else empty."""
        self.learn()
        return self._session.knowledge.software(connection - 1 - self._files.count)

    def sizes(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        """Bytes of each row from `start` to before `stop`, `(n,)`: of its two frames, or of its entry."""
        entries = len(self._files)
        frames = self._lookup.sizes(max(0, start - entries), max(0, stop - entries))
        return np.concatenate((self._files.sizes()[start:stop], frames))

    def is_trouble(self, number: int) -> bool:
        """Whether a row has a finding that is a warning or worse."""
        return self._exchange(number).row.severity in (Severity.WARNING, Severity.ERROR)

    def _answered_by(self, number: int) -> int:
        """The frame that answers a row: what was decoded before it came is not what is there now."""
        entries = len(self._files)
        return int(self._session.table.response.values[number - entries]) if number >= entries else 0

    def _exchange(self, number: int, answered_by: int = 0) -> Exchange:
        entries = len(self._files)
        if number < entries:
            return self._files.exchange(number)
        with self._lock:
            exchange = self._mark(self._lookup.exchange(number - entries), number - entries)
        if entries:
            self._count_files(exchange)
        return exchange

    def _count_files(self, exchange: Exchange) -> None:
        """Let the row of an exchange stand behind the entries of files."""
        facts = exchange.facts
        number, connection = facts.number + len(self._files), facts.connection + self._files.count
        exchange.facts = facts._replace(number=number, connection=connection)


def _strangers(count: int) -> list[Finding]:
    """A line about connections on Kafka's port that are not Kafka, where there are too many for a row each."""
    if not count:
        return []
    words = f"{count:,} more connections on Kafka's port are not Kafka: they have no row"
    return [Finding("strangers", Severity.WARNING, words)]


def _untold(counts: dict[str, int]) -> list[Finding]:
    """A line about findings that are not kept, as there are too many of a code."""
    words = ", ".join(f"{code} {count:,}" for code, count in sorted(counts.items()))
    return [Finding("findings-left-out", Severity.NOTE, f"more was found than is kept: {words}")] if counts else []


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
