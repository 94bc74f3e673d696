"""Connections of a capture: their ends, their beginnings and ends in time, what clients and servers announced on them.

Connections are numbered as `RowSpace` says: Kafka's own files come first, one each.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from dissector.capture_session.row_space import RowSpace
from dissector.capture_session.stage_pipeline import StagePipeline
from dissector.core.arrays import Bool, Int64
from dissector.detection.decode_as import DecodeAs, End
from dissector.detection.tls_alerts import NO_ALERT, alert_name
from dissector.exchange.connection_facts import ConnectionFacts
from dissector.exchange.decoder import ExchangeDecoder
from dissector.index.shared_state import SharedState
from dissector.tls.session import TlsSession


class ConnectionIndex:
    """Looks up connections by number."""

    def __init__(self, pipeline: StagePipeline, rows: RowSpace, decoder: ExchangeDecoder) -> None:
        self._pipeline = pipeline
        self._files = pipeline.files
        self._table = pipeline.transport.connections
        self._facts = pipeline.transport.facts
        self._indexer = pipeline.indexer
        self._rows = rows
        self._decoder = decoder

    def __len__(self) -> int:
        """TCP connections seen, of any protocol."""
        return len(self._table)

    @property
    def protocols(self) -> dict[str, int]:
        """How many connections speak which protocol, by its name, the most frequent first.

        ``{"TLS": 12, "Kafka": 3}``; "unknown" counts those whose data fits none, "without data" those without."""
        return self._indexer.detector.protocols()

    def unrecognized(self) -> Iterator[tuple[End, End, str]]:
        """Connections with data that are not Kafka: probably the client's end, probably the server's, the protocol."""
        for number, side, protocol in self._indexer.detector.unrecognized():
            ends = self._table.endpoints(number)
            yield ends[1 - side], ends[side], protocol.label

    def refused(self) -> list[int]:
        """Connections that the server refused or did not answer, ascending."""
        return sorted((np.concatenate(self._table.unreachable()) + 1 + self._rows.files).tolist())

    def learn(self) -> None:
        """Learn now from what clients and servers have said so far, not when the first exchange is decoded."""
        self._decoder.update_conversation_state()

    def shared_state(self) -> SharedState:
        """What other partitions of the capture can learn from this one, which is read to its end."""
        return self._decoder.shared_state()

    def merge_shared_state(self, state: SharedState) -> None:
        """Add what all partitions have learned, after reading and before rows are decoded."""
        self._decoder.merge_shared_state(state)
        if unreachable := self._pipeline.tally.unreachable:
            unreachable.advertised.update(self.nodes.values())

    @property
    def nodes(self) -> Mapping[int, str]:
        """Addresses (`host:port`) of nodes by their ids, as far as the conversations name them."""
        self.learn()
        return self._indexer.conversation_state.nodes

    def ends(self, connection: int) -> tuple[str, str]:
        """The client's end and the server's, as `host:port`; of a file, empty and its name."""
        at = self._rows.index_connection(connection)
        return self._decoder.ends(at) if at >= 0 else ("", self._files.name_of(connection))

    def first_packet(self, connection: int) -> int:
        """The number of its first packet, from 0; 0 for a file."""
        at = self._rows.index_connection(connection)
        return self._table.first_packet(at) if at >= 0 else 0

    def begins(self) -> Int64:
        """The numbers of the first packets of all TCP connections, of any protocol, from 0: a row each, as
        `index_connection` of `RowSpace` numbers them."""
        return self._table.first_packets(np.arange(len(self._table)))

    def first_time_ns(self, connection: int) -> int | None:
        """The time of its first packet; None for a file."""
        at = self._rows.index_connection(connection)
        return self._table.first_time_ns(at) if at >= 0 else None

    def last_time_ns(self, connection: int) -> int | None:
        """The time of its last packet; None for a file."""
        at = self._rows.index_connection(connection)
        return (self._facts.last_time_ns(at) or self._table.first_time_ns(at)) if at >= 0 else None

    def is_opened(self, connection: int) -> bool:
        """Whether a SYN of it was captured."""
        at = self._rows.index_connection(connection)
        return at >= 0 and self._table.syn_side(at) >= 0

    def seen_ends(self, connections: Int64) -> tuple[Bool, Bool]:
        """Of which connections a SYN was captured, and of which a FIN or RST, `(n,)` each; of files neither."""
        at = self._rows.index_connections(connections)
        is_tcp = at >= 0
        opened, closed = np.zeros((2, len(at)), np.bool_)
        opened[is_tcp] = self._table.syn_sides(at[is_tcp]) >= 0
        closed[is_tcp] = self._table.are_closed(at[is_tcp])
        return opened, closed

    def closed(self, connection: int) -> tuple[int, bool] | None:
        """When it was closed, and whether the client closed it first; None where that was not captured."""
        at = self._rows.index_connection(connection)
        return self._decoder.closed(at) if at >= 0 else None

    def facts(self, connection: int) -> ConnectionFacts | None:
        """What is known of it besides messages: addresses, names, processes, TCP; None for a file."""
        at = self._rows.index_connection(connection)
        return self._decoder.facts(at) if at >= 0 else None

    def choice(self, connection: int) -> DecodeAs | None:
        """What the user says that it is, if anything."""
        at = self._rows.index_connection(connection)
        return self._indexer.detector.choice(at) if at >= 0 else None

    def advertised_versions(self, connection: int) -> Mapping[int, tuple[int, int]]:
        """The versions of the server's ApiVersions response on it, by API key; empty where there is none."""
        self.learn()
        return self._indexer.conversation_state.versions.advertised(self._rows.index_connection(connection))

    def tls(self, connection: int) -> TlsSession | None:
        """What is known of its TLS; None if it is not encrypted, and for a file."""
        at = self._rows.index_connection(connection)
        return self._decoder.tls_session(at) if at >= 0 else None

    def tls_alert(self, connection: int) -> str:
        """The TLS alert that ended it, and who sent it: ``unknown_ca, of the client``; empty where there is none, and
        for a file."""
        at = self._rows.index_connection(connection)
        alert, side = self._indexer.detector.alert(at) if at >= 0 else (NO_ALERT, 0)
        if alert == NO_ALERT:
            return ""
        client = self._table.syn_side(at)
        return f"{alert_name(alert)}, of the {'client' if side == client else 'broker'}"

    def software(self, connection: int) -> tuple[str, str]:
        """Name and version of the client's software, from its ApiVersions request (KIP-511); else empty."""
        self.learn()
        return self._indexer.conversation_state.versions.software(self._rows.index_connection(connection))
