"""What the user can say of connections, as menus show it: which connections, and what they are. Every word is clean."""

from collections import Counter
from typing import Final, NamedTuple

from dissector.capture_session import Capture
from dissector.core.text import clean, counted, endpoint_name
from dissector.detection.decode_as import DecodeAs, End, EndSelector, Protocol
from dissector.exchange.connection_facts import endpoint_of

MOST_SERVERS: Final = 100
"""Servers that are offered; those with the most connections."""


class OfferedConnections(NamedTuple):
    """OfferedConnections that something can be said of: those of a server, or one with a client."""

    name: str
    words: str
    server: End
    client: End | None = None

    def choices(self) -> list[tuple[str, DecodeAs]]:
        """What they can be said to be, in words."""
        these = EndSelector(self.server, self.client)
        brokers = [these] if self.client is None else [these, EndSelector(self.client, self.server)]
        kafka = [(f"Kafka, the broker is {endpoint_name(*each.server)}", each) for each in brokers]
        said = [(words, DecodeAs(each, Protocol.KAFKA)) for words, each in kafka]
        return [*said, ("TLS", DecodeAs(these, Protocol.TLS)), ("not Kafka", DecodeAs(these, Protocol.NONE))]


def offered_connections(capture: Capture, row: int | None) -> list[OfferedConnections]:
    """Return the connection of a row, if there is one; all of its server; servers that are not recognized as Kafka."""
    found = []
    if row is not None:
        number = capture.rows.connection_of(row)
        client, server = (endpoint_of(end) for end in capture.connections.ends(number))
        if client is not None and server is not None:
            one, other = (client.address, client.port), (server.address, server.port)
            name = f"C{number} {endpoint_name(*client)} → {endpoint_name(*server)}"
            found.append(OfferedConnections(clean(name), "the connection of this row", other, one))
            found.append(OfferedConnections(clean(endpoint_name(*server)), "all connections to its broker", other))
    return found + _unrecognized(capture)


def _unrecognized(capture: Capture) -> list[OfferedConnections]:
    protocols: dict[End, Counter[str]] = {}
    for _, server, protocol in capture.connections.unrecognized():
        protocols.setdefault(server, Counter())[protocol] += 1
    servers = sorted(protocols, key=lambda server: -protocols[server].total())[:MOST_SERVERS]
    return [
        OfferedConnections(
            clean(endpoint_name(*server)),
            f"{counted(protocols[server].total(), 'connection')}, {', '.join(sorted(protocols[server]))}", server,
        )
        for server in servers
    ]  # fmt: skip
