"""Turns: which end sends which bytes when. A TCP conversation is built from them."""

from ipaddress import IPv4Address, IPv6Address
from typing import Final, NamedTuple, Self


class End(NamedTuple):
    """An address that `ip_address` accepts, and a port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse ``127.0.0.1:9092`` or ``[::1]:9092``, as in rows. Raises `ValueError` for anything else."""
        host, _, port = text.rpartition(":")
        bracketed = host.startswith("[") and host.endswith("]")
        address = IPv6Address(host[1:-1]) if bracketed else IPv4Address(host)
        if not port.isascii() or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            raise ValueError(f"{port!r} is not a port")
        return cls(str(address), int(port))


MADE_UP_SERVER: Final = End("192.0.2.1", 9092)
_PORTS: Final = range(40_000, 60_000)


def made_up_client(number: int) -> End:
    """Return the made-up address of a client, one for each number. RFC 5737 reserves these addresses for documentation;
    after five million they repeat."""
    host, port = divmod(number, len(_PORTS))
    return End(f"192.0.2.{2 + host % 250}", _PORTS[port])


class Turn(NamedTuple):
    """Bytes that one end sent together."""

    time_ns: int
    from_client: bool
    data: bytes
    missing: int = 0
    """Bytes that were sent right after these and are missing: a gap in the stream."""


class Conversation(NamedTuple):
    """One connection. Turns at the same time are in the order of the list."""

    client: End
    server: End
    turns: list[Turn]
    closed: bool = True
    """Whether it ends with FIN."""
