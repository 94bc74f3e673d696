"""What a TLS handshake says, as names and values for people. Values may hold anything: clean them."""

from typing import NamedTuple

from dissector.tls.certificates import Certificate
from dissector.tls.session import TlsSession, TlsState

_STATES = {
    TlsState.DECRYPTED: "decrypted",
    TlsState.NO_KEYS: "encrypted: no key log has its secrets (--keylog)",
    TlsState.FAILED: "encrypted: the secrets of the key log open no record",
}


class HandshakeField(NamedTuple):
    """A line about a handshake."""

    name: str
    value: str


def handshake_fields(session: TlsSession) -> list[HandshakeField]:
    """Return what is known of a handshake, the most important first."""
    resumed = None if session.is_resumed is None else "yes" if session.is_resumed else "no"
    found = (
        ("state", _STATES[session.state]),
        ("version", session.version),
        ("cipher suite", session.cipher),
        ("host name (SNI)", session.server_name),
        ("protocol (ALPN)", session.application_protocol),
        ("resumed", resumed),
        ("exchanges", f"about {session.exchanges:,}" if session.exchanges else None),
        ("broker's certificate", _certificate(session.server_certificate)),
        ("client's certificate", _certificate(session.client_certificate)),
        ("client (JA4)", session.ja4),
    )
    return [HandshakeField(name, value) for name, value in found if value]


def _certificate(certificate: Certificate | None) -> str | None:
    if certificate is None:
        return None
    valid = f"valid {certificate.valid_from:%Y-%m-%d} to {certificate.valid_until:%Y-%m-%d}"
    hosts = f", for {', '.join(certificate.host_names)}" if certificate.host_names else ""
    signed = "itself" if certificate.issuer == certificate.subject else certificate.issuer
    return f"{certificate.subject}, signed by {signed}, {valid}{hosts}"
