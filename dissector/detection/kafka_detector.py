"""Which connections are Kafka, and which end is the client.

The client is the side that sent the SYN, else the one that is not on a known port, else the one whose bytes read as
requests. Kafka is recognized by content, on any port:

  * a connection whose beginning was captured, by the header of its first request (known API key, version in range,
    plausible client id);
  * one that was in progress already, by frames that a search finds (`framing/resynchronizer.py`). On other ports than
    Kafka's more is required, as other protocols have size prefixes too: requests need a client id, responses a series
    of ids that rise in small steps.

Other connections are not framed, only counted by name (`other_protocols`). What the user says of a connection
(`decode_as`) comes before content and ports, but TLS is recognized even so. A hex transcript says who is the client,
and is Kafka whatever it has.
"""

from collections import Counter
from collections.abc import Callable, Sequence, Set
from functools import lru_cache
from typing import Final

import numpy as np

from dissector.conversation.turns import MADE_UP_SERVER
from dissector.core.arrays import Bool, Int64, UInt8
from dissector.core.batches import NEVER
from dissector.core.columns import Column
from dissector.core.limits import Limits
from dissector.detection import other_protocols
from dissector.detection.connections import Connections
from dissector.detection.decode_as import DecodeAs, Protocol, choice_for
from dissector.detection.frame_heuristics import (
    PRODUCE,
    EitherHeuristics,
    PendingIds,
    RequestHeuristics,
    ResponseHeuristics,
    has_produce_body,
    is_cut_short,
    is_named,
    is_printable,
)
from dissector.detection.other_protocols import OtherProtocol
from dissector.detection.tls_alerts import NO_ALERT, alert_number
from dissector.framing import Classification, FrameEvidence, FrameHeuristics
from dissector.framing.detector import ALERT_SIZE

KAFKA_PORTS: Final = frozenset({9092})
TLS_PORTS: Final = frozenset({443, 465, 563, 636, 853, 989, 990, 992, 993, 994, 995, 5061, 5671, 6443, 8443, 8883})
"""Ports of other protocols over TLS, as IANA has them, or as everybody does."""
USUAL_PORTS: Final = range(9_090, 9_100)
"""The last four digits of ports that brokers have by custom: 9092, 9094, 19092, 29092."""
NO_CLIENT: Final = -1
Outstanding = Callable[[int], PendingIds]
"""The pending requests of a connection."""


class KafkaDetector:
    """Classifies directions, and keeps the client's side of each Kafka connection. `decode_as` is what the user says of
    connections. Implements `framing.ProtocolDetector`."""

    def __init__(
        self, connections: Connections, limits: Limits, outstanding: Outstanding, decode_as: Sequence[DecodeAs] = ()
    ) -> None:
        self._connections = connections
        self._ports_of = lru_cache(maxsize=1024)(connections.ports)
        self._is_transcript = lru_cache(maxsize=1024)(self._is_of_transcript)
        self._decode_as = tuple(decode_as)
        self._choice_of = lru_cache(maxsize=1024)(self._find_choice)
        self._outstanding = outstanding
        self._requests = RequestHeuristics(limits.frame_size)
        self.client_side = Column(np.int8, NO_CLIENT)
        """The side of each connection's client, `NO_CLIENT` where it is not known to be Kafka."""
        self.other_protocol = Column(np.uint8)
        """An `OtherProtocol` for each connection that is not Kafka, and for each server of a Kafka client that is
        not."""
        self._senders = Column(np.uint8)
        """Which sides of a connection sent something, as bits, where it is not plainly Kafka."""
        self._alerts = Column(np.uint16)
        """The TLS alert that ended each connection, 256 more if side 1 sent it."""

    def classify(self, direction: int, head: bytes, *, from_start: bool, final: bool) -> Classification:
        """Classify a direction by its first bytes."""
        connection, side = divmod(direction, 2)
        self._grow(connection + 1)
        self._senders.values[connection] |= 1 << side
        if from_start and len(head) == ALERT_SIZE:
            self.note_alert(direction, head)
        if self._is_transcript(connection):
            self.client_side.values[connection] = self._connections.syn_side(connection)
            self.other_protocol.values[connection] = OtherProtocol.UNDETERMINED
            return Classification.FRAMES
        if self._protocol_of(connection) is Protocol.NONE:
            self.other_protocol.values[connection] = other_protocols.recognize(head) or max(
                OtherProtocol.UNKNOWN, int(self.other_protocol.values[connection])
            )
            return Classification.OTHER
        if self.client_side.values[connection] != NO_CLIENT:
            return self._classify_known(connection, side, head, from_start=from_start)
        if (
            int(self.other_protocol.values[connection]) >= OtherProtocol.UNKNOWN
            and self._connections.syn_side(connection) >= 0
        ):
            return Classification.OTHER
        return self._classify_unknown(connection, side, head, from_start=from_start, final=final)

    def classify_starts(self, directions: Int64, heads: UInt8, sizes: Int64) -> Bool:
        """Return which directions plainly begin with a request of the connection's opener, or with a response to it."""
        connection, side = directions >> 1, directions & 1
        self._grow(int(connection.max()) + 1)
        opener = self._connections.syn_sides(connection)
        first = np.zeros(len(directions), np.bool_)
        first[np.unique(connection, return_index=True)[1]] = True
        opens = first & (opener == side) & (self.other_protocol.values[connection] == OtherProtocol.NO_DATA)
        opens[opens] = self._requests.plain(heads[opens], sizes[opens])
        if self._decode_as:
            opens[opens] = [self._accepts_opener(each) for each in connection[opens].tolist()]
        self.client_side.values[connection[opens]] = side[opens]
        self.other_protocol.values[connection[opens]] = OtherProtocol.UNDETERMINED
        responds = (opener >= 0) & (self.client_side.values[connection] == 1 - side)
        frames: Bool = opens | (responds & (heads[:, 0] == 0))
        return frames

    def note_alert(self, direction: int, data: bytes) -> None:
        """Take note of a TLS alert in a connection that was captured from its beginning, if `data` is one. The
        first one of a connection is the cause."""
        alert, (connection, side) = alert_number(data), divmod(direction, 2)
        if alert != NO_ALERT and not self._alerts.values[connection] and self._connections.syn_side(connection) >= 0:
            self._alerts.values[connection] = alert | side << 8

    def alert(self, connection: int) -> tuple[int, int]:
        """The TLS alert that ended a connection, `NO_ALERT` where none was seen, and the side that sent it."""
        side, alert = divmod(int(self._alerts.values[connection]) if connection < len(self._alerts) else 0, 256)
        return alert, side

    def _grow(self, connections: int) -> None:
        self.other_protocol.grow(connections)
        self.client_side.grow(connections)
        self._alerts.grow(connections)
        self._senders.grow(connections)

    def _classify_known(self, connection: int, side: int, head: bytes, *, from_start: bool) -> Classification:
        """Classify a direction of a Kafka connection: framed from the start of its stream, else after a search."""
        if not from_start or self._connections.syn_side(connection) < 0:
            return Classification.SEARCH
        is_client = self.client_side.values[connection] == side
        if not is_client and head[0]:
            self.other_protocol.values[connection] = other_protocols.recognize(head) or OtherProtocol.UNDETERMINED
        return Classification.SEARCH if is_client and not self.is_request(head) else Classification.FRAMES

    def _classify_unknown(
        self, connection: int, side: int, head: bytes, *, from_start: bool, final: bool
    ) -> Classification:
        opener = self._connections.syn_side(connection)
        begins = from_start and opener >= 0
        if self._is_other_protocol(connection, head, begins=begins, is_client=opener == side):
            return Classification.OTHER
        server = self._given_server(connection)
        if opener == side and not final and is_cut_short(head):
            return Classification.UNDECIDED
        if server is not None and self._protocol_of(connection) is Protocol.KAFKA:
            self.client_side.values[connection] = 1 - server
            return self._classify_known(connection, side, head, from_start=from_start)
        is_client = opener == side or (opener < 0 and self.kafka_side(connection) != side)
        if is_client and self._is_first(connection, side, head):
            self.client_side.values[connection] = side
            return Classification.FRAMES
        if begins and opener == side:
            if self.other_protocol.values[connection] == OtherProtocol.UNDETERMINED:
                self.other_protocol.values[connection] = OtherProtocol.UNKNOWN
            return Classification.OTHER
        if begins and self.kafka_side(connection) == side:
            return self._classify_without_client(connection, side, head) if final else Classification.UNDECIDED
        return Classification.POSSIBLE

    def _classify_without_client(self, connection: int, side: int, head: bytes) -> Classification:
        """Classify a server on Kafka's port of which all was captured, but nothing of its client.

        It is Kafka, unless its first bytes are no response."""
        if ResponseHeuristics(PendingIds({}), known=True).judge(head, 0) is FrameEvidence.NONE:
            return Classification.POSSIBLE
        self.client_side.values[connection] = 1 - side
        return Classification.FRAMES

    def _is_other_protocol(self, connection: int, head: bytes, *, begins: bool, is_client: bool) -> bool:
        """Whether a connection is known not to be Kafka. Records what its first bytes look like."""
        other_protocol = other_protocols.recognize(head)
        said = self._protocol_of(connection)
        if said is Protocol.TLS and other_protocol is None:
            self.other_protocol.values[connection] = OtherProtocol.TLS
            return False
        if other_protocol is None or (other_protocol is OtherProtocol.ZOOKEEPER and not is_client):
            other_protocol = OtherProtocol(max(OtherProtocol.UNDETERMINED, int(self.other_protocol.values[connection])))
        self.other_protocol.values[connection] = other_protocol
        if other_protocol <= OtherProtocol.UNKNOWN or not begins:
            return False
        return other_protocol is OtherProtocol.TLS or said is not Protocol.KAFKA

    def _is_first(self, connection: int, side: int, head: bytes) -> bool:
        """Whether a request at the beginning of what was captured makes a connection Kafka."""
        if self._connections.syn_side(connection) != side:
            return self.is_request(head) and is_named(head)
        if self._is_newer_request(connection, head):
            return True
        trusted = self.kafka_side(connection) is not None
        if not self.is_request(head) or not (trusted or is_printable(head)):
            return False
        if head[0] and not trusted and not is_named(head):
            return False  # 16 MB at least: other protocols begin with a byte that is not 0
        if head[4:6] != PRODUCE or is_named(head):
            return True
        return trusted and (has_produce_body(head) or (head[12:14] != bytes(2) and is_printable(head)))

    def confirm(self, direction: int, head: bytes) -> None:
        """Take note that a frame, which begins with `head`, was found in a direction that was possibly Kafka."""
        connection, side = divmod(direction, 2)
        server = self.kafka_side(connection)
        if server is None:
            server = 1 - side if self._requests.judge(head, 0) is FrameEvidence.STRONG else side
        self.client_side.values[connection] = 1 - server

    def is_probably_kafka(self, direction: int) -> bool:
        """Whether to go on searching: on Kafka's port, unless the bytes look like another protocol."""
        connection = direction >> 1
        return (
            self.kafka_side(connection) is not None
            and self.other_protocol.values[connection] == OtherProtocol.UNDETERMINED
        )

    def _is_of_transcript(self, connection: int) -> bool:
        """Whether a connection is a transcript's, whose server has an address that is reserved for documentation."""
        opener = self._connections.syn_side(connection)
        return opener >= 0 and self._connections.endpoints(connection)[1 - opener] == MADE_UP_SERVER

    def _find_choice(self, connection: int) -> DecodeAs | None:
        return choice_for(self._decode_as, self._connections.endpoints(connection))

    def choice(self, connection: int) -> DecodeAs | None:
        """What the user says of a connection, if anything."""
        return self._choice_of(connection) if self._decode_as else None

    def _protocol_of(self, connection: int) -> Protocol | None:
        choice = self.choice(connection)
        return None if choice is None else choice.protocol

    def _given_server(self, connection: int) -> int | None:
        """The side that the user says is the server, None where nothing says so."""
        choice = self.choice(connection)
        if choice is None:
            return None
        return choice.selector.server_side(
            self._connections.endpoints(connection), self._connections.syn_side(connection)
        )

    def _accepts_opener(self, connection: int) -> bool:
        """Whether the opener of a connection may be a client of Kafka's, by what the user says."""
        protocol, server = self._protocol_of(connection), self._given_server(connection)
        opener = self._connections.syn_side(connection)
        return protocol is None or (protocol is Protocol.KAFKA and (server is None or server == 1 - opener))

    def kafka_side(self, connection: int) -> int | None:
        """The side that is a Kafka broker's by what the user says, or by its port; None where there is no such side."""
        if self._protocol_of(connection) is Protocol.NONE:
            return None
        given = self._given_server(connection)
        return self._side_on(connection, KAFKA_PORTS) if given is None else given

    def _side_on(self, connection: int, ports: Set[int]) -> int | None:
        one, other = self._ports_of(connection)
        if (one in ports) != (other in ports):
            return 0 if one in ports else 1
        opener = self._connections.syn_side(connection) if one in ports else -1
        return None if opener < 0 else 1 - opener

    def client(self, connection: int) -> int:
        """The side of a connection's client, `NO_CLIENT` where it is not known to speak Kafka."""
        return self.client_side.item(connection) if connection < len(self.client_side) else NO_CLIENT

    def clients(self, connections: Int64) -> Int64:
        """The same of many, `(n,)`."""
        found = np.full(len(connections), NO_CLIENT, np.int64)
        known = connections < len(self.client_side)
        found[known] = self.client_side.values[connections[known]]
        return found

    def is_client(self, direction: int) -> bool:
        """Whether a direction is a client's, as far as is known."""
        connection, side = divmod(direction, 2)
        client = self.client(connection)
        return self.kafka_side(connection) != side if client == NO_CLIENT else client == side

    def heuristics(self, direction: int) -> FrameHeuristics:
        """How frames of this direction begin."""
        connection = direction >> 1
        known = self.client(connection) != NO_CLIENT
        if not known and self.kafka_side(connection) is None:
            return EitherHeuristics(
                self._requests, may_be_client=self._connections.syn_side(connection) in (-1, direction & 1)
            )
        if self.is_client(direction):
            return self._requests
        return ResponseHeuristics(self._outstanding(connection), known=known)

    def non_kafka_connections(self) -> list[int]:
        """Connections on Kafka's port with data that is not Kafka's; and on any port those on which a client of TLS was
        refused, if the server is a broker, or on a usual port of a broker's host, or nothing else in the capture is
        Kafka."""
        others = (self.other_protocol.values != OtherProtocol.NO_DATA) & (self.client_side.values == NO_CLIENT)
        found = [c for c in np.flatnonzero(others).tolist() if self.kafka_side(c) is not None]
        refused = [c for c in np.flatnonzero(others & self._sends_tls_alone()).tolist() if self._is_refused(c)]
        if refused:
            kafka = np.flatnonzero(self.client_side.values != NO_CLIENT)
            brokers = set(self._connections.ends(kafka, 1 - self.client_side.values[kafka].astype(np.int64))[0])
            servers = {c: self._connections.endpoints(c)[1 - self._connections.syn_side(c)] for c in refused}
            hosts = {server[0] for server in brokers}
            refused = [
                c
                for c, server in servers.items()
                if server in brokers or (server[0] in hosts and server[1] % 10_000 in USUAL_PORTS) or not len(kafka)
            ]
        return sorted({*found, *refused})

    def _sends_tls_alone(self) -> Bool:
        """Which connections have bytes of TLS from one side and none from the other, `(n,)`."""
        alone: Bool = (self.other_protocol.values == OtherProtocol.TLS) & np.isin(self._senders.values, (1, 2))
        return alone

    def _is_refused(self, connection: int) -> bool:
        """Whether the side that opened a connection of TLS is the only sender, and the other closed it; not on ports of
        other protocols over TLS."""
        opener, (closed_ns, closer) = self._connections.syn_side(connection), self._connections.closed(connection)
        return (
            opener >= 0
            and int(self._senders.values[connection]) == 1 << opener
            and closed_ns != NEVER
            and closer == 1 - opener
            and self._connections.ports(connection)[1 - opener] not in TLS_PORTS
            and self._protocol_of(connection) is not Protocol.NONE
        )

    def with_data(self) -> Int64:
        """Connections with data, ascending."""
        return np.flatnonzero(
            (self.other_protocol.values != OtherProtocol.NO_DATA) | (self.client_side.values != NO_CLIENT)
        )

    def other_protocols(self, without: Sequence[int] = ()) -> Counter[str]:
        """How many connections with data that are not Kafka have which protocol, `without` some of them."""
        others = self.client_side.values == NO_CLIENT
        others[np.asarray(without, np.int64)] = False
        counts: Counter[str] = Counter()
        for number, count in enumerate(np.bincount(self.other_protocol.values[others]).tolist()):
            counts[OtherProtocol(number).label] += count
        del counts[OtherProtocol.NO_DATA.label]
        return +counts

    def unrecognized(self) -> list[tuple[int, int, OtherProtocol]]:
        """Connections with data that are not Kafka: each with the side that is probably its server's, and what it is.

        The server accepted the connection, or is on a port of Kafka's, else on the lower port."""
        others = (self.other_protocol.values != OtherProtocol.NO_DATA) & (self.client_side.values == NO_CLIENT)
        found = []
        for connection in np.flatnonzero(others).tolist():
            opener, side = self._connections.syn_side(connection), self.kafka_side(connection)
            if side is None:
                one, other = self._ports_of(connection)
                side = 1 - opener if opener >= 0 else int(other < one)
            found.append((connection, side, OtherProtocol(int(self.other_protocol.values[connection]))))
        return found

    def protocols(self) -> dict[str, int]:
        """How many connections have which protocol, the most frequent first."""
        counts = self.other_protocols()
        counts["Kafka"] = int((self.client_side.values != NO_CLIENT).sum())
        counts[OtherProtocol.NO_DATA.label] = len(self._connections) - counts.total()
        return {name: count for name, count in counts.most_common() if count}

    def server_protocol(self, connection: int) -> OtherProtocol | None:
        """The protocol in which the server of a Kafka client responds, if that is another one."""
        other = int(self.other_protocol.values[connection]) if connection < len(self.other_protocol) else 0
        return OtherProtocol(other) if other > OtherProtocol.UNKNOWN and self.client(connection) != NO_CLIENT else None

    def reads_as_request(self, head: bytes) -> bool:
        """Whether bytes begin with a request whose client id is printable."""
        return self.is_request(head) and is_printable(head)

    def is_request(self, head: bytes) -> bool:
        """Whether bytes begin with a request of a known API."""
        return self._requests.is_request(head)

    def _is_newer_request(self, connection: int, head: bytes) -> bool:
        """Whether bytes at the start of a connection begin with a request of an unknown API or version.

        It must be below 16 MB and have a client id, and its API must be known unless the server is on Kafka's port."""
        requests = self._requests
        if not requests.is_header(head) or not is_named(head) or max(head[4], head[6]) > 0x7F or head[0]:
            return False
        return requests.is_known(head) or self.kafka_side(connection) is not None
