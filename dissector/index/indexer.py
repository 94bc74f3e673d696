"""Frames to rows of the index: requests and responses of every connection, paired as they come.

Invariants:
  * every frame ends up in exactly one row: as its request, as its response, or as what could not be paired;
  * once `flush` was called the rows do not depend on how the capture was cut into batches.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.batches import FrameBatch, FrameKind
from dissector.core.grouping import by_distinct
from dissector.core.limits import Limits
from dissector.core.stage import Position, oldest_position
from dissector.core.store import Store
from dissector.detection.connections import Connections
from dissector.detection.decode_as import DecodeAs
from dissector.detection.frame_heuristics import HEAD
from dissector.detection.kafka_detector import KafkaDetector
from dissector.detection.other_protocols import OtherProtocol
from dissector.index.acks import expect_response
from dissector.index.conversation_state import ConversationState
from dissector.index.exchange_table import NO_FRAME, ExchangeTable, Flag, RowKind
from dissector.index.frame_table import FrameTable
from dissector.index.injections import Injections
from dissector.index.message_headers import RESPONSE_HEAD_SIZE, ClientIds, request_headers, response_correlation_ids
from dissector.index.pairing import NONE_PENDING, Pairing, PendingFrames, key_of
from dissector.index.raw_sasl_tokens import RawSaslTokens
from dissector.protocol.schema.api_keys import ApiKey

FIN, RST = 1, 4
_ROW_KINDS = np.array([RowKind.EXCHANGE, RowKind.GAP, RowKind.UNPARSED], np.uint8)


class Indexer:
    """The last stage: pairs frames, and has the index."""

    def __init__(
        self, store: Store, connections: Connections, limits: Limits, decode_as: Sequence[DecodeAs] = ()
    ) -> None:
        self._store = store
        self._connections = connections
        self._pairing = Pairing(limits.pending_requests, self._is_whole)
        self.detector = KafkaDetector(connections, limits, self._pairing.outstanding, decode_as)
        self._max_non_kafka = limits.non_kafka_connections
        self.without_row: Counter[str] = Counter()
        """Connections with data that are not Kafka and have no row, by protocol."""
        self.frames = FrameTable(store)
        self.table = ExchangeTable()
        self.client_ids = ClientIds()
        self.conversation_state = ConversationState(self.frames, self.table, connections)
        self._tokens = RawSaslTokens()
        self.injections = Injections()
        self.generation = 0
        """Grows with each batch of frames, and when rows were added or moved; not before, as another thread may look at
        rows meanwhile."""

    def feed(self, batch: FrameBatch) -> tuple[()]:
        """Add frames, in any order of directions."""
        if not len(batch):
            return ()
        first = self.frames.extend(batch)
        rows = np.arange(first, first + len(batch))
        from_client = self._from_client(batch.direction)
        is_frame = batch.kind == FrameKind.FRAME
        by_time = np.lexsort((batch.start, batch.packet))
        of_requests = by_time[(from_client & is_frame)[by_time]]
        requests = self._add_requests(batch, rows, of_requests)
        of_responses = np.flatnonzero(is_frame & ~from_client)
        responses = self._responses(batch, rows, self._without_short_tokens(batch, rows, of_responses))
        lost = np.flatnonzero(~is_frame)
        self._pairing.lost(batch.direction[lost] >> 1, batch.packet[lost], from_client[lost])
        self.table.set_responses(*self._pairing.pair(requests, responses))
        if self._pairing.is_full:
            self._pair_early()
            self._add_orphans(self._pairing.give_up())
        self._add_between_frames(batch, rows, by_time[~is_frame[by_time]], from_client)
        self.generation += 1
        return ()

    def is_complete(self, rows: Int64) -> Bool:
        """Return which rows get nothing added any more: with a response, without one to come, or no exchanges."""
        table = self.table
        is_pending = (table.kind.values[rows] == RowKind.EXCHANGE) & (table.response.values[rows] == NO_FRAME)
        is_pending &= table.flags.values[rows] & Flag.NO_RESPONSE_EXPECTED == 0
        is_pending[is_pending] = ~by_distinct(
            table.connection.values[rows[is_pending]], lambda each: _is_closed(*self._connections.ended(each)), np.bool_
        )
        complete: Bool = ~is_pending
        return complete

    def is_closed(self, rows: Int64, before_ns: int) -> Bool:
        """Return which rows are of a connection that is closed or reset, and had its first FIN or RST before a time."""
        return by_distinct(
            self.table.connection.values[rows],
            lambda each: _is_closed(*self._connections.ended(each)) and self._connections.closed(each)[0] < before_ns,
            np.bool_,
        )

    def is_final(self, rows: Int64) -> Bool:
        """Return which rows nothing changes any more. `is_complete` trusts FIN and RST; this waits until the connection
        is forgotten. A response with missing bytes waits for bytes behind it, a SASL token for the response to its
        handshake."""
        table = self.table
        response, flags = table.response.values[rows], table.flags.values[rows]
        exchange = table.kind.values[rows] == RowKind.EXCHANGE
        is_pending = exchange & (response == NO_FRAME) & (flags & Flag.NO_RESPONSE_EXPECTED == 0)
        paired = np.flatnonzero(exchange & (response != NO_FRAME))
        is_pending[paired] = self.frames.ends_short(response[paired])
        is_pending |= self._awaits_mechanism(rows)
        final: Bool = ~is_pending | ~np.isin(table.connection.values[rows], self._connections.open())
        return final

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
        """Return addresses and sizes of the frames of these rows, and of pending responses, `(2, n)`."""
        return self.frames.regions(self._frames_of(rows))

    def retain(self, rows: Int64, looked_back: Int64) -> None:
        """Get ready for a checkpoint that has only these rows, ascending, and positions and times of the frames in
        `looked_back`."""
        self.table.retain(rows)
        self.frames.retain(self._frames_of(rows), looked_back)

    def _frames_of(self, rows: Int64) -> Int64:
        """Frames of these rows, and of pending responses, ascending."""
        frames = np.concatenate([self.table.request.values[rows], self.table.response.values[rows]])
        return np.unique(np.concatenate([frames[frames != NO_FRAME].astype(np.int64), self._pairing.responses]))

    def end(self, connections: Int64) -> tuple[()]:
        """Add rows for responses of these connections that wait for a request."""
        if len(connections):
            self._pair_early(connections)
            self._add_orphans(self._pairing.end(connections))
            self._tokens.end(connections)
            self.generation += 1
        return ()

    def flush(self) -> tuple[()]:
        """Add rows for what has no partner, and for connections that are not Kafka: the capture ends."""
        self._pair_early()
        self._add_orphans(self._pairing.flush())
        self._add_non_kafka()
        self.generation += 1
        return ()

    def sort_rows(self) -> None:
        """Bring rows in their final order, that in which they began: after `flush`, and once."""
        self.conversation_state.restart_search()
        self.table.sort_rows(self.frames.start)
        self.generation += 1

    @property
    def held_bytes(self) -> int:
        """At most `limits.pending_requests` frames."""
        return int(self.held_regions()[1].sum())

    def held_regions(self) -> Int64:
        """Addresses and sizes of responses that wait for requests, `(2, n)`. Whoever reads rows needs those of their
        frames as well: `regions`."""
        return self.regions(np.zeros(0, np.int64))

    def oldest_pending(self, after_ns: int = -1) -> Position:
        """The first packet of a frame that is_pending for its partner."""
        frames = self._pairing.pending(self.table.request.values)
        pending = np.stack([self.frames.packet.values[frames], self.frames.time_ns.values[frames]])
        return oldest_position(pending, after_ns)

    def _from_client(self, direction: Int64) -> Bool:
        """Return which directions are the client's."""
        side: Int64 = self.detector.client_side.values[direction >> 1]
        of_requests: Bool = side != 1 - (direction & 1)
        return of_requests

    def _add_requests(self, batch: FrameBatch, rows: Int64, of_requests: Int64) -> PendingFrames:
        """Add rows for requests; return those that have a response to come."""
        if not len(of_requests):
            return NONE_PENDING
        headers = request_headers(self._store, self.frames, rows[of_requests], self.client_ids)
        connection = batch.direction[of_requests] >> 1
        packet = batch.packet[of_requests]
        tokens = self._tokens.of_client(
            connection, packet, batch.start[of_requests], headers,
            lambda n: self._reads_as_request(int(rows[of_requests[n]])),
        )  # fmt: skip
        if tokens.any():
            self._add_tokens(connection[tokens], packet[tokens], request=rows[of_requests[tokens]])
            return self._add_requests(batch, rows, of_requests[~tokens])
        expects_response = expect_response(self._store, self.frames, rows[of_requests], headers)
        first = self.table.add(
            connection, packet, request=rows[of_requests], api_key=headers.api_key, version=headers.version,
            correlation_id=headers.correlation_id, client_id=headers.client_id,
            flags=np.where(expects_response, 0, Flag.NO_RESPONSE_EXPECTED),
        )  # fmt: skip
        key = key_of(connection, headers.correlation_id)
        return PendingFrames(key, np.arange(first, first + len(of_requests)), packet).where(expects_response)

    def _reads_as_request(self, row: int) -> bool:
        head, _ = self.frames.read(row, HEAD)
        return self.detector.reads_as_request(head)

    def _add_tokens(self, connection: Int64, packet: Int64, **frames: Int64) -> None:
        """Add rows for raw SASL tokens."""
        self.table.add(connection, packet, kind=np.full(len(connection), RowKind.SASL), **frames)

    def _without_short_tokens(self, batch: FrameBatch, rows: Int64, of_responses: Int64) -> Int64:
        """Add rows for a server's frames that are too short for a correlation id, so that no request gets one for its
        response; return the others."""
        is_token = self.frames.size.values[rows[of_responses]] < RESPONSE_HEAD_SIZE
        if not is_token.any():
            return of_responses
        tokens = of_responses[is_token]
        self._add_tokens(batch.direction[tokens] >> 1, batch.packet[tokens], response=rows[tokens])
        return of_responses[~is_token]

    def _responses(self, batch: FrameBatch, rows: Int64, of_responses: Int64) -> PendingFrames:
        if not len(of_responses):
            return NONE_PENDING
        ids = response_correlation_ids(self._store, self.frames, rows[of_responses])
        key = key_of(batch.direction[of_responses] >> 1, ids)
        return PendingFrames(key, rows[of_responses], batch.packet[of_responses])

    def _pair_early(self, connections: Int64 | None = None) -> None:
        """Pair responses with requests that the capture has behind them, where the connection used their id once."""
        keys, rows, frames = self._pairing.early_pairs(connections)
        if not len(keys):
            return
        table = self.table
        same = np.isin(table.connection.values, np.unique(keys >> 32)) & (table.kind.values == RowKind.EXCHANGE)
        ids = table.correlation_id.values[same].astype(np.int64)
        used, counts = np.unique(key_of(table.connection.values[same].astype(np.int64), ids), return_counts=True)
        once = counts[np.searchsorted(used, keys)] == 1
        self._pairing.remove(rows[once], frames[once])
        table.set_responses(rows[once], frames[once])

    def _is_whole(self, connection: int) -> bool:
        """Whether a connection is in the capture from its SYN on."""
        return self._connections.syn_side(connection) >= 0

    @property
    def early_responses(self) -> int:
        """Responses that the capture has before their requests."""
        return self._pairing.early_responses

    def _add_orphans(self, rows: Int64) -> None:
        """Add rows for responses without a request, and for a server's raw SASL tokens."""
        connection, packet = self.frames.direction.values[rows] >> 1, self.frames.packet.values[rows]
        tokens = self._tokens.of_server(connection, packet, self.frames.start.values[rows], self._responses_of)
        if tokens.any():
            self._add_tokens(connection[tokens], packet[tokens], response=rows[tokens])
            self._add_orphans(rows[~tokens])
        elif len(rows):
            self.table.add(
                connection, packet,
                response=rows, api_key=np.full(len(rows), NO_FRAME), version=np.full(len(rows), NO_FRAME),
                correlation_id=response_correlation_ids(self._store, self.frames, rows),
            )  # fmt: skip

    def _responses_of(self, connection: int) -> tuple[Int64, Bool]:
        """Places in the stream of a connection's responses, and which of them respond to a SaslHandshake."""
        table = self.table
        rows = np.flatnonzero((table.connection.values == connection) & (table.response.values != NO_FRAME))
        return self.frames.start.values[table.response.values[rows]], table.api_key.values[
            rows
        ] == ApiKey.SASL_HANDSHAKE

    def _add_between_frames(self, batch: FrameBatch, rows: Int64, which: Int64, from_client: Bool) -> None:
        """Add rows for gaps and for unparsed bytes."""
        if len(which):
            client = from_client[which]
            self.table.add(
                batch.direction[which] >> 1, batch.packet[which], kind=_ROW_KINDS[batch.kind[which]],
                request=np.where(client, rows[which], NO_FRAME), response=np.where(client, NO_FRAME, rows[which]),
            )  # fmt: skip

    def _add_non_kafka(self) -> None:
        """Add a row for each connection on Kafka's port that speaks something else, up to a limit."""
        others = self.detector.non_kafka_connections()
        self.without_row = self.detector.other_protocols(others[: self._max_non_kafka])
        shown = np.array(others[: self._max_non_kafka], np.int64)
        tls = self.detector.other_protocol.values[shown] == OtherProtocol.TLS
        packets = np.array([self._connections.first_packet(connection) for connection in shown.tolist()], np.int64)
        self.table.add(shown, packets, kind=np.where(tls, RowKind.TLS, RowKind.UNPARSED))


def _is_closed(one: int, other: int) -> bool:
    """Whether a connection is closed or reset, by the flags that either side has sent."""
    return bool((one | other) & RST or one & other & FIN)
