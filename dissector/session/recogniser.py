"""Who speaks Kafka, and which end is the client.

In this order: the end whose first bytes read as a request header (known API key, a version in range, a sane client id)
is the client, whatever the ports are, unless the capture saw the other end send the SYN; in a capture that began in the
middle the end that is not on a known port. TLS is told by its record header. What is none of it is left alone.
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

    def verdict(self, direction: int, head: bytes) -> Verdict:
        """What a direction is that begins with `head`."""
        connection, side = divmod(direction, 2)
        if connection in self.others:
            return Verdict.OTHER
        client = self.client_side.get(connection)
        if client is not None:
            return self._verdict_known(direction, head, is_client=client == side)
        return self._verdict_unknown(connection, side, head)

    def _verdict_known(self, direction: int, head: bytes, *, is_client: bool) -> Verdict:
        if self._flows.syn_side(direction // 2) >= 0 and not is_client:
            return Verdict.FRAMES
        if len(head) < (REQUEST_HEAD if is_client else RESPONSE_HEAD):
            return Verdict.UNDECIDED
        return Verdict.FRAMES if self.plausible(direction)(head) else Verdict.SEARCH

    def _verdict_unknown(self, connection: int, side: int, head: bytes) -> Verdict:
        opener = self._flows.syn_side(connection)
        if _TLS.match(head):
            self.others[connection] = Other.TLS
            return Verdict.OTHER
        if opener == 1 - side:
            return Verdict.UNDECIDED
        if self.is_request(head):
            self.client_side[connection] = side
            return Verdict.FRAMES
        if len(head) < REQUEST_HEAD and head[:1] in (b"", b"\x00"):
            return Verdict.UNDECIDED
        if opener == side:
            self.others[connection] = Other.UNKNOWN
            return Verdict.OTHER
        return self._verdict_by_port(connection)

    def _verdict_by_port(self, connection: int) -> Verdict:
        """The capture began in the middle, of a frame perhaps: only the ports can tell."""
        server = self.kafka_side(connection)
        if server is None:
            return Verdict.UNDECIDED
        self.client_side[connection] = 1 - server
        return Verdict.SEARCH

    def kafka_side(self, connection: int) -> int | None:
        """The one side that is on a port of Kafka's."""
        sides = [side for side, (_, port) in enumerate(self._flows.endpoints(connection)) if port in KAFKA_PORTS]
        return sides[0] if len(sides) == 1 else None

    def plausible(self, direction: int) -> Callable[[bytes], bool]:
        """What a frame of this direction begins with."""
        connection, side = divmod(direction, 2)
        if self.client_side.get(connection, side) == side:
            return self.is_request
        waiting = self._outstanding(connection)
        return lambda head: len(head) >= RESPONSE_HEAD and int.from_bytes(head[4:8], "big", signed=True) in waiting

    def is_request(self, head: bytes) -> bool:
        """Whether bytes begin with a request that one of the known APIs has."""
        if len(head) < REQUEST_HEAD:
            return False
        size = int.from_bytes(head[:4], "big", signed=True)
        versions = self._versions.get(int.from_bytes(head[4:6], "big"))
        if versions is None or not REQUEST_HEAD - 4 <= size <= self._largest:
            return False
        if not versions[0] <= int.from_bytes(head[6:8], "big") <= versions[1]:
            return False
        length = int.from_bytes(head[12:14], "big", signed=True)
        if not -1 <= length <= size - (REQUEST_HEAD - 4):
            return False
        client_id = head[14 : 14 + max(length, 0)].decode("utf-8", "ignore")
        return _CLIENT_ID.fullmatch(client_id) is not None
