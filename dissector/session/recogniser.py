"""Who speaks Kafka, and which end is the client.

The client is the side that sent the SYN, else the one that is not on a known port, else the one whose first bytes read
as a request header (known API key, version in range, sane client id). That the bytes are Kafka at all is told by such a
header, on any port. TLS is told by its record header. What is none of it is left alone.
"""

import re
from collections.abc import Callable
from enum import StrEnum
from typing import Final, Protocol

from dissector.framing import Verdict
from dissector.limits import Limits
from dissector.protocol.schema.loader import apis

KAFKA_PORTS: Final = frozenset({9092})
REQUEST_HEAD: Final = 14
RESPONSE_HEAD: Final = 8
HEAD: Final = 64
"""Bytes that are looked at to tell a request by its header and client id."""
NEWER_VERSIONS: Final = 3
"""A client newer than the tables may use versions this far past those known."""
_TLS: Final = re.compile(rb"[\x14-\x17]\x03[\x00-\x04]", re.DOTALL)
_CLIENT_ID: Final = re.compile(r"[^\x00-\x1f\x7f]*")

Outstanding = Callable[[int], frozenset[int] | set[int]]
"""Correlation ids of a connection's requests that wait for a response."""


class Flows(Protocol):
    """What this module asks of the connection table."""

    def endpoints(self, connection: int) -> tuple[tuple[str, int], tuple[str, int]]:
        """Address and port of side 0 and side 1."""

    def syn_side(self, connection: int) -> int:
        """The side that opened the connection, -1 where the capture did not see it."""

    def first_packet(self, connection: int) -> int:
        """The number of its first packet."""

    def first_time_ns(self, connection: int) -> int:
        """The time of its first packet."""

    def ended(self, connection: int) -> tuple[int, int]:
        """Which of the flags FIN and RST side 0 and side 1 have sent; 0 where none."""


class Other(StrEnum):
    """What a connection is that does not speak Kafka in plain."""

    TLS = "tls"
    UNKNOWN = "unparsed"


class KafkaRecogniser:
    """Decides for each direction; remembers the client's side of each connection that speaks Kafka."""

    def __init__(self, flows: Flows, limits: Limits, outstanding: Outstanding) -> None:
        self._flows = flows
        self._largest = limits.frame_size
        self._outstanding = outstanding
        self._versions = {api.key: (api.versions.low, api.versions.high + NEWER_VERSIONS) for api in apis()}
        self.client_side: dict[int, int] = {}
        """Side of the client, of connections that speak Kafka."""
        self.others: dict[int, Other] = {}
        """Connections that don't."""

    def verdict(self, direction: int, head: bytes, *, from_start: bool, final: bool) -> Verdict:
        """What a direction is of which `head` is seen first."""
        connection, side = divmod(direction, 2)
        if connection in self.others:
            return Verdict.OTHER
        if connection not in self.client_side:
            verdict = self._verdict_unknown(connection, side, head, from_start=from_start)
            if verdict != Verdict.UNDECIDED or not final or self.kafka_side(connection) is None:
                return verdict
            self._take_ports(connection)
        return self._verdict_known(direction, head, from_start=from_start)

    def _verdict_known(self, direction: int, head: bytes, *, from_start: bool) -> Verdict:
        connection, side = divmod(direction, 2)
        is_client = self.client_side[connection] == side
        if from_start and not is_client and self._flows.syn_side(connection) >= 0:
            return Verdict.FRAMES
        if len(head) < (REQUEST_HEAD if is_client else RESPONSE_HEAD):
            return Verdict.UNDECIDED
        return Verdict.FRAMES if self.plausible(direction)(head) else Verdict.SEARCH

    def _verdict_unknown(self, connection: int, side: int, head: bytes, *, from_start: bool) -> Verdict:
        opener = self._flows.syn_side(connection)
        if _TLS.match(head):
            self.others[connection] = Other.TLS
            return Verdict.OTHER
        if opener == 1 - side:
            return Verdict.UNDECIDED
        if opener < 0 and self.kafka_side(connection) is not None:
            self._take_ports(connection)
            return self._verdict_known(2 * connection + side, head, from_start=from_start)
        if self.is_request(head) and (opener == side or _is_named(head)):
            self.client_side[connection] = side
            return Verdict.FRAMES
        if len(head) < REQUEST_HEAD and head[:1] in (b"", b"\x00"):
            return Verdict.UNDECIDED
        if opener == side and from_start and self._is_newer_request(connection, head):
            self.client_side[connection] = side
            return Verdict.FRAMES
        if opener == side and from_start:
            self.others[connection] = Other.UNKNOWN
            return Verdict.OTHER
        if self.kafka_side(connection) is None:
            return Verdict.UNDECIDED
        self._take_ports(connection)
        return Verdict.SEARCH

    def _take_ports(self, connection: int) -> None:
        """Believe the ports: the client is the side that is not on Kafka's."""
        server = self.kafka_side(connection)
        assert server is not None
        self.client_side[connection] = 1 - server

    def kafka_side(self, connection: int) -> int | None:
        """The one side that is on a port of Kafka's."""
        sides = [side for side, (_, port) in enumerate(self._flows.endpoints(connection)) if port in KAFKA_PORTS]
        return sides[0] if len(sides) == 1 else None

    def plausible(self, direction: int) -> Callable[[bytes], bool]:
        """What a frame of this direction begins with."""
        connection, side = divmod(direction, 2)
        if self.client_side.get(connection, side) == side:
            return self.reads_as_request
        waiting = self._outstanding(connection)
        return lambda head: len(head) >= RESPONSE_HEAD and int.from_bytes(head[4:8], "big", signed=True) in waiting

    def reads_as_request(self, head: bytes) -> bool:
        """Whether bytes begin with a request whose client id is fit to print."""
        return self.is_request(head) and _is_printable(head)

    def is_request(self, head: bytes) -> bool:
        """Whether bytes begin with a request that one of the known APIs has."""
        versions = self._versions.get(int.from_bytes(head[4:6], "big"))
        if versions is None or not versions[0] <= int.from_bytes(head[6:8], "big") <= versions[1]:
            return False
        return self._is_header(head)

    def _is_newer_request(self, connection: int, head: bytes) -> bool:
        """Whether bytes at the start of a connection begin with a request of an API or version that is not known: its
        client must have a name, and its API be known unless the server is on Kafka's port."""
        if not self._is_header(head) or not _is_named(head) or max(head[4], head[6]) > 0x7F:
            return False
        return int.from_bytes(head[4:6], "big") in self._versions or self.kafka_side(connection) is not None

    def _is_header(self, head: bytes) -> bool:
        """Whether size and client id of a request make sense."""
        if len(head) < REQUEST_HEAD:
            return False
        size = int.from_bytes(head[:4], "big", signed=True)
        length = int.from_bytes(head[12:14], "big", signed=True)
        return REQUEST_HEAD - 4 <= size <= self._largest and -1 <= length <= size - (REQUEST_HEAD - 4)


def _is_named(head: bytes) -> bool:
    """Whether a request names its client. Where nothing else tells the sides apart, a request must: the responses to
    correlation ids below 2**16 read as Produce requests with an empty client id."""
    return int.from_bytes(head[12:14], "big", signed=True) > 0 and _is_printable(head)


def _is_printable(head: bytes) -> bool:
    """Whether the client id has no control characters. Where a frame's place is a guess it must not; where it is
    known a hostile one may."""
    length = max(0, int.from_bytes(head[12:14], "big", signed=True))
    return _CLIENT_ID.fullmatch(head[14 : 14 + length].decode("utf-8", "ignore")) is not None
