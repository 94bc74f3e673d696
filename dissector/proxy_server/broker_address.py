"""Addresses as users write them and as brokers send them: a host and a port."""

from collections.abc import Iterable
from typing import Final, NamedTuple, Self

from dissector.core.text import endpoint_name

KAFKA_PORT: Final = 9092


LOOPBACK: Final = "127.0.0.1"


class AddressError(ValueError):
    """A text that is no address; its message is one plain line."""


class BrokerAddress(NamedTuple):
    """Where a broker listens: a name or an IP address, without brackets, and a port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, port: int | None = KAFKA_PORT) -> Self:
        """``broker:9092``, ``[::1]:9092``; ``broker`` and ``[::1]`` with `port`, unless it is None. Raises
        `AddressError`."""
        host, colon, digits = text.rpartition(":")
        if not colon or text.endswith("]"):
            host, digits = text, "" if port is None else str(port)
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            raise AddressError(f"{text}: write an IPv6 address in brackets, [::1]:9092")
        if not (host and digits.isascii() and digits.isdigit() and 0 < int(digits[:6]) < 1 << 16):
            raise AddressError(f"{text}: is not HOST:PORT" if port is None else f"{text}: is not HOST or HOST:PORT")
        return cls(host, int(digits))

    def __str__(self) -> str:
        return endpoint_name(self.host, self.port)


def listen_address(text: str) -> tuple[str, int | None]:
    """Parse ``[HOST:]PORT``: where to listen. Port 0 is any that the system chooses; nothing is loopback and None, the
    first that is free. Raises `AddressError`."""
    if not text:
        return LOOPBACK, None
    if text.isascii() and text.isdigit():
        text = f"{LOOPBACK}:{text}"
    if text.endswith(":0"):
        return BrokerAddress.parse(f"{text}9", port=None).host, 0
    found = BrokerAddress.parse(text, port=None)
    return found.host, found.port


def broker_addresses(texts: Iterable[str]) -> tuple[BrokerAddress, ...]:
    """Parse addresses, each of which may be several between commas. Raises `AddressError`."""
    parts = [part for text in texts for part in text.split(",") if part]
    found = tuple(dict.fromkeys(map(BrokerAddress.parse, parts)))
    if not found:
        raise AddressError("the address of a broker is missing: broker.example:9092")
    return found
