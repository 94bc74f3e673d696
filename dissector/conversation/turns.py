"""Who said what and when: all that a TCP conversation is made from."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Final, NamedTuple, Self


class End(NamedTuple):
    """An address and a port. The address is one that `ip_address` takes."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """``127.0.0.1:9092`` or ``[::1]:9092``, as rows have it. Anything else is a ValueError."""
        host, _, port = text.rpartition(":")
        bracketed = host.startswith("[") and host.endswith("]")
        address = IPv6Address(host[1:-1]) if bracketed else IPv4Address(host)
        if not port.isascii() or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            raise ValueError(f"{port!r} is not a port")
        return cls(str(address), int(port))


MADE_UP_SERVER: Final = End("192.0.2.1", 9092)
_PORTS: Final = range(40_000, 60_000)


def made_up_client(number: int) -> End:
    """A client of whom nothing is known, one a number. RFC 5737 keeps these addresses for documents; where they run out
    (with the five millionth) they begin again."""
    host, port = divmod(number, len(_PORTS))
    return End(f"192.0.2.{2 + host % 250}", _PORTS[port])


@dataclass(frozen=True, slots=True)
class Turn:
    """Bytes that one end sent in one go."""

    time_ns: int
    from_client: bool
    data: bytes
    missing: int = 0
    """Bytes that were sent right after these and that nobody has: a hole in the stream."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """One connection. Turns at the same time are in the order of the list."""

    client: End
    server: End
    turns: list[Turn]
    closed: bool = True
    """Whether it ends with FIN."""
