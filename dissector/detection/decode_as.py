"""What the user says that connections are: Kafka, and which end is the broker; TLS; neither.

A choice is written ``SELECTOR,PROTOCOL``, as tshark's ``-d tcp.port==8888,http``. A selector is

  * ``tcp.port==19092`` or ``tcp.port==19092-19099``: connections with such a port at either end. The broker is the end
    that accepted the connection, else the one on the port;
  * ``10.0.0.5:19092``: connections with that end, the broker;
  * ``10.0.0.7:51000-10.0.0.5:19092``: the connection between the two, the broker last.

Of two choices that name the same connection the later one counts. TLS is recognized by content even so: where it is
decrypted, the choice is about what was in it.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from ipaddress import ip_address
from typing import Final, NamedTuple

from dissector.core.text import endpoint_name

MOST_PORT: Final = 0xFFFF
End = tuple[str, int]
"""Address and port."""
Ends = tuple[End, End]
"""Of side 0 and of side 1."""
_PORTS: Final = re.compile(r"tcp\.port\s*==\s*(\d{1,5})(?:\s*-\s*(\d{1,5}))?", re.ASCII)
_END: Final = re.compile(r"(?:\[([\da-fA-F:.]+)\]|([\d.]+)):(\d{1,5})", re.ASCII)


class DecodeAsError(ValueError):
    """A choice that can't be read, in one line."""


class Protocol(StrEnum):
    """What a connection can be said to be."""

    KAFKA = "kafka"
    TLS = "tls"
    NONE = "none"
    """Not Kafka."""


class PortSelector(NamedTuple):
    """Connections with a port from `low` to `high` at either end."""

    low: int
    high: int

    def selects(self, ends: Ends) -> bool:
        """Whether a connection is meant."""
        return any(self.low <= port <= self.high for _, port in ends)

    def server_side(self, ends: Ends, opener: int) -> int | None:
        """The broker's side, of which `opener` opened the connection, -1 where that was not captured; None where both
        may be."""
        if opener >= 0:
            return 1 - opener
        on_port = [side for side, (_, port) in enumerate(ends) if self.low <= port <= self.high]
        return on_port[0] if len(on_port) == 1 else None

    def with_addresses(self, _replace: Callable[[str], str]) -> "PortSelector":
        """Return the selector of the same connections once addresses are replaced."""
        return self

    def __str__(self) -> str:
        return f"tcp.port=={self.low}" + (f"-{self.high}" if self.high > self.low else "")


class EndSelector(NamedTuple):
    """Connections with a broker's end, from any client or from one."""

    server: End
    client: End | None = None

    def selects(self, ends: Ends) -> bool:
        """Whether a connection is meant."""
        return self.server in ends if self.client is None else set(ends) == {self.client, self.server}

    def server_side(self, ends: Ends, opener: int) -> int | None:
        """The broker's side; `opener` as of `PortSelector`."""
        return ends.index(self.server) if ends[0] != ends[1] else 1 - opener if opener >= 0 else None

    def with_addresses(self, replace: Callable[[str], str]) -> "EndSelector":
        """Return the selector of the same connections once addresses are replaced."""
        server, client = (None if end is None else (replace(end[0]), end[1]) for end in (self.server, self.client))
        assert server is not None
        return EndSelector(server, client)

    def __str__(self) -> str:
        return "-".join(endpoint_name(*each) for each in (self.client, self.server) if each is not None)


class DecodeAs(NamedTuple):
    """A choice: what some connections are."""

    selector: PortSelector | EndSelector
    protocol: Protocol

    def with_addresses(self, replace: Callable[[str], str]) -> "DecodeAs":
        """Return the choice for the same connections once addresses are replaced."""
        return DecodeAs(self.selector.with_addresses(replace), self.protocol)

    def __str__(self) -> str:
        return f"{self.selector},{self.protocol}"


def parse_decode_as(text: str) -> DecodeAs:
    """Read a choice. Raises `DecodeAsError`."""
    selector, comma, name = (part.strip() for part in text.rpartition(","))
    if not comma:
        raise DecodeAsError("write SELECTOR,PROTOCOL: tcp.port==19092,kafka")
    try:
        protocol = Protocol(name.lower())
    except ValueError:
        raise DecodeAsError(f"unknown protocol {name!r}; known are {', '.join(Protocol)}") from None
    return DecodeAs(_selector(selector), protocol)


def of_ports(ports: Iterable[int]) -> list[DecodeAs]:
    """Return the choices that ports are Kafka's."""
    return [DecodeAs(PortSelector(port, port), Protocol.KAFKA) for port in sorted(ports)]


def choice_for(choices: Sequence[DecodeAs], ends: Ends) -> DecodeAs | None:
    """Return the choice that counts for a connection."""
    return next((each for each in reversed(choices) if each.selector.selects(ends)), None)


def _selector(text: str) -> PortSelector | EndSelector:
    if ports := _PORTS.fullmatch(text):
        low, high = _port(ports[1]), _port(ports[2] or ports[1])
        if low > high:
            raise DecodeAsError(f"no port is between {low} and {high}")
        return PortSelector(low, high)
    first = _END.match(text)
    if first is not None and first.end() == len(text):
        return EndSelector(_end(first))
    second = _END.fullmatch(text, first.end() + 1) if first is not None and text[first.end()] == "-" else None
    if first is None or second is None:
        raise DecodeAsError(
            f"{text!r} selects no connections; write tcp.port==19092, 10.0.0.5:19092 or 10.0.0.7:51000-10.0.0.5:19092"
        )
    return EndSelector(_end(second), client=_end(first))


def _end(found: re.Match[str]) -> End:
    address = found[1] or found[2]
    try:
        known = ip_address(address)
    except ValueError:
        raise DecodeAsError(f"{address!r} is not an address") from None
    return str(getattr(known, "ipv4_mapped", None) or known), _port(found[3])


def _port(digits: str) -> int:
    if int(digits) > MOST_PORT:
        raise DecodeAsError(f"port {digits} is above {MOST_PORT}")
    return int(digits)
