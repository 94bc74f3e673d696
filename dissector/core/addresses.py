"""Addresses of brokers and of listeners, as users write them and as brokers send them: a host and a port, perhaps with
the name of a listener's protocol in front."""

from collections.abc import Iterable
from typing import Final, NamedTuple, Self

from dissector.core.text import endpoint_name

KAFKA_PORT: Final = 9092
LOOPBACK: Final = "127.0.0.1"
LAST_PORT: Final = 65_535
_KAFKA: Final = ("kafka", "plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
"""Of listeners of brokers, as in their settings. Whether there is TLS or a login is said otherwise."""


class AddressError(ValueError):
    """A text that is no address; its message is one plain line."""


def split_scheme(text: str) -> tuple[str, str]:
    """Return the protocol of ``PLAINTEXT://broker:9092``, in lower case, and the rest; no protocol is empty. Raises
    `AddressError` for one that is none of Kafka's."""
    scheme, found, rest = text.partition("://")
    if not found:
        return "", text
    if scheme.lower() not in _KAFKA:
        raise AddressError(f"{text}: a broker is HOST:PORT, without {scheme}://")
    return scheme.lower(), rest


def host_and_port(text: str, port: int | None) -> tuple[str, int]:
    """Parse ``broker:9092``, ``[::1]:9092``; ``broker`` and ``[::1]`` with `port`, unless it is None. Raises
    `AddressError`."""
    shape = "HOST:PORT" if port is None else "HOST or HOST:PORT"
    host, colon, digits = text.rpartition(":")
    if not colon or text.endswith("]"):
        if port is None and text and not text.isdecimal():
            starts_as_port = text[0].isdigit() and "." not in text
            raise AddressError(f"{text!r} is not a port" if starts_as_port else f"{text}: the port is missing")
        if port is not None and text.isdecimal():
            raise AddressError(f"{text}: a port alone is no address; write HOST:{text}")
        host, digits = text, "" if port is None else str(port)
    if "," in text:
        raise AddressError(f"{text}: one address is expected, not several")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise AddressError(f"{text}: write an IPv6 address in brackets, [::1]:9092")
    if not host or not digits:
        raise AddressError(f"{text or repr(text)}: not {shape}")
    if not (digits.isascii() and digits.isdigit() and 0 < int(digits[:6]) <= LAST_PORT):
        raise AddressError(f"{text}: {digits!r} is not a port from 1 to {LAST_PORT}")
    return host, int(digits)


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
        raise AddressError("the broker's address is missing; example: broker.example:9092")
    return found
