"""Who speaks Kafka, and which end is the client.

The client is the side that sent the SYN, else the one that is not on a known port, else the one whose bytes read as
requests. That the bytes are Kafka at all is told by content, on any port:

  * a connection whose beginning was seen, by the header of its first request (known API key, version in range, sane
    client id);
  * one that was in progress already, by frames that a search finds (`framing/resync.py`). Elsewhere than on Kafka's
    ports they must say more, as other protocols have size prefixes too: requests must name their client, responses
    be several with ids that go up by little.

What is none of it is left alone, and counted by name where its first bytes tell (`strangers`). A port that the user
says is Kafka's is believed whatever its content, unless that is TLS.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Set
from functools import lru_cache
from typing import Final, Protocol

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt8
from dissector.core.columns import Column
from dissector.core.limits import Limits
from dissector.detection import other_protocols
from dissector.detection.frame_heuristics import (
    PRODUCE,
    EitherHeuristics,
    RequestHeuristics,
    ResponseHeuristics,
    is_cut_short,
    is_named,
    is_printable,
    produces,
)
from dissector.detection.other_protocols import OtherProtocol as Spoken
from dissector.framing import Classification, FrameEvidence, FrameHeuristics

KAFKA_PORTS: Final = frozenset({9092})
NOBODY: Final = -1
Outstanding = Callable[[int], Mapping[int, int]]
"""Correlation ids of a connection's requests that wait for a response, each with the packet of the oldest."""


class Endpoints(Protocol):
    """What this module asks of the connection table."""

    def __len__(self) -> int:
        """How many connections there are."""

    def endpoints(self, connection: int) -> tuple[tuple[str, int], tuple[str, int]]:
        """Address and port of side 0 and side 1."""

    def ports(self, connection: int) -> tuple[int, int]:
        """The port of side 0 and of side 1."""

    def syn_side(self, connection: int) -> int:
        """The side that opened the connection, -1 where the capture did not see it."""

    def syn_sides(self, connections: Int64) -> Int64:
        """The same for many, `(n,)`."""

    def first_packet(self, connection: int) -> int:
        """The number of its first packet."""

    def first_time_ns(self, connection: int) -> int:
        """The time of its first packet."""

    def closed(self, connection: int) -> tuple[int, int]:
        """The time of its first FIN or RST, a very large number where none was seen; and the side that sent it."""

    def open(self) -> Int64:
        """Connections of which something may come, ascending."""

    def ended(self, connection: int) -> tuple[int, int]:
        """Which of the flags FIN and RST side 0 and side 1 have sent; 0 where none."""


class KafkaDetector:
    """Decides for each direction; remembers the client's side of each connection that speaks Kafka. `ports` are those
    that the user says are Kafka's."""

    def __init__(
        self, flows: Endpoints, limits: Limits, outstanding: Outstanding, ports: Set[int] = frozenset()
    ) -> None:
        self._flows = flows
        self._ports_of = lru_cache(maxsize=1024)(flows.ports)
        self._ports = ports
        self._outstanding = outstanding
        self._requests = RequestHeuristics(limits.frame_size)
        self.client_side = Column(np.int8, NOBODY)
        """Side of each connection's client, `NOBODY` where it does not speak Kafka, as far as is known."""
        self.spoken = Column(np.uint8)
        """What each connection speaks that does not speak Kafka, as `strangers.Protocol`."""

    def verdict(self, direction: int, head: bytes, *, from_start: bool, final: bool) -> Classification:
        """What a direction is of which `head` is seen first."""
        connection, side = divmod(direction, 2)
        self._grow(connection + 1)
        if self.client_side.values[connection] != NOBODY:
            return self._verdict_known(connection, side, head, from_start=from_start)
        if self.spoken.values[connection] >= Spoken.UNKNOWN and self._flows.syn_side(connection) >= 0:
            return Classification.OTHER
        return self._verdict_unknown(connection, side, head, from_start=from_start, final=final)

    def begin(self, directions: Int64, heads: UInt8, sizes: Int64) -> Bool:
        """Connections whose first bytes are their opener's, and plainly a request, and the answers to them."""
        connection, side = directions >> 1, directions & 1
        self._grow(int(connection.max()) + 1)
        opener = self._flows.syn_sides(connection)
        first = np.zeros(len(directions), np.bool_)
        first[np.unique(connection, return_index=True)[1]] = True
        opens = first & (opener == side) & (self.spoken.values[connection] == Spoken.NOTHING)
        opens[opens] = self._requests.plain(heads[opens], sizes[opens])
        self.client_side.values[connection[opens]] = side[opens]
        self.spoken.values[connection[opens]] = Spoken.DOUBTFUL
        frames: Bool = opens | ((opener >= 0) & (self.client_side.values[connection] == 1 - side))
        return frames

    def _grow(self, connections: int) -> None:
        self.spoken.grow(connections)
        self.client_side.grow(connections)

    def _verdict_known(self, connection: int, side: int, head: bytes, *, from_start: bool) -> Classification:
        """Of a connection that speaks Kafka: frames begin where its stream begins, else they are searched for."""
        if not from_start or self._flows.syn_side(connection) < 0:
            return Classification.SEARCH
        asks = self.client_side.values[connection] == side
        return Classification.SEARCH if asks and not self.is_request(head) else Classification.FRAMES

    def _verdict_unknown(
        self, connection: int, side: int, head: bytes, *, from_start: bool, final: bool
    ) -> Classification:
        opener = self._flows.syn_side(connection)
        begins = from_start and opener >= 0
        if self._is_stranger(connection, head, begins=begins, asks=opener == side):
            return Classification.OTHER
        server = self._said_server(connection)
        if opener == side and not final and is_cut_short(head):
            return Classification.UNDECIDED
        asks = opener == side or (opener < 0 and self.kafka_side(connection) != side)
        if asks and self._is_first(connection, side, head):
            self.client_side.values[connection] = side
            return Classification.FRAMES
        if begins and opener == side:
            return self._verdict_at_start(connection, side)
        if server is not None:
            self.client_side.values[connection] = 1 - server
            return self._verdict_known(connection, side, head, from_start=from_start)
        if begins and self.kafka_side(connection) == side:
            return self._verdict_of_silence(connection, side, head) if final else Classification.UNDECIDED
        return Classification.PERHAPS

    def _verdict_of_silence(self, connection: int, side: int, head: bytes) -> Classification:
        """Of a server on Kafka's port of which all was captured, but nothing of what its client said: the ports are
        believed, unless its first bytes are no response."""
        if ResponseHeuristics({}, known=True).judge(head, 0) is FrameEvidence.NONE:
            return Classification.PERHAPS
        self.client_side.values[connection] = 1 - side
        return Classification.FRAMES

    def _is_stranger(self, connection: int, head: bytes, *, begins: bool, asks: bool) -> bool:
        """Whether a connection is known not to be Kafka; what it is by the looks of it is noted."""
        spoken = other_protocols.other_protocol(head)
        if spoken is None or (spoken is Spoken.ZOOKEEPER and not asks):
            spoken = Spoken(max(Spoken.DOUBTFUL, int(self.spoken.values[connection])))
        self.spoken.values[connection] = spoken
        if spoken <= Spoken.UNKNOWN or not begins:
            return False
        return spoken is Spoken.TLS or self._said_server(connection) is None

    def _verdict_at_start(self, connection: int, side: int) -> Classification:
        """Of a client whose first bytes are no request."""
        if self._said_server(connection) == 1 - side:
            self.client_side.values[connection] = side
            return Classification.SEARCH
        if self.spoken.values[connection] == Spoken.DOUBTFUL:
            self.spoken.values[connection] = Spoken.UNKNOWN
        return Classification.OTHER

    def _is_first(self, connection: int, side: int, head: bytes) -> bool:
        """Whether a request at the beginning of what was seen is enough to take a connection for Kafka."""
        if self._flows.syn_side(connection) != side:
            return self.is_request(head) and is_named(head)
        if self._is_newer_request(connection, head):
            return True
        trusted = self.kafka_side(connection) is not None
        if not self.is_request(head) or not (trusted or is_printable(head)):
            return False
        if head[4:6] != PRODUCE or is_named(head):
            return True
        return trusted and (produces(head) or (head[12:14] != bytes(2) and is_printable(head)))

    def found(self, direction: int, head: bytes) -> None:
        """A frame was found in a direction that was perhaps Kafka's; it begins with `head`."""
        connection, side = divmod(direction, 2)
        server = self.kafka_side(connection)
        if server is None:
            server = 1 - side if self._requests.judge(head, 0) is FrameEvidence.STRONG else side
        self.client_side.values[connection] = 1 - server

    def expects(self, direction: int) -> bool:
        """Whether to go on searching: on Kafka's port, unless it looks like another protocol."""
        connection = direction >> 1
        return self.kafka_side(connection) is not None and self.spoken.values[connection] == Spoken.DOUBTFUL

    def _said_server(self, connection: int) -> int | None:
        """The side that is the server because the user says so."""
        return self._side_on(connection, self._ports) if self._ports else None

    def kafka_side(self, connection: int) -> int | None:
        """The one side that is on a port of Kafka's."""
        said = self._said_server(connection)
        return self._side_on(connection, KAFKA_PORTS) if said is None else said

    def _side_on(self, connection: int, ports: Set[int]) -> int | None:
        one, other = self._ports_of(connection)
        if (one in ports) != (other in ports):
            return 0 if one in ports else 1
        opener = self._flows.syn_side(connection) if one in ports else -1
        return None if opener < 0 else 1 - opener

    def client(self, connection: int) -> int:
        """The side of a connection's client, `NOBODY` where it is not known to speak Kafka."""
        return int(self.client_side.values[connection]) if connection < len(self.client_side) else NOBODY

    def asks(self, direction: int) -> bool:
        """Whether a direction is a client's, as far as can be told."""
        connection, side = divmod(direction, 2)
        client = self.client(connection)
        return self.kafka_side(connection) != side if client == NOBODY else client == side

    def heads(self, direction: int) -> FrameHeuristics:
        """How frames of this direction begin."""
        connection = direction >> 1
        known = self.client(connection) != NOBODY
        if not known and self.kafka_side(connection) is None:
            return EitherHeuristics(self._requests, may_ask=self._flows.syn_side(connection) in (-1, direction & 1))
        if self.asks(direction):
            return self._requests
        return ResponseHeuristics(self._outstanding(connection), known=known)

    def strangers(self) -> list[int]:
        """Connections on Kafka's port with data that is not Kafka's."""
        others = (self.spoken.values != Spoken.NOTHING) & (self.client_side.values == NOBODY)
        return [c for c in np.flatnonzero(others).tolist() if self.kafka_side(c) is not None]

    def protocols(self) -> dict[str, int]:
        """How many connections speak what, the most frequent first."""
        others = self.spoken.values[self.client_side.values == NOBODY]
        counts: Counter[str] = Counter()
        for number, count in zip(*np.unique(others, return_counts=True), strict=True):
            counts[Spoken(number).words] += int(count)
        counts["Kafka"] = len(self.spoken) - len(others)
        counts[Spoken.NOTHING.words] += len(self._flows) - len(self.spoken)
        return {name: count for name, count in counts.most_common() if count}

    def reads_as_request(self, head: bytes) -> bool:
        """Whether bytes begin with a request whose client id is fit to print."""
        return self.is_request(head) and is_printable(head)

    def is_request(self, head: bytes) -> bool:
        """Whether bytes begin with a request that one of the known APIs has."""
        return self._requests.is_request(head)

    def _is_newer_request(self, connection: int, head: bytes) -> bool:
        """Whether bytes at the start of a connection begin with a request of an API or version that is not known: it
        must be below 16 MB, its client have a name, and its API be known unless the server is on Kafka's port."""
        requests = self._requests
        if not requests.is_header(head) or not is_named(head) or max(head[4], head[6]) > 0x7F or head[0]:
            return False
        return requests.is_known(head) or self.kafka_side(connection) is not None
