"""`Capture`: what command line, screen and tables use. Whole captures and single rows; its parts have the rest."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import numpy as np

from dissector.capture.folders import captures_in
from dissector.capture.process_notes import Processes
from dissector.capture_session.checkpoint import load
from dissector.capture_session.connection_index import ConnectionIndex
from dissector.capture_session.exchange_cache import ExchangeCache
from dissector.capture_session.exchange_index import ExchangeIndex
from dissector.capture_session.findings_pass import FindingsPass
from dissector.capture_session.host_names import HostNames
from dissector.capture_session.incremental import IncrementalReading
from dissector.capture_session.many_messages import ManyMessages
from dissector.capture_session.row_frames import RowFrames
from dissector.capture_session.row_space import RowSpace
from dissector.capture_session.stage_pipeline import Progress, Source, StagePipeline, source_names
from dissector.capture_session.tally import OTHER_CONNECTIONS
from dissector.core.arrays import Int64
from dissector.core.files import is_directory
from dissector.core.finding import Finding, Severity
from dissector.core.limits import DEFAULT, Limits
from dissector.detection.decode_as import DecodeAs, of_ports
from dissector.exchange.decoder import ExchangeDecoder
from dissector.exchange.model import Exchange
from dissector.index.shared_state import SharedState

if TYPE_CHECKING:  # importing the parser of filters costs time that a command without a filter need not spend
    from dissector.core.object_graph import Nodes
    from dissector.filter import Filter
    from dissector.filter.selection import SelectedRows
    from dissector.records.values.opener import ValueOpener


class UnmaskedRows(NamedTuple):
    """Rows with their secrets."""

    at: Callable[[range | Int64], Iterator[Exchange]]
    """These rows, ascending, decoded on demand."""
    messages: ManyMessages


AFTER_ALL_PACKETS: Final = 1 << 62
"""The packet number of names that the user gives: names in the packets take precedence."""


class Capture:
    """One or more files of packets, read as one in the order of time; opening reads their beginnings only. A folder
    stands for the captures in it.

    Rows are numbered from 0, ascending in all arrays; `RowSpace` has the details. Secrets (passwords, tokens, keys) are
    masked unless `show_secrets`. `response_to` is the API key and version of responses whose request is missing; hex
    without marks is then the server's. `ports` are those of Kafka's brokers, and `decode_as` says what connections are,
    whatever the bytes look like; TLS is still recognized. `key_logs` are files with TLS secrets. `topics` are names by
    topic id, learned elsewhere. With `resolves` the system's resolver is asked for names of hosts. `opener` opens keys
    and values of records. `checkpoint` continues an earlier capture. Raises `capture.CaptureError` with one line where
    a file can't be opened.
    """

    def __init__(
        self,
        paths: Sequence[Source],
        limits: Limits = DEFAULT,
        *,
        response_to: tuple[int, int] | None = None,
        ports: Set[int] = frozenset(),
        decode_as: Sequence[DecodeAs] = (),
        topics: Mapping[str, str] | None = None,
        key_logs: Sequence[str] = (),
        show_secrets: bool = False,
        resolves: bool = False,
        opener: "ValueOpener | None" = None,
        checkpoint: "Nodes | None" = None,
    ) -> None:
        self.sources = tuple(_with_folders(paths))
        self.names = source_names(self.sources)
        self.limits = limits
        self.response_to = response_to
        self.decode_as = (*of_ports(ports), *decode_as)
        """What the user says that connections are."""
        self._opener = opener
        restored = None if checkpoint is None else load(checkpoint)
        self.pipeline = StagePipeline(
            self.sources, limits, self.decode_as, restored, key_logs=key_logs, response_to=response_to,
            show_secrets=show_secrets,
        )  # fmt: skip
        """Files, stages, and what they count."""
        self.comments = self.pipeline.comments
        """Comments on packets, by the packet's number."""
        indexer, connections = self.pipeline.indexer, self.pipeline.transport.connections
        decoder = restored.decoder if restored is not None else ExchangeDecoder(
            indexer, self.pipeline.store, connections, self.pipeline.framer.ignored, self.pipeline.tls.session,
            response_to, show_secrets=show_secrets,
        )  # fmt: skip
        self.host_names = HostNames(self.pipeline.host_name, resolves=resolves)
        decoder.lookup.host_name = self.host_names
        self.processes = Processes(self.pipeline.process_notes)
        """Which process has an end of a connection."""
        decoder.lookup.process = self.processes
        decoder.lookup.tcp = self.pipeline.transport.facts.of
        self.shows_secrets = decoder.shows_secrets
        named = {topic_id: (AFTER_ALL_PACKETS, name) for topic_id, name in (topics or {}).items()}
        indexer.conversation_state.merge(SharedState(topics=named))
        self._lock = threading.Lock()
        """Held while rows change their numbers, once, at the end of reading, and while somebody depends on them."""
        self.rows = RowSpace(self.pipeline.files, indexer.table)
        """How rows and connections are numbered."""
        self.connections = ConnectionIndex(self.pipeline, self.rows, decoder)
        """Their ends, and what they announced."""
        self.findings = FindingsPass(
            self.pipeline, self.rows, decoder, limits.pending_requests, self._lock,
            None if restored is None else restored.examination,
        )  # fmt: skip
        """What is found in messages, and in several together."""
        self.messages = ManyMessages(self.pipeline, self.rows, decoder, self.findings)
        """Messages of many rows, read at once."""
        self.index = ExchangeIndex(self.pipeline, self.rows, decoder, self.findings, self.messages)
        """Rows as columns, nothing decoded."""
        self.frames = RowFrames(self.pipeline, self.rows)
        """Where frames are in packets, and their bytes."""
        self._decoder = decoder
        self._exchanges = ExchangeCache(self.pipeline, self.rows, decoder, self.findings, self._lock)
        self.incremental = IncrementalReading(self.pipeline, self.rows, self.frames, decoder, self.findings, restored)
        """For a capture that comes in pieces."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the files. Exchanges that were decoded before stay readable."""
        self._exchanges.clear()
        self.pipeline.close()

    def __len__(self) -> int:
        """Rows so far."""
        return len(self.rows)

    @property
    def opener(self) -> "ValueOpener":
        """Opens keys and values of records, by schemas if there are some."""
        from dissector.records.record import PLAIN_OPENER

        return self._opener or PLAIN_OPENER

    # Reading.

    def read(self, *, sort: bool = True) -> Iterator[Progress]:
        """Read to the end, a batch of packets at a step. Rows are there after the step that completed them.

        At the end rows are sorted in the order in which they began, unless their numbers are to stay: not `sort`. A
        step may bring nothing where a file grows. Raises `CaptureError` where a pipe turns out to be no capture."""
        yield from self.pipeline.read_available()
        yield from self._finish(sort=sort)

    def _finish(self, *, sort: bool) -> Iterator[Progress]:
        yield from self.pipeline.flush()
        with self._lock:
            self.pipeline.finish(sort=sort)
            self._exchanges.clear()
            if sort:
                self.findings.restart()
        self.pipeline.count()
        yield self.pipeline.progress

    def completed_rows(self, goes_on: Callable[[], bool] = lambda: False) -> Iterator[Int64]:
        """Read to the end, and yield the rows that each step has completed, often none: every row once, pending ones at
        the end. The oldest of more than `pending_requests` come before they are complete, as `Pairing` gives up
        theirs. If it then `goes_on`, in a capture that continues this one, that one yields the pending ones."""
        known, pending = self.incremental.known_rows, self.incremental.pending_rows

        def completed() -> Int64:
            nonlocal known, pending
            pending = np.concatenate([pending, np.arange(known, len(self))])
            known = len(self)
            complete = self.index.is_complete(pending)
            complete[: -self.limits.pending_requests] = True
            found, pending = pending[complete], pending[~complete]
            return found

        for _ in self.pipeline.read_available():
            yield completed()
        if goes_on():
            self.incremental.leave(pending)
            return
        for _ in self._finish(sort=False):
            yield completed()
        yield pending

    @property
    def is_read(self) -> bool:
        """Whether everything is read."""
        return self.pipeline.is_finished

    @property
    def packets(self) -> int:
        """Packets read."""
        return self.pipeline.packets

    @property
    def start_ns(self) -> int:
        """Time of the first packet."""
        return self.pipeline.start_ns

    @property
    def problems(self) -> list[Finding]:
        """What is wrong with the files themselves, which packets could not be read, and which connections have no row
        or reached no server. Of a capture without rows, `connections.protocols` has all connections."""
        found = self.pipeline.problems + self.pipeline.later_truncations()
        return found if len(self) else [each for each in found if each.code != OTHER_CONNECTIONS]

    # Rows.

    def exchanges(self, filter: str | None = None) -> Iterator[Exchange]:
        """Return all exchanges in order, or those that match a filter. Reads the capture first if it is not read.

        Raises `FilterError` at once, before anything is read."""
        if filter is None:
            self._read_all()
            return (exchange.complete() for exchange in self.at(range(len(self))))
        from dissector.filter import parse

        parsed = parse(filter, self.opener)
        self._read_all()
        for _ in self.findings.examine() if parsed.reads_findings else ():
            pass
        return (exchange.complete() for found in self.select(parsed) for exchange in self.at(found.rows))

    def exchange(self, row: int) -> Exchange:
        """One row, decoded on demand."""
        return self._exchanges.exchange(row)

    def exchange_for_now(self, row: int) -> Exchange:
        """One row as `at` gives it, kept for a while like that of `exchange`: for who asks for a row more than once."""
        return self._exchanges.exchange_for_now(row)

    def at(self, rows: range | Int64) -> Iterator[Exchange]:
        """These rows, decoded on demand; none of them is kept. One that is to outlive the capture has to be made
        `complete`."""
        return self._exchanges.exchanges(rows)

    def unmasked(self) -> "UnmaskedRows":
        """All rows, secrets shown: for rules that judge bytes, and say nothing of what they read."""
        self._read_all()
        decoder = self._decoder.unmasked(self.pipeline.store)
        cache = ExchangeCache(self.pipeline, self.rows, decoder, self.findings, self._lock)
        return UnmaskedRows(cache.exchanges, ManyMessages(self.pipeline, self.rows, decoder, self.findings))

    def select(self, filter: "Filter", start: int = 0, stop: int | None = None) -> "Iterator[SelectedRows]":
        """The rows from `start` to before `stop`, or to the last one that there is now, that match a filter: in short
        steps, decoded on demand. Rows that are not complete yet may match later: see `matching`."""
        from dissector.filter.selection import select

        return select(filter, self, start, len(self) if stop is None else min(stop, len(self)))

    def matching(self, filter: "Filter", rows: Int64) -> Int64:
        """Which of these rows match a filter as they are now."""
        from dissector.filter.selection import matching

        return matching(filter, self, rows)

    def has_warning(self, row: int) -> bool:
        """Whether a row has a finding that is a warning or worse."""
        return self._exchanges.exchange_uncached(row).row.severity in (Severity.WARNING, Severity.ERROR)

    def _read_all(self) -> None:
        if not self.is_read:
            for _ in self.read():
                pass


def _with_folders(sources: Iterable[Source]) -> Iterator[Source]:
    """Yield sources, the captures in a folder in its place. Raises `CaptureError` for a folder without any."""
    for each in sources:
        if isinstance(each, str) and is_directory(each):
            yield from captures_in(each)
        else:
            yield each
