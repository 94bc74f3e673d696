"""TLS towards clients: the certificate of the listeners, and a client's handshake.

A connection becomes one of the relay's when its handshake is over: what failed before has no broker and no recording,
and is said in one line. A client that sends at once may send before the relay takes its bytes; they are kept for it.
"""

import asyncio
import re
import ssl
from collections.abc import Callable
from typing import Final

from dissector.core.addresses import LOOPBACK
from dissector.core.text import clean
from dissector.proxy_server.local_ca import load_made_certificate, local_ca
from dissector.proxy_server.settings import ANY_ADDRESSES, ProxySettings
from dissector.proxy_server.upstream import TlsError, load_certificate

HANDSHAKE_SECONDS: Final = 30
_REFUSED: Final = re.compile("ALERT_(BAD_CERTIFICATE|CERTIFICATE_|UNKNOWN_CA|UNSUPPORTED_CERTIFICATE)|CERTIFICATE_UNK")
"""Alerts of clients that do not take a certificate: which one differs from library to library."""
_PLAIN: Final = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "BAD_RECORD_TYPE", "LENGTH_TOO_LONG")
"""What OpenSSL's releases say of bytes that are not TLS."""


class ListeningTls:
    """How to speak TLS to clients."""

    def __init__(self, settings: ProxySettings) -> None:
        """Raises `TlsError` if a file can't be used."""
        listen = settings.listen_tls
        assert listen is not None
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.trust = ""
        """The file that clients are to trust; empty for a certificate of the user's."""
        self._names = ""
        if listen.certificate:
            load_certificate(self.context, listen.certificate, listen.key, ("--listen-cert", "--listen-key"))
            self._way_out = f"the CA of {clean(listen.certificate)}"
            return
        ca = local_ca()
        names = certificate_names(settings)
        load_made_certificate(self.context, ca, names)
        self.trust = str(ca.pem)
        self._way_out = f"{self.trust} (kdissect proxy ca)"
        self._names = f", and connect to {', '.join(names[:-1])} or {names[-1]}"

    def failure(self, host: str, error: Exception) -> str:
        """Return one line about a handshake with a client that failed; empty for one that only went away."""
        if isinstance(error, TimeoutError) or "taking longer" in str(error):
            return f"a client on {host} began no TLS within {HANDSHAKE_SECONDS} s"
        if not isinstance(error, ssl.SSLError) or isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return ""
        reason = error.reason or ""
        if reason.endswith(_PLAIN):
            return (
                f"a client on {host} speaks no TLS, and the proxy listens with --listen-tls: "
                f"set security.protocol=SSL or SASL_SSL there"
            )
        words = reason.replace("_", " ").lower()
        if _REFUSED.search(reason):
            why = words.rpartition("alert ")[2]
            return (
                f"a client on {host} does not take the proxy's certificate ({why}): "
                f"it has to trust {self._way_out}{self._names}"
            )
        return f"a client on {host}: no TLS: {words or clean(str(error))}"


def certificate_names(settings: ProxySettings) -> list[str]:
    """Return the names that a made certificate has: by which clients on this machine and elsewhere connect."""
    names = (settings.advertise, settings.host, "localhost", LOOPBACK, "::1")
    return [*dict.fromkeys(name for name in names if name and name not in ANY_ADDRESSES)]


class Handshake(asyncio.Protocol):
    """A client's connection until its handshake is over."""

    def __init__(
        self,
        tls: ListeningTls,
        accepted: Callable[[asyncio.Transport, bytes], object],
        say: Callable[[str], object],
        running: set[asyncio.Task[None]],
    ) -> None:
        """`accepted` gets the connection, and what came meanwhile; `say` one line if there is none. The task is in
        `running` while it runs."""
        self._tls = tls
        self._accepted = accepted
        self._say = say
        self._running = running
        self._early = _EarlyBytes()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
        task = asyncio.get_running_loop().create_task(self._shake_hands(transport))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _shake_hands(self, plain: asyncio.Transport) -> None:
        host = str(plain.get_extra_info("peername")[0]).partition("%")[0]
        try:
            transport = await asyncio.get_running_loop().start_tls(
                plain, self._early, self._tls.context, server_side=True, ssl_handshake_timeout=HANDSHAKE_SECONDS
            )
        except (OSError, asyncio.CancelledError) as error:
            plain.abort()
            if isinstance(error, asyncio.CancelledError):
                raise
            if words := self._tls.failure(host, error):
                self._say(words)
            return
        if transport is None or self._early.is_over:
            plain.abort()
            return
        self._accepted(transport, bytes(self._early.data))


class _EarlyBytes(asyncio.Protocol):
    """What comes between the end of the handshake and the relay: as much as asyncio reads at once."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.is_over = False

    def data_received(self, data: bytes) -> None:
        self.data += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_over = True


__all__ = ["Handshake", "ListeningTls", "TlsError", "certificate_names"]
