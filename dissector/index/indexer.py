"""Frames in, rows of the index out: requests and responses of every connection, paired as they come.

Invariants:
  * every frame ends up in exactly one row: as its request, as its response, or as what could not be placed;
  * once `flush` was called the rows do not depend on how the capture was cut into batches.
"""

from collections.abc import Set

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.batches import FrameBatch, FrameKind
from dissector.core.limits import Limits
from dissector.core.stage import Position, oldest_position
from dissector.core.store import Store
from dissector.detection.frame_heuristics import HEAD
from dissector.detection.kafka_detector import Connections, KafkaDetector
from dissector.detection.other_protocols import OtherProtocol
from dissector.index.acks import awaited
from dissector.index.bare_sasl_tokens import BareTokens
from dissector.index.conversation_state import ConversationState
from dissector.index.exchange_table import NO_FRAME, ExchangeTable, Flag, RowKind
from dissector.index.frame_table import FrameTable
from dissector.index.message_headers import RESPONSE_HEAD, ClientIds, request_headers, response_correlation_ids
from dissector.index.pairing import NOBODY, Pairing, PendingRequest, key_of
from dissector.protocol.schema.api_keys import ApiKey

FIN, RST = 1, 4
_ROW_KINDS = np.array([RowKind.EXCHANGE, RowKind.GAP, RowKind.UNPARSED], np.uint8)


class Indexer:
    """Pairs frames; owns the index."""

    def __init__(self, store: Store, flows: Connections, limits: Limits, ports: Set[int] = frozenset()) -> None:
        self._store = store
        self._flows = flows
        self._pairing = Pairing(limits.pending_requests)
        self.detector = KafkaDetector(flows, limits, self._pairing.outstanding, ports)
        self._most_non_kafka = limits.non_kafka_connections
        self.omitted_non_kafka = 0
        """Connections on Kafka's port that are not Kafka and have no row: there are too many."""
        self.frames = FrameTable(store)
        self.table = ExchangeTable()
        self.client_ids = ClientIds()
        self.conversation_state = ConversationState(self.frames, self.table)
        self._tokens = BareTokens()
        self.generation = 0
        """Grows whenever frames came in, or rows."""

    def feed(self, batch: FrameBatch) -> tuple[()]:
        """Take in frames, in any order of directions."""
        if not len(batch):
            return ()
        self.generation += 1
        first = self.frames.extend(batch)
        rows = np.arange(first, first + len(batch))
        from_client = self._from_client(batch.direction)
        is_frame = batch.kind == FrameKind.FRAME
        by_time = np.lexsort((batch.start, batch.packet))
        asking = by_time[(from_client & is_frame)[by_time]]
        requests = self._requests(batch, rows, asking)
        answering = np.flatnonzero(is_frame & ~from_client)
        responses = self._responses(batch, rows, answering)
        lost = np.flatnonzero(~is_frame & ~from_client)
        self._pairing.lost(batch.direction[lost] >> 1, batch.packet[lost])
        asked, answers, orphans = self._pairing.pair(requests, responses)
        self.table.answer(asked, answers)
        self._orphans(orphans)
        self._others(batch, rows, by_time[~is_frame[by_time]], from_client)
        return ()

    def is_complete(self, rows: Int64) -> Bool:
        """Which rows will stay as they are: answered, or with no answer to come any more, or no exchanges at all."""
        table = self.table
        waits = (table.kind.values[rows] == RowKind.EXCHANGE) & (table.response.values[rows] == NO_FRAME)
        waits &= table.flags.values[rows] & Flag.NO_RESPONSE_EXPECTED == 0
        connections, inverse = np.unique(table.connection.values[rows[waits]], return_inverse=True)
        over = np.array([_is_over(*self._flows.ended(c)) for c in connections.tolist()], np.bool_)
        waits[waits] = ~over[inverse]
        complete: Bool = ~waits
        return complete

    def is_closed(self, rows: Int64, before_ns: int) -> Bool:
        """Of which rows the connection was closed by both sides, or torn down, and begun to be so before a time."""
        connections, inverse = np.unique(self.table.connection.values[rows], return_inverse=True)
        over = [
            _is_over(*self._flows.ended(each)) and self._flows.closed(each)[0] < before_ns
            for each in connections.tolist()
        ]
        return np.array(over, np.bool_)[inverse]

    def is_final(self, rows: Int64) -> Bool:
        """Which rows will stay as they are whatever comes: `is_complete` believes a connection's end, and this waits
        until nothing can come of it. A response of which the capture lacks some waits for what comes behind it, a SASL
        token for the response to its handshake."""
        table = self.table
        response, flags = table.response.values[rows], table.flags.values[rows]
        exchange = table.kind.values[rows] == RowKind.EXCHANGE
        waits = exchange & (response == NO_FRAME) & (flags & Flag.NO_RESPONSE_EXPECTED == 0)
        answered = np.flatnonzero(exchange & (response != NO_FRAME))
        waits[answered] = self.frames.ends_short(response[answered])
        waits |= self._awaits_mechanism(rows)
        settled: Bool = ~waits | ~np.isin(table.connection.values[rows], self._flows.open())
        return settled

    def _awaits_mechanism(self, rows: Int64) -> Bool:
        """Which rows are SASL tokens whose handshake has no response yet. The mechanism is known with the response,
        which a capture may have behind the token."""
        table = self.table
        tokens: Bool = table.kind.values[rows] == RowKind.SASL
        if tokens.any():
            pending = (table.api_key.values == ApiKey.SASL_HANDSHAKE) & (table.response.values == NO_FRAME)
            tokens &= np.isin(table.connection.values[rows], table.connection.values[pending])
        return tokens

    def regions(self, rows: Int64) -> Int64:
        """Addresses and sizes of the frames of these rows, and of responses that wait for requests, `(2, n)`."""
        return self.frames.regions(self._frames_of(rows))

    def retain(self, rows: Int64, looked_back: Int64) -> None:
        """Get ready to be pickled: of rows only these, ascending, will be there; and where and when frames were that
        somebody may look back at."""
        self.table.retain(rows)
        self.frames.retain(self._frames_of(rows), looked_back)

    def _frames_of(self, rows: Int64) -> Int64:
        """Frames of these rows, and of responses that wait, ascending."""
        frames = np.concatenate([self.table.request.values[rows], self.table.response.values[rows]])
        return np.unique(np.concatenate([frames[frames != NO_FRAME].astype(np.int64), self._pairing.responses]))

    def end(self, connections: Int64) -> tuple[()]:
        """Add rows for responses of these connections that wait for a request."""
        if len(connections):
            self.generation += 1
            self._orphans(self._pairing.end(connections))
            self._tokens.end(connections)
        return ()

    def flush(self) -> tuple[()]:
        """Add rows for what has no partner, and for connections that are not Kafka: the capture ends."""
        self.generation += 1
        self._orphans(self._pairing.flush())
        self._not_kafka()
        return ()

    def sort_rows(self) -> None:
        """Bring rows in their final order, that in which they began: after `flush`, and once."""
        self.generation += 1
        self.conversation_state.restart_search()
        self.table.sort_rows(self.frames.start)

    @property
    def held_bytes(self) -> int:
        """At most `limits.pending_requests` frames."""
        return int(self.held_regions()[1].sum())

    def held_regions(self) -> Int64:
        """Addresses and sizes of responses that wait for requests, `(2, n)`. Whoever reads rows needs those of their
        frames as well: `regions`."""
        return self.regions(np.zeros(0, np.int64))

    def oldest_pending(self, after_ns: int = -1) -> Position:
        """The first packet of a frame that waits for its partner."""
        frames = self._pairing.pending(self.table.request.values)
        pending = np.stack([self.frames.packet.values[frames], self.frames.time_ns.values[frames]])
        return oldest_position(pending, after_ns)

    def _from_client(self, direction: Int64) -> Bool:
        """Whether each direction is that of the client."""
        side: Int64 = self.detector.client_side.values[direction >> 1]
        asking: Bool = side != 1 - (direction & 1)
        return asking

    def _requests(self, batch: FrameBatch, rows: Int64, asking: Int64) -> PendingRequest:
        """Enter requests in the index; those that wait for a response."""
        if not len(asking):
            return NOBODY
        heads = request_headers(self._store, self.frames, rows[asking], self.client_ids)
        connection = batch.direction[asking] >> 1
        packet = batch.packet[asking]
        tokens = self._tokens.of_client(
            connection, packet, heads, lambda n: self._reads_as_request(int(rows[asking[n]]))
        )
        if tokens.any():
            self._add_tokens(connection[tokens], packet[tokens], request=rows[asking[tokens]])
            return self._requests(batch, rows, asking[~tokens])
        answered = awaited(self._store, self.frames, rows[asking], heads)
        first = self.table.add(
            connection, packet, request=rows[asking], api_key=heads.api_key, version=heads.version,
            correlation_id=heads.correlation_id, client_id=heads.client_id,
            flags=np.where(answered, 0, Flag.NO_RESPONSE_EXPECTED),
        )  # fmt: skip
        key = key_of(connection, heads.correlation_id)
        return PendingRequest(key, np.arange(first, first + len(asking)), packet).where(answered)

    def _reads_as_request(self, row: int) -> bool:
        head, _ = self.frames.read(row, HEAD)
        return self.detector.reads_as_request(head)

    def _add_tokens(self, connection: Int64, packet: Int64, **frames: Int64) -> None:
        """Bare tokens of logins are rows of their own."""
        self.table.add(connection, packet, kind=np.full(len(connection), RowKind.SASL), **frames)

    def _responses(self, batch: FrameBatch, rows: Int64, answering: Int64) -> PendingRequest:
        if not len(answering):
            return NOBODY
        ids = response_correlation_ids(self._store, self.frames, rows[answering])
        key = key_of(batch.direction[answering] >> 1, ids)
        return PendingRequest(key, rows[answering], batch.packet[answering])

    def _orphans(self, rows: Int64) -> None:
        """Responses without a request are rows of their own; so are a server's bare tokens."""
        connection, packet = self.frames.direction.values[rows] >> 1, self.frames.packet.values[rows]
        tokens = self._tokens.of_server(connection, packet) | (self.frames.size.values[rows] < RESPONSE_HEAD)
        if tokens.any():
            self._add_tokens(connection[tokens], packet[tokens], response=rows[tokens])
            self._orphans(rows[~tokens])
        elif len(rows):
            self.table.add(
                connection, packet,
                response=rows, api_key=np.full(len(rows), NO_FRAME), version=np.full(len(rows), NO_FRAME),
                correlation_id=response_correlation_ids(self._store, self.frames, rows),
            )  # fmt: skip

    def _others(self, batch: FrameBatch, rows: Int64, which: Int64, from_client: Bool) -> None:
        """Gaps and unparsed bytes are rows too."""
        if len(which):
            client = from_client[which]
            self.table.add(
                batch.direction[which] >> 1, batch.packet[which], kind=_ROW_KINDS[batch.kind[which]],
                request=np.where(client, rows[which], NO_FRAME), response=np.where(client, NO_FRAME, rows[which]),
            )  # fmt: skip

    def _not_kafka(self) -> None:
        """Connections on Kafka's port that speak something else: a row each, up to a limit."""
        others = self.detector.non_kafka_connections()
        self.omitted_non_kafka = max(0, len(others) - self._most_non_kafka)
        told = np.array(others[: self._most_non_kafka], np.int64)
        tls = self.detector.other_protocol.values[told] == OtherProtocol.TLS
        packets = np.array([self._flows.first_packet(connection) for connection in told.tolist()], np.int64)
        self.table.add(told, packets, kind=np.where(tls, RowKind.TLS, RowKind.UNPARSED))


def _is_over(one: int, other: int) -> bool:
    """Whether a connection is, by the flags that either side has sent."""
    return bool((one | other) & RST or one & other & FIN)
