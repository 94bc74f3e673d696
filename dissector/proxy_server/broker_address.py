"""Addresses as users write them and as brokers send them: a host and a port."""

from collections.abc import Iterable
from typing import Final, NamedTuple, Self

from dissector.core.addresses import LAST_PORT, AddressError, host_and_port, split_scheme
from dissector.core.text import endpoint_name

__all__ = ["AddressError", "BrokerAddress", "broker_addresses", "listen_address"]

KAFKA_PORT: Final = 9092
LOOPBACK: Final = "127.0.0.1"


class BrokerAddress(NamedTuple):
    """Where a broker listens: a name or an IP address, without brackets, and a port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, port: int | None = KAFKA_PORT) -> Self:
        """``broker:9092``, ``[::1]:9092``; ``broker`` and ``[::1]`` with `port`, unless it is None; and what stands in
        the settings of brokers: ``PLAINTEXT://broker:9092``. Raises `AddressError`."""
        return cls(*host_and_port(split_scheme(text)[1], port))

    def __str__(self) -> str:
        return endpoint_name(self.host, self.port)


def listen_address(text: str) -> tuple[str, int | None]:
    """Parse ``[HOST:]PORT``: where to listen. Port 0 is any that the system chooses; nothing is loopback and None, the
    first that is free. Raises `AddressError`."""
    if not text:
        return LOOPBACK, None
    if text.isascii() and text.isdigit() and text != "0" and not int(text[:6]) <= LAST_PORT:
        raise AddressError(f"{text} is not a port from 1 to {LAST_PORT}")
    if text.isascii() and text.isdigit():
        text = f"{LOOPBACK}:{text}"
    if text.endswith(":0"):
        return BrokerAddress.parse(f"{text}9", port=None).host, 0
    found = BrokerAddress.parse(text, port=None)
    return found.host, found.port


def broker_addresses(texts: Iterable[str]) -> tuple[BrokerAddress, ...]:
    """Parse addresses, each of which may be several between commas. Raises `AddressError`."""
    parts = [part.strip() for text in texts for part in text.split(",") if part.strip()]
    found = tuple(dict.fromkeys(map(BrokerAddress.parse, parts)))
    if not found:
        raise AddressError("the address of a broker is missing: broker.example:9092")
    return found
