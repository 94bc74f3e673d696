"""The pass over a capture that runs the detectors.

Invariants:
  * a row is examined once, when it is final; in order, as far as rows are complete;
  * a body is read once for all detectors, and only if one of them examines its API;
  * a step begins where the last one ended, whichever caller ran that. Only one step runs at a time;
  * damage is not examined: unreadable bytes are skipped.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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
from dissector.findings import registry
from dissector.findings.framework.advertised_brokers import AdvertisedBrokers, Brokers
from dissector.findings.framework.aggregation import EXTRACTORS, ImmediateAggregation, ObservationLog, finds
from dissector.findings.framework.body_reader import BodyReader
from dissector.findings.framework.connection_rows import ConnectionRows
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.examination_queue import examination_queue, in_start_order
from dissector.findings.framework.examined_rows import ExaminedRows, LazyColumns
from dissector.findings.framework.examiner_group import ExaminerGroup
from dissector.findings.framework.extractor import NO_API, Apis, Examiner, Extractor
from dissector.findings.framework.fitting_requests import FittingRequests, message_faults
from dissector.findings.framework.injected_rows import InjectedRows
from dissector.findings.framework.message_examination import MessageExamination
from dissector.findings.framework.open_findings import MAX_FINDINGS, UNLIMITED, FindingStore
from dissector.index.exchange_table import NO_FRAME
from dissector.index.frame_table import FrameTable
from dissector.index.indexer import Indexer
from dissector.protocol.message import Values
from dissector.protocol.schema.api_keys import ApiKey
from dissector.tls.plaintext import Plaintext
from dissector.transport import Retransmissions
from dissector.transport.deliveries import Deliveries, Delivery, EqualStarts, EventKind

STEP: Final = 4_096
"""Rows that are examined between two reports of progress."""
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


class Examination:
    """Examines a capture, which may still grow, or with `part` a capture partition. Of a partition, observations are
    collected and not aggregated, as `aggregation` needs those of all partitions, and all findings are kept."""

    def __init__(
        self, index: Indexer, store: Store, decoder: ExchangeDecoder, connections: Connections,
        retransmissions: Retransmissions, deliveries: Deliveries, plaintext: Plaintext, *, part: bool = False,
    ) -> None:  # fmt: skip
        self._index = index
        self._store = store
        self._decoder = decoder
        self._connections = connections
        self._retransmissions = retransmissions
        self._deliveries = deliveries
        self.is_part = part
        self._plaintext = plaintext
        self._injected = InjectedRows(index.injections, decoder, connections.first_packet)
        self._copies: tuple[EqualStarts | None, Int64] = (None, np.zeros(0, np.int64))
        """Those of the connections that begin alike that may be copies."""
        self.findings = FindingStore(UNLIMITED if part else MAX_FINDINGS)
        self.observations = ObservationLog()
        sink = self.observations if part else ImmediateAggregation(self.findings)
        self._detectors = [
            each(self.findings, self) for each in registry.DETECTORS if issubclass(each, ConnectionDetector)
        ]
        self._extractors = [each(self, sink) for each in EXTRACTORS]
        self._groups = [self._group([*self._detectors, *self._extractors])]
        self._brokers = AdvertisedBrokers(index, store)
        self._fitting = FittingRequests(index, store)
        self._messages = MessageExamination(index, store, decoder, self.findings)
        self._examined = 0
        """Number of rows that were examined or are pending."""
        self._pending: Int64 = np.zeros(0, np.int64)
        self._overdue: Int64 = self._pending
        """Rows that were examined before they were complete: the end of their connections is still to be examined."""
        self.first_pending_packet = NEVER
        self._generation = -1
        self.client = lru_cache(maxsize=MAX_CLIENTS)(self._client)
        self._connection_rows = ConnectionRows(index, self._columns)

    def examine(self, most_pending: int, *, final: bool, step: int = STEP) -> Iterator[int]:
        """Examine rows that became complete since the last call; all rows once the capture is `final`. Yield the number
        of rows reached, every `step` rows. At most `most_pending` rows wait."""
        self._learn()
        table = self._index.table
        while True:
            stop = min(self._examined + step, len(table))
            rows = np.concatenate([self._pending, np.arange(self._examined, stop)])
            complete = np.ones(len(rows), np.bool_) if final else self._index.is_complete(rows)
            complete[:-most_pending] = True
            self._examined, self._pending = stop, rows[~complete]
            self.first_pending_packet = self._first_packet_of(self._pending)
            ready = rows[complete]
            self._examine(ready, ready)
            yield self._examined
            if self._examined == len(table):
                return

    def examine_in_order(self, most_pending: int, now_ns: int, *, final: bool) -> Iterator[int]:
        """Examine the rows of a micro-batch that was read to its end, in the order of `examination_queue`. `now_ns` is
        the time that the complete capture has reached."""
        self._learn()
        index, stop = self._index, len(self._index.table)
        rows = np.concatenate([self._pending, np.arange(self._examined, stop)])
        complete = np.ones(len(rows), np.bool_) if final else index.is_final(rows)
        ready, overdue, self._pending = examination_queue(index, rows, complete, now_ns, most_pending)
        done = np.ones(len(self._overdue), np.bool_) if final else index.is_final(self._overdue)
        ended = np.concatenate([self._overdue[done], np.sort(ready[~is_in(ready, overdue)])])
        self._overdue, self._examined = np.concatenate([self._overdue[~done], overdue])[-most_pending:], stop
        self.first_pending_packet = self._first_packet_of(self._pending)
        ended = in_start_order(index, ended[index.table.response.values[ended] == NO_FRAME])
        for at in range(0, max(1, len(ready), len(ended)), STEP):
            self._examine(ready[at : at + STEP], ended[at : at + STEP])
            yield stop

    def end(self) -> None:
        """Forget what detectors remember, which is much, once all rows of a whole capture are examined."""
        if not self.is_part:
            self._detectors, self._extractors, self._groups = [], [], []
            self.client.cache_clear()

    def _first_packet_of(self, rows: Int64) -> int:
        return int(self._index.table.packet.values[rows].min(initial=NEVER))

    @property
    def pending_rows(self) -> Int64:
        """Rows not examined yet."""
        return np.concatenate([self._pending, self._overdue, np.arange(self._examined, len(self._index.table))])

    def pending_requests(self) -> Int64:
        """Return time and first packet of the requests not examined yet, `(2, n)`."""
        rows = self._pending[self._index.table.request.values[self._pending] != NO_FRAME]
        times = self._index.frames.time_ns.values[self._index.table.request.values[rows]]
        return np.stack([times, self._index.table.packet.values[rows]])

    @property
    def revisable_rows(self) -> Int64:
        """Rows about which detectors may still report findings."""
        return np.concatenate([self.pending_rows, *(each.revisable_rows for each in self._detectors)])

    @property
    def rechecked_frames(self) -> Int64:
        """Frames of examined rows whose retransmissions will be looked up again."""
        return np.concatenate([each.rechecked_frames for each in self._detectors])

    def limit_to(self, rows: Int64, codes: Collection[str] | None = None) -> None:
        """Examine only what the findings of these rows need, before anything is examined: the rows, by the detectors of
        one message; their connections, as others tell a `ConnectionDetector` nothing, by the detectors that examine
        such rows; and what the extractors need that may observe one of them. Detectors then forget less, as they
        remember a bounded number of connections. With `codes` only these cross-message findings are found, and they
        count nothing of other connections than those of the rows."""
        self._learn()
        connections = np.zeros(int(self._index.table.connection.values.max(initial=-1)) + 1, np.bool_)
        connections[self._index.table.connection.values[rows]] = True
        apis = frozenset(unique(self._index.table.api_key.values[rows].astype(np.int64)).tolist())
        asked = [each for each in self._detectors if codes is None or each.explanation.code in codes]
        of_rows = [each for each in asked if each.examines_any_row or each.examined_apis & apis]
        detectors = self._group(of_rows, connections=connections)
        needed: dict[Extractor, Apis] = dict.fromkeys(
            (each for each in self._extractors if codes is None or finds(type(each), codes)), NO_API
        )
        for at in range(0, len(rows), STEP):
            some = self._columns(rows[at : at + STEP])
            is_clean = detectors.bodies.clean(some)
            for extractor, before in needed.items():
                more = None if before is None else extractor.needed_apis(some, is_clean)
                needed[extractor] = None if before is None or more is None else before | more
        found = [each for each, of_each in needed.items() if of_each != NO_API]
        of_some = [each for each in found if needed[each] is not None]
        of_all = [each for each in found if needed[each] is None]
        apis = NO_API.union(*(of_each for of_each in needed.values() if of_each is not None))
        if codes is None:
            self._groups = [detectors, self._group(of_some, apis=apis), self._group(of_all)]
        else:
            self._groups = [detectors, self._group(found, connections=connections)]
        self._messages.limit_to(rows if codes is None else rows[:0])

    def _group(
        self, examiners: Sequence[Examiner], *, connections: Bool | None = None, apis: Apis = None
    ) -> ExaminerGroup:
        bodies = BodyReader(self._index, self._store, examiners, self.topic)
        return ExaminerGroup(examiners, bodies, self._injected, connections=connections, apis=apis)

    def _examine(self, rows: Int64, ended: Int64) -> None:
        """Examine rows; `ended` are those whose connection's end is known."""
        for group in self._groups:
            some = self._columns(group.rows(self._index.table, rows))
            group.examine(some, some if ended is rows else self._columns(group.rows(self._index.table, ended)))
        self._connection_rows.forget()
        left_alone = rows if not self._index.injections else self._injected.left_alone(self._columns(rows)).row
        self._messages.examine(left_alone)

    def _columns(self, row: Int64) -> ExaminedRows:
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

    def _learn(self) -> None:
        """Learn names, and the versions that brokers advertised."""
        self._decoder.update_conversation_state()
        if self._generation == self._index.generation:
            return
        self._generation = self._index.generation
        self.client.cache_clear()

    # `FindingContext`

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
        return {} if message is None or message.rest else message.body

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
