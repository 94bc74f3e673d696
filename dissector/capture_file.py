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
from dissector.capture.files import open_capture
from dissector.events import RunBatch
from dissector.findings import Finding, Severity
from dissector.framing import Splitter
from dissector.protocol.message import API_VERSIONS, Shape, request_shape, response_shape
from dissector.protocol.schema.loader import api
from dissector.session.exchange import Exchange, Message, Row, worst
from dissector.session.session import Session
from dissector.session.summary import error_findings, info
from dissector.session.table import NO_FRAME, Flag, RowKind
from dissector.store import Store
from dissector.transport import Transport

KEPT_EXCHANGES: Final = 256
"""Decoded exchanges kept for who looks at the same rows again: a screenful and more."""
_UNKNOWN: Final = Shape("ResponseHeader", 0, None, NO_FRAME)


class Progress(NamedTuple):
    """How far reading is, in bytes of all files; rows so far."""

    done: int
    total: int
    packets: int
    exchanges: int


class Capture:
    """One capture of one or more files, in the order given. Opening reads the files' beginnings only.

    Raises `capture.CaptureError` where a file can't be opened, with one plain line.
    """

    def __init__(self, paths: Sequence[str], bounds: limits.Limits = limits.DEFAULT) -> None:
        self._store = Store()
        self._readers = [open_capture(path, self._store) for path in paths]
        self._transport = Transport(self._store, bounds)
        self._session = Session(self._store, self._transport.flows, bounds)
        self._splitter = Splitter(self._store, self._session.recogniser, bounds)
        self._look = lru_cache(maxsize=KEPT_EXCHANGES)(self._exchange)
        self._bounds = bounds
        self.names = list(paths)
        self.problems: list[Finding] = []
        """What is wrong with the files themselves."""
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
        return len(self._session.table)

    def read(self) -> Iterator[Progress]:
        """Read it all, a batch of packets at a step; rows are there as soon as the step that completed them is done."""
        total = sum(reader.total for reader in self._readers)
        done = 0
        for reader in self._readers:
            for batch in reader.batches(self.packets):
                if not self.packets and len(batch):
                    self.start_ns = int(batch.time_ns[0])
                self.packets += len(batch)
                self._feed(self._transport.feed(batch))
                yield Progress(done + reader.done, total, self.packets, len(self))
            self.problems += reader.problems
            done += reader.total
        self._feed(self._transport.finish())
        self._session.feed(self._splitter.finish())
        with self._lock:
            self._session.finish(self._splitter.ignored.values)
            self._look.cache_clear()
        self._finished = True
        yield Progress(total, total, self.packets, len(self))

    def _feed(self, runs: RunBatch) -> None:
        self._session.feed(self._splitter.feed(runs))
        while len(found := self._splitter.resync()):
            self._session.feed(found)

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
        return int(self._session.table.connection.values[number]) + 1

    def is_trouble(self, number: int) -> bool:
        """Whether a row has a finding that is a warning or worse."""
        return self._exchange(number).row.severity in (Severity.WARNING, Severity.ERROR)

    def _exchange(self, number: int) -> Exchange:
        with self._lock:
            return self._decoded(number)

    def _decoded(self, number: int) -> Exchange:
        table = self._session.table
        kind = RowKind(int(table.kind.values[number]))
        if kind is not RowKind.EXCHANGE:
            return self._other(number, kind)
        key, version = int(table.api_key.values[number]), int(table.version.values[number])
        request = self._message(int(table.request.values[number]), request_shape(key, version) if key >= 0 else _UNKNOWN)
        response = self._response(int(table.response.values[number]), key, version)
        known = api(key)
        found = self._findings(number, request, response)
        words = info(request.body if request else {}, response.body if response else {})
        exchange = Exchange(self._row(number, kind), key if key >= 0 else None, request, response, found)
        exchange.row = exchange.row._replace(
            api=known.name if known else f"API {key}" if key >= 0 else "?",
            version=version if key >= 0 else None,
            correlation_id=int(table.correlation_id.values[number]),
            client_id=self._session.client_ids.texts[int(table.client_id.values[number])],
            request_size=request.size if request else None,
            response_size=response.size if response else None,
            latency_ns=response.time_ns - request.time_ns if request and response else None,
            info=words or next((f.message for f in found), ""),
            severity=worst(exchange.findings),
        )
        return exchange

    def _response(self, frame: int, key: int, version: int) -> Message | None:
        if frame == NO_FRAME:
            return None
        data = self._session.frames.read(frame)[0] if key == API_VERSIONS else b""
        return self._message(frame, response_shape(key, version, data))

    def _message(self, frame: int, shape: Shape) -> Message | None:
        if frame == NO_FRAME:
            return None
        frames = self._session.frames
        data, whole = frames.read(frame)
        return Message(int(frames.time_ns.values[frame]), int(frames.size.values[frame]), data, whole, shape)

    def _row(self, number: int, kind: RowKind) -> Row:
        """What a row of any kind has."""
        table, frames = self._session.table, self._session.frames
        connection = int(table.connection.values[number])
        request, response = int(table.request.values[number]), int(table.response.values[number])
        first = request if request != NO_FRAME else response
        time_ns = int(frames.time_ns.values[first]) if first != NO_FRAME else self.start_ns
        ends = [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self._ends(connection)]
        return Row(
            number + 1, kind.name.lower(), time_ns, connection + 1, ends[0], ends[1],
            "", None, None, None, None, None, None, "", None,
        )  # fmt: skip

    def _ends(self, connection: int) -> tuple[tuple[str, int], tuple[str, int]]:
        """The client's end, then the server's."""
        one, other = self._transport.flows.endpoints(connection)
        side = self._session.recogniser.client_side.get(connection)
        if side is None:
            kafka = self._session.recogniser.kafka_side(connection)
            side = 1 - kafka if kafka is not None else 0
        return (one, other) if side == 0 else (other, one)

    def _other(self, number: int, kind: RowKind) -> Exchange:
        """A row that is no exchange: a gap, bytes without frames, another protocol."""
        table, frames = self._session.table, self._session.frames
        request, response = int(table.request.values[number]), int(table.response.values[number])
        row = self._row(number, kind)
        if request == response == NO_FRAME:
            return Exchange(self._stranger(row, kind), None, None, None)
        frame = request if request != NO_FRAME else response
        size = int(frames.size.values[frame])
        words = {
            RowKind.GAP: f"{size:,} bytes were not captured",
            RowKind.UNPARSED: f"{size:,} bytes without a frame that could be told",
        }[kind]
        finding = Finding(kind.name.lower(), Severity.ERROR, words)
        row = row._replace(
            api=kind.name.lower(), info=words, severity=finding.severity,
            request_size=size if request != NO_FRAME else None, response_size=size if response != NO_FRAME else None,
        )  # fmt: skip
        message = self._message(frame, _UNKNOWN) if kind is RowKind.UNPARSED else None
        sides = (message, None) if request != NO_FRAME else (None, message)
        return Exchange(row, None, *sides, [finding])

    def _stranger(self, row: Row, kind: RowKind) -> Row:
        """A connection on Kafka's port that speaks something else."""
        connection = row.connection - 1
        sizes = [int(self._splitter.ignored.values[2 * connection + side]) for side in (0, 1)]
        if self._transport.flows.endpoints(connection)[0][1] in {int(row.server.rpartition(":")[2])}:
            sizes.reverse()
        words = "encrypted: TLS" if kind is RowKind.TLS else "not Kafka"
        return row._replace(
            api=kind.name.lower(), time_ns=self._transport.flows.first_time_ns(connection), info=words,
            request_size=sizes[0], response_size=sizes[1], severity=Severity.WARNING,
        )  # fmt: skip

    def _findings(self, number: int, request: Message | None, response: Message | None) -> list[Finding]:
        """What only both sides together tell."""
        flags = int(self._session.table.flags.values[number])
        if request is None:
            return [Finding("orphan", Severity.WARNING, "response without a request in this capture", "response")]
        if response is None:
            if flags & Flag.NO_RESPONSE_EXPECTED:
                return [Finding("no-response-expected", Severity.NOTE, "acks=0: the broker sends no response", "request")]
            return [Finding("unanswered", Severity.WARNING, "no response in this capture", "request")]
        return [finding.under("response") for finding in error_findings(response.body)]
