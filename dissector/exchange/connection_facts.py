"""What is known of a connection besides its messages: addresses, ports and names of both ends.

Row fields of connections (`row_fields.py`) read `ConnectionFacts`, both for an exchange and for columns of the index.

Names are as they came: they pass `clean` where they are shown, as all texts do.

Invariant: a fact is looked up when it is read, so it is as new as the capture.
"""

from collections.abc import Callable
from typing import NamedTuple

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

    def __reduce__(self) -> tuple[type["ConnectionLookup"], tuple[()]]:
        return ConnectionLookup, ()


def no_name(_address: str) -> str | None:
    """Where no host has a name."""
    return None


class ConnectionFacts:
    """The facts of one connection."""

    __slots__ = ("_client", "_lookup", "_server")

    def __init__(self, client: str, server: str, lookup: ConnectionLookup) -> None:
        """Both ends as `host:port`. Of an entry of Kafka's own files the client is empty, and nothing is known."""
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

    def _host(self, end: Endpoint | None) -> str | None:
        if end is None:
            return None
        name = self._lookup.host_name(end.address)
        return name or end.address


NO_LOOKUP = ConnectionLookup()
