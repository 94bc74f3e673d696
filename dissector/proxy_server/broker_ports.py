"""Which port stands for which broker: one for each bootstrap address and each node, opened when it is first seen.

A client trusts node ids, so each keeps its port for the whole run, whatever address the broker has by then. A bootstrap
address that a broker also advertises is the same listener, by name or by the IP address that was connected to.

Ports are advertised before anybody listens on them: a socket is bound at once, and its backlog holds who comes early.
"""

import errno
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from dissector.core.addresses import BrokerAddress
from dissector.core.text import clean, endpoint_name, os_reason
from dissector.protocol.schema.field_enums import EndpointType
from dissector.proxy_server.address_walk import FoundAddress
from dissector.proxy_server.settings import FIRST_PORT, ProxySettings

MOST_LISTENERS: Final = 4_096
MOST_LINES: Final = 1_000
BACKLOG: Final = 1_024
_TRIES: Final = 1_000
"""Ports that are tried above a taken one."""
NodeKey = tuple[str, int]
"""What an address is for: empty for clients, else ``controller`` or the name of a listener; and the node's id."""


@dataclass(slots=True)
class Listener:
    """A port that stands for a broker."""

    port: int
    broker: BrokerAddress
    """Where its connections go from now on."""
    socket: socket.socket
    node: int | None = None
    """The node's id, once it is known."""
    names: set[BrokerAddress] = field(default_factory=set)
    """Addresses that are known to be this broker's: as it was named, and the IP addresses that were connected to."""


class BrokerPorts:
    """All listeners of a run."""

    def __init__(
        self, settings: ProxySettings, on_listener: Callable[[Listener], object], say: Callable[[str], object]
    ) -> None:
        """`on_listener` gets each new listener, to accept connections from it; `say` gets lines for the user, each
        once."""
        self._settings = settings
        self._on_listener = on_listener
        self._say = say
        self._next = FIRST_PORT if settings.port is None else settings.port
        """The next port to try; 0 if the system chooses."""
        self._said: set[str] = set()
        self._by_key: dict[NodeKey, Listener] = {}
        self.listeners: list[Listener] = []

    def open_bootstrap(self) -> None:
        """Listen for the bootstrap addresses. Raises `OSError` if a chosen port is taken."""
        for number, broker in enumerate(self._settings.brokers):
            if not any(broker in each.names for each in self.listeners):
                self._open(broker, exactly=number == 0 and bool(self._settings.port))

    def of(self, found: FoundAddress) -> tuple[str, int] | None:
        """Return the host and port that clients get in place of those of a broker."""
        assert found.host is not None
        key, broker = _key(found), BrokerAddress(found.host, found.port)
        listener = self._by_key.get(key)
        if listener is None:
            listener = self._known(broker, found.node) or self._new(broker)
            if listener is None:
                return None
            self._by_key[key] = listener
            listener.node = found.node
        if listener.broker != broker and broker not in listener.names:
            self.complain(f"node {found.node} is now {_shown(broker)}")
            listener.broker = broker
            listener.names = {broker}
        return self._settings.advertised_host, listener.port

    def address(self, listener: Listener) -> str:
        """Return the address for clients, as ``127.0.0.1:19092``."""
        return endpoint_name(self._settings.advertised_host, listener.port)

    def complain(self, words: str) -> None:
        """Say something to the user, once."""
        if words not in self._said and len(self._said) < MOST_LINES:
            self._said.add(words)
            self._say(words)

    def _known(self, broker: BrokerAddress, node: int) -> Listener | None:
        """Return the listener of a broker by its address, unless it is another node's: addresses move."""
        return next((each for each in self.listeners if broker in each.names and each.node in (None, node)), None)

    def _new(self, broker: BrokerAddress) -> Listener | None:
        if len(self.listeners) >= MOST_LISTENERS:
            self.complain(f"more than {MOST_LISTENERS:,} brokers: the addresses of further brokers are not replaced")
            return None
        try:
            return self._open(broker, exactly=False)
        except OSError as error:
            self.complain(f"no port for {_shown(broker)}: {os_reason(error)}; its address is not replaced")
            return None

    def _open(self, broker: BrokerAddress, *, exactly: bool) -> Listener:
        """Listen on the next port that is free. Raises `OSError`."""
        first = self._next
        if first == 0:
            return self._add(broker, _bound(self._settings.host, 0))
        for port in range(first, min(first + (1 if exactly else _TRIES), 1 << 16)):
            try:
                bound = _bound(self._settings.host, port)
            except OSError as error:
                if error.errno == errno.EADDRINUSE and not exactly:
                    continue
                raise
            self._next = port + 1
            return self._add(broker, bound)
        raise OSError(errno.EADDRINUSE, f"no port from {first} on is free")

    def _add(self, broker: BrokerAddress, bound: socket.socket) -> Listener:
        listener = Listener(bound.getsockname()[1], broker, bound, names={broker})
        self.listeners.append(listener)
        self._on_listener(listener)
        return listener


def _key(found: FoundAddress) -> NodeKey:
    if found.kind in ("", EndpointType.BROKER):
        return "", found.node
    return "controller" if found.kind == EndpointType.CONTROLLER else str(found.kind), found.node


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(BACKLOG)
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made


def _shown(broker: BrokerAddress) -> str:
    return clean(str(broker))
