"""What is known of a connection besides its messages: which end is the client; addresses, ports and names of both ends.

Row fields of connections (`row_fields.py`) read `ConnectionFacts`, both for an exchange and for columns of the index.

Names are as they came: they pass `clean` where they are shown, as all texts do.

Invariant: a fact is looked up when it is read, so it is as new as the capture.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from dissector.capture.process_notes import Process
from dissector.core.arrays import Int64
from dissector.core.batches import NEVER
from dissector.core.text import endpoint_name
from dissector.detection.connections import Connections
from dissector.detection.kafka_detector import NO_CLIENT, KafkaDetector
from dissector.transport.tcp_facts import TcpFacts

CACHE_SIZE: Final = 1 << 14
"""Connections whose ends are kept as text."""


class EndpointNames:
    """Client and server of each connection of the index."""

    def __init__(self, connections: Connections, detector: KafkaDetector) -> None:
        self._connections = connections
        self._detector = detector
        self.of = lru_cache(maxsize=CACHE_SIZE)(self._of)
        """The client's end and the server's, as `host:port`, kept until `clear`."""

    def clear(self) -> None:
        """Forget the ends, as more of the capture may show who is the client."""
        self.of.cache_clear()

    def server(self, connection: int) -> str:
        """The server's end, as `host:port`."""
        return self.of(connection)[1]

    def servers(self, connections: Int64) -> tuple[list[str], Int64]:
        """The different servers of connections, as `host:port`, and for every connection which of them is its own."""
        ends, which = self._connections.ends(connections, 1 - self._client_sides(connections))
        return [endpoint_name(*each) for each in ends], which

    def routes(self, connections: Int64) -> Int64:
        """Numbers, `(n,)`, that are equal where client and server are, whatever the client's port is."""
        return self._connections.routes(connections, self._client_sides(connections))

    def _client_sides(self, connections: Int64) -> Int64:
        sides = self._detector.clients(connections)
        unknown = np.flatnonzero(sides == NO_CLIENT)
        sides[unknown] = [self.client_side(each) for each in connections[unknown].tolist()]
        return sides

    def client_side(self, connection: int) -> int:
        """The side of the client, 0 or 1; 0 where nothing shows who it is."""
        side = self._detector.client(connection)
        if side == NO_CLIENT:
            kafka = self._detector.kafka_side(connection)
            return 0 if kafka is None else 1 - kafka
        return side

    def closed(self, connection: int) -> tuple[int, bool] | None:
        """When it was closed, and whether the client closed it first; None where that was not captured."""
        time_ns, side = self._connections.closed(connection)
        return None if time_ns == NEVER else (time_ns, side == self.client_side(connection))

    def _of(self, connection: int) -> tuple[str, str]:
        ends = [endpoint_name(*each) for each in self._connections.endpoints(connection)]
        side = self.client_side(connection)
        return ends[side], ends[1 - side]


ProcessOf = Callable[[str, str, int], Process | None]
"""The process that has an end of a connection: the end and its peer as `host:port`, and when the connection began."""
HostName = Callable[[str], str | None]
"""The name of the host with an IP address, if it is known."""


class Endpoint(NamedTuple):
    """An end of a connection."""

    address: str
    port: int


def endpoint_of(text: str) -> Endpoint | None:
    """An end that is written as `host:port` or `[host]:port`; None for any other text."""
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdecimal():
        return None
    return Endpoint(host.removeprefix("[").removesuffix("]"), int(port))


class ConnectionLookup:
    """Where facts of connections come from. A checkpoint does not keep this: whoever restores it sets it again."""

    def __init__(self) -> None:
        self.host_name: HostName = no_name
        self.process: ProcessOf = no_process
        self.tcp: Callable[[int], TcpFacts | None] = no_tcp
        """What TCP did on a connection of the index."""

    def __reduce__(self) -> tuple[type["ConnectionLookup"], tuple[()]]:
        return ConnectionLookup, ()


def no_name(_address: str) -> str | None:
    """Where no host has a name."""
    return None


def no_process(_end: str, _peer: str, _since_ns: int) -> Process | None:
    """Where no process is known."""
    return None


def no_tcp(_connection: int) -> TcpFacts | None:
    """Where no segment is known."""
    return None


class ConnectionFacts:
    """The facts of one connection."""

    __slots__ = ("_begin_ns", "_client", "_client_side", "_ends", "_lookup", "_number", "_server")

    def __init__(
        self, client: str, server: str, lookup: ConnectionLookup, number: int = -1, client_side: int = 0,
        begin_ns: int = 0,
    ) -> None:  # fmt: skip
        """Both ends as `host:port`. Of an entry of Kafka's own files the client is empty, and nothing is known."""
        self._ends = client, server
        self._number, self._client_side, self._begin_ns = number, client_side, begin_ns
        self._client = endpoint_of(client)
        self._server = endpoint_of(server) if self._client is not None else None
        self._lookup = lookup

    @property
    def client_ip(self) -> str | None:
        """The client's IP address."""
        return None if self._client is None else self._client.address

    @property
    def server_ip(self) -> str | None:
        """The broker's IP address."""
        return None if self._server is None else self._server.address

    @property
    def client_port(self) -> int | None:
        """The client's port."""
        return None if self._client is None else self._client.port

    @property
    def server_port(self) -> int | None:
        """The broker's port."""
        return None if self._server is None else self._server.port

    @property
    def client_host(self) -> str | None:
        """The client's host name, or its address where no name is known."""
        return self._host(self._client)

    @property
    def server_host(self) -> str | None:
        """The broker's host name, or its address where no name is known."""
        return self._host(self._server)

    @property
    def process(self) -> Process | None:
        """The client's process; known of live captures on the machine that it ran on."""
        return self._lookup.process(*self._ends, self._begin_ns)

    @property
    def server_process(self) -> Process | None:
        """The broker's process."""
        client, server = self._ends
        return self._lookup.process(server, client, self._begin_ns)

    @property
    def tcp(self) -> TcpFacts | None:
        """What TCP did; side 0 is the client."""
        found = self._lookup.tcp(self._number)
        if found is None or not self._client_side:
            return found
        return found._replace(sides=(found.sides[1], found.sides[0]))

    def _host(self, end: Endpoint | None) -> str | None:
        if end is None:
            return None
        name = self._lookup.host_name(end.address)
        return name or end.address


NO_LOOKUP = ConnectionLookup()
