"""What detectors may ask of a capture besides its rows (`FindingContext`): of the index, of TCP, of decoded messages.

Invariant: an answer is as new as the index was when `learn` was called last.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Final

import numpy as np

from dissector.capture.injection_notes import InjectionNote
from dissector.core.arrays import Bool, Int64
from dissector.core.batches import NEVER
from dissector.core.columns import is_in, unique
from dissector.core.finding import Finding
from dissector.core.store import Store
from dissector.detection.connections import Connections
from dissector.exchange.decoder import ExchangeDecoder
from dissector.exchange.model import ExchangeMessage
from dissector.findings.framework.advertised_brokers import AdvertisedBrokers, Brokers
from dissector.findings.framework.connection_rows import ConnectionRows
from dissector.findings.framework.examined_rows import ExaminedRows, LazyColumns
from dissector.findings.framework.fitting_requests import FittingRequests, message_faults
from dissector.findings.framework.injected_rows import InjectedRows
from dissector.index.exchange_table import NO_FRAME
from dissector.index.frame_table import FrameTable
from dissector.index.indexer import Indexer
from dissector.protocol.message import Values
from dissector.protocol.schema.api_keys import ApiKey
from dissector.tls.plaintext import Plaintext
from dissector.transport import Retransmissions
from dissector.transport.deliveries import Deliveries, Delivery, EqualStarts, EventKind

MAX_CLIENTS: Final = 4_096
"""Connections whose client's name is cached."""
_TABLE_COLUMNS: Final = frozenset((
    "kind", "connection", "packet", "api_key", "version", "correlation_id", "client_id", "flags", "request", "response",
))  # fmt: skip
_FRAME_COLUMNS: Final[Mapping[str, Callable[[FrameTable, Int64], Int64]]] = {
    "ns": lambda frames, of: frames.time_ns.values[of],
    "packet": lambda frames, of: frames.packet.values[of],
    "start": lambda frames, of: frames.start.values[of],
    "address": FrameTable.contiguous,
    "size": lambda frames, of: frames.size.values[of],
    "transfer_ns": FrameTable.transfer_ns,
}
"""Those of a request or a response, without that word in their names."""


class CaptureContext:
    """Answers for a capture, which may still grow, or with `is_part` for a capture partition."""

    def __init__(
        self, index: Indexer, store: Store, decoder: ExchangeDecoder, connections: Connections,
        retransmissions: Retransmissions, deliveries: Deliveries, plaintext: Plaintext, injected: InjectedRows, *,
        is_part: bool,
    ) -> None:  # fmt: skip
        self._index = index
        self._decoder = decoder
        self._connections = connections
        self._retransmissions = retransmissions
        self._deliveries = deliveries
        self._plaintext = plaintext
        self._injected = injected
        self.is_part = is_part
        self.first_pending_packet = NEVER
        self._copies: tuple[EqualStarts | None, Int64] = (None, np.zeros(0, np.int64))
        """Those of the connections that begin alike that may be copies."""
        self._brokers = AdvertisedBrokers(index, store)
        self._fitting = FittingRequests(index, store)
        self._generation = -1
        self.client = lru_cache(maxsize=MAX_CLIENTS)(self._client)
        self._connection_rows = ConnectionRows(index, self.columns)

    def columns(self, row: Int64) -> ExaminedRows:
        """Return rows of the index with their columns."""
        return ExaminedRows(lambda rows, name: row if name == "row" else self._column(rows, name))

    def _column(self, rows: LazyColumns, name: str) -> Int64:
        table, frames = self._index.table, self._index.frames
        if name in _TABLE_COLUMNS:
            return getattr(table, name).values[rows.row].astype(np.int64)  # type: ignore[no-any-return]  # a `Column`
        side, _, what = name.partition("_")
        of: Int64 = getattr(rows, side)
        there = np.flatnonzero(of != NO_FRAME)
        column = np.zeros(len(of), np.int64)
        column[there] = _FRAME_COLUMNS[what](frames, of[there])
        return column

    def learn(self) -> None:
        """Learn names, and the versions that brokers advertised."""
        self._decoder.update_conversation_state()
        if self._generation == self._index.generation:
            return
        self._generation = self._index.generation
        self.client.cache_clear()

    def forget_step(self) -> None:
        """Forget what only the detectors of one step look at."""
        self._connection_rows.forget()

    def _client(self, connection: int) -> str:
        return self._decoder.ends(connection)[0].rpartition(":")[0]

    def routes(self, connections: Int64) -> Int64:
        """Return numbers, `(n,)`, that are equal where `client` and `server` are."""
        return self._decoder.routes(connections)

    def injections(self, rows: ExaminedRows) -> Iterator[tuple[int, InjectionNote]]:
        """Return the rows with which a proxy interfered, and how."""
        return self._injected.notes(rows)

    def brokers(self, rows: Int64) -> list[Brokers]:
        """Return the brokers in the responses to the Metadata requests of these rows, ascending."""
        return self._brokers.of(rows)

    def offered(self, connection: int) -> Mapping[int, tuple[int, int]]:
        """Return the versions that the broker of a connection advertised, there or on others, by API key."""
        return self._decoder.advertised_versions(connection)

    @property
    def has_retransmissions(self) -> bool:
        """Whether TCP retransmitted any bytes or delivered them out of order."""
        return len(self._retransmissions) > 0

    def delays(self, frames: Int64) -> tuple[Int64, Int64]:
        """Return the delay of each frame by retransmission and by reordering, in nanoseconds; 0 if there is none."""
        retransmitted, waited = np.zeros(len(frames), np.int64), np.zeros(len(frames), np.int64)
        exists = frames != NO_FRAME
        table, existing = self._index.frames, frames[exists]
        columns = (table.direction, table.start, table.size, table.time_ns)
        direction, start, size, time_ns = (column.values[existing] for column in columns)
        start, size = self._plaintext.in_tcp(direction, start, size)
        delays = self._retransmissions.delays(direction, start, size, time_ns)
        retransmitted[exists], waited[exists] = delays
        return retransmitted, waited

    def delivery(self, connection: int, *, of_client: bool) -> Delivery | None:
        """Return what TCP delivered of one end of a connection; None where that is not known."""
        return self._deliveries.of(self._direction(connection, of_client))

    def stuck(self) -> Int64:
        """Return connections of which an end sent bytes again and again that were not acknowledged."""
        return self._deliveries.stuck()

    def was_held(self, connection: int, time_ns: int, *, of_client: bool) -> bool:
        """Return whether one end held the bytes that it sent at a time until a delayed acknowledgement."""
        direction = self._direction(connection, of_client)
        return self._deliveries.has_event(EventKind.HELD_TAIL, direction, time_ns, time_ns)

    def had_no_room(self, connection: int, begin_ns: int, end_ns: int, *, of_client: bool) -> bool:
        """Return whether one end closed its window in this time."""
        direction = self._direction(connection, of_client)
        return self._deliveries.has_event(EventKind.ZERO_WINDOW, direction, begin_ns, end_ns)

    def first_sequence_numbers(self, connection: int) -> tuple[int, int]:
        """Return TCP's sequence numbers with which client and broker begin, -1 where one sent nothing."""
        one, other = self._deliveries.first_sequence_numbers(connection)
        return (one, other) if not self._direction(connection, of_client=True) & 1 else (other, one)

    def may_be_copies(self, connections: Int64, apart_ns: int) -> Bool:
        """Return which connections may begin with the same sequence numbers as others within this time, or begin as
        others do that may: of a capture partition, which does not have all connections, all."""
        if self.is_part:
            return np.ones(len(connections), np.bool_)
        starts = self._deliveries.equal_starts()
        if self._copies[0] is not starts:
            self._copies = starts, self._copied(starts, apart_ns)
        return is_in(connections, self._copies[1])

    def _copied(self, starts: EqualStarts, apart_ns: int) -> Int64:
        """Return those of these connections that begin as two do within this time, ascending."""
        began_ns = self._connections.first_times_ns(starts.connections)
        order = np.lexsort((began_ns, starts.numbers))
        numbers, began_ns = starts.numbers[order], began_ns[order]
        is_close = (np.diff(numbers) == 0) & (np.diff(began_ns) <= apart_ns)
        return starts.connections[is_in(starts.numbers, unique(numbers[1:][is_close]))]

    def began_ns(self, connection: int) -> int:
        """Return the time of the first packet of a connection."""
        return self._connections.first_time_ns(connection)

    def _direction(self, connection: int, of_client: bool) -> int:
        client = self._index.detector.client(connection)
        return 2 * connection + (client if of_client else 1 - client)

    def is_offered(self, connection: int, key: int, version: int) -> bool:
        """Return whether the broker accepts a version of an API; True if it did not advertise any."""
        offered = self.offered(connection)
        low, high = offered.get(key, (0, -1))
        return key == ApiKey.API_VERSIONS or not offered or low <= version <= high

    def closed(self, connection: int) -> tuple[int, bool]:
        """Return when a connection was closed, or `NEVER`, and whether the client closed it first."""
        time_ns, side = self._connections.closed(connection)
        return time_ns, side == self._index.detector.client(connection)

    def server(self, connection: int) -> str:
        """Return the server of a connection, as `host:port`."""
        return self._decoder.ends(connection)[1]

    def rows_of(self, connection: int) -> ExaminedRows:
        """Return all rows of a connection so far, in the order of its streams."""
        return self._connection_rows.of(connection)

    def look_at(self, connections: Int64) -> None:
        """Read the rows of these connections together, as far as they are few, for `rows_of` in this step."""
        self._connection_rows.look_at(connections)

    def request_faults(self, row: int) -> list[Finding]:
        """Return why a broker can't read the request of a row: it does not fit its layout, or has a tag outside its
        versions."""
        request = self._decoder.exchange(row).request
        return [] if request is None else message_faults(request)

    def surely_fit(self, rows: Int64) -> Bool:
        """Return which requests of rows have surely no such faults, `(n,)`."""
        return self._fitting.of(rows)

    def software(self, connection: int) -> str:
        """Return the name of the client's software, if its ApiVersions request on the connection has it; else empty."""
        return self._index.conversation_state.versions.software(connection)[0]

    def request(self, row: int) -> Values:
        """Return the body of the request of a row; empty if there is none, or it can't be read."""
        return self._body(self._decoder.exchange(row).request)

    def request_numbers(self, rows: Int64, name: str) -> list[object]:
        """Return what the bodies of the requests of rows have by a name that stands alone and is a number's; None where
        `request` has none."""
        values, is_there = self._fitting.numbers(rows, name)
        columns = rows.tolist(), values.tolist(), is_there.tolist()
        return [value if there else self.request(row).get(name) for row, value, there in zip(*columns, strict=True)]

    def response(self, row: int) -> Values:
        """The same of the response. What may be secret is masked in both."""
        return self._body(self._decoder.exchange(row).response)

    @staticmethod
    def _body(message: ExchangeMessage | None) -> Values:
        return {} if message is None else message.decoded.fitting_body

    def last_row(self, connection: int) -> int:
        """Return the row with which a connection ends so far; -1 if it has none."""
        rows = self._connection_rows.in_order(connection)
        return int(rows[-1]) if len(rows) else -1

    def is_server_foreign(self, connection: int) -> bool:
        """Return whether the server of a connection responds in another protocol than Kafka's."""
        return self._index.detector.server_protocol(connection) is not None

    def client_id(self, row: int) -> str:
        """Return the client id of the request of a row; empty for none."""
        return self._index.client_ids.texts[int(self._index.table.client_id.values[row])] or ""

    def first_packet(self, connection: int) -> int:
        """Return the number of its first packet, which identifies the connection in the capture."""
        return self._connections.first_packet(connection)

    def captured(self, frame: int) -> int:
        """Return how many bytes of a frame the capture has."""
        return self._index.frames.captured(frame)

    def topic(self, named: Values) -> str:
        """Return the name of the topic that a structure names, or its id if the name is unknown."""
        name = named.get("name") or named.get("topic")
        return str(name or self._index.conversation_state.topic_name(str(named.get("topic_id"))))
