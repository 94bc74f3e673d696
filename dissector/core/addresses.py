"""Addresses as users write them: a host and a port, perhaps with the name of a listener's protocol in front."""

from typing import Final

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
            raise AddressError(f"{text}: the port is missing")
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
