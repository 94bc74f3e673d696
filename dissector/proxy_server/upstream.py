"""Connections to brokers, plain or over TLS."""

import asyncio
import os
import ssl
from collections.abc import Callable
from typing import Final, NamedTuple

from dissector.core.addresses import BrokerAddress
from dissector.core.text import clean, os_reason
from dissector.proxy_server.settings import UpstreamTls

CONNECT_SECONDS: Final = 30


class ConnectError(Exception):
    """No connection to a broker; one plain line."""

    def __init__(self, words: str, address: tuple[str, int] | None) -> None:
        super().__init__(words)
        self.address = address
        """The IP address and port that were tried last, if the name is known."""


class TlsError(Exception):
    """A file of certificates or keys that can't be used; one plain line."""


class Connected(NamedTuple):
    """A connection, and the IP address and port of the broker."""

    transport: asyncio.Transport
    address: tuple[str, int]


def tls_context(tls: UpstreamTls) -> ssl.SSLContext:
    """Return how to speak TLS to brokers. Raises `TlsError`."""
    try:
        context = ssl.create_default_context(cafile=tls.ca or None)
    except (OSError, ssl.SSLError) as error:
        raise TlsError(f"--ca {clean(tls.ca)}: {_reason(error)}") from None
    if tls.insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if tls.certificate:
        load_certificate(context, tls.certificate, tls.key, ("--cert", "--key"))
    return context


def load_certificate(context: ssl.SSLContext, certificate: str, key: str, options: tuple[str, str]) -> None:
    """Give a context a certificate and its key, which may be in the same file; `options` named them. Raises
    `TlsError`."""
    try:
        context.load_cert_chain(certificate, key or None, password=_no_password)
    except (OSError, ssl.SSLError, ValueError) as error:
        names = (f"{option} {clean(file)}" for option, file in zip(options, (certificate, key), strict=True) if file)
        is_no_pem = isinstance(error, ssl.SSLError) and not error.reason  # OpenSSL says no more
        why = "no certificate with its key, in PEM" if is_no_pem else _reason(error)
        raise TlsError(f"{' and '.join(names)}: {why}") from None


def _no_password() -> str:
    """A process without a terminal can't ask for one."""
    raise ValueError("the key has a password; remove it: openssl pkey -in KEY -out PLAIN")


async def connect(
    broker: BrokerAddress,
    protocol: Callable[[], asyncio.BaseProtocol],
    tls: UpstreamTls | None = None,
    context: ssl.SSLContext | None = None,
) -> Connected:
    """Connect to a broker, at the first of its addresses that accepts. Raises `ConnectError`."""
    loop = asyncio.get_running_loop()
    address: tuple[str, int] | None = None
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            infos = await loop.getaddrinfo(broker.host, broker.port, type=1)
            error: Exception | None = None
            for _, _, _, _, found in infos:
                address = str(found[0]).partition("%")[0], int(found[1])
                name = ((tls and tls.server_name) or broker.host) if context is not None else None
                try:
                    transport, _ = await loop.create_connection(
                        protocol, str(found[0]), broker.port, ssl=context, server_hostname=name
                    )
                except OSError as refused:
                    error = refused
                    continue
                return Connected(transport, address)
            raise error or OSError("has no address")
    except TimeoutError:
        raise ConnectError(f"{broker}: no connection within {CONNECT_SECONDS} s", address) from None
    except (OSError, UnicodeError) as failed:
        raise ConnectError(clean(f"{broker}: {_reason(failed)}"), address) from None


def _reason(error: Exception) -> str:
    """Return why, in a few words: of TLS what is wrong with a certificate."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).replace("_", " ").lower()
    number = getattr(error, "errno", None) or 0
    return os.strerror(number).lower() if number > 0 else os_reason(error)  # asyncio has words of its own
