"""Addresses as users write them and as brokers send them: a host and a port."""

from typing import Final, NamedTuple, Self

from dissector.core.text import endpoint_name

KAFKA_PORT: Final = 9092


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
