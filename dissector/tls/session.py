"""What is known of the TLS of a connection: what its ends agreed on, and who they are."""

from enum import StrEnum
from typing import NamedTuple

from dissector.tls.certificates import Certificate, parse_certificate
from dissector.tls.fingerprint import ja4
from dissector.tls.handshake import ClientHello, version_name
from dissector.tls.suites import suite_name


class TlsState(StrEnum):
    """Whether a connection is decrypted."""

    DECRYPTED = "decrypted"
    NO_KEYS = "no-keys"
    """No key log has its secrets."""
    FAILED = "failed"
    """Its secrets open no record, or it has a cipher suite that is not supported."""


class TlsSession(NamedTuple):
    """The newest handshake of a connection, as far as it was captured and is not encrypted, or was decrypted.

    Texts are as on the wire: they may hold anything."""

    state: TlsState
    version_number: int | None = None
    suite_number: int | None = None
    is_resumed: bool | None = None
    """Whether it goes on with the secrets of an earlier one, without certificates."""
    hello: ClientHello | None = None
    application_protocol: str | None = None
    """What the server chose (ALPN)."""
    client_certificate_data: bytes | None = None
    """DER, as `server_certificate_data`."""
    server_certificate_data: bytes | None = None
    exchanges: int | None = None
    """About how many requests were answered, if it stays encrypted."""

    @property
    def version(self) -> str | None:
        """Such as ``TLS 1.3``."""
        return None if self.version_number is None else version_name(self.version_number)

    @property
    def cipher(self) -> str | None:
        """The cipher suite, such as ``TLS_AES_128_GCM_SHA256``."""
        return None if self.suite_number is None else suite_name(self.suite_number)

    @property
    def server_name(self) -> str | None:
        """The host name that the client asked for (SNI)."""
        return None if self.hello is None else self.hello.server_name

    @property
    def ja4(self) -> str | None:
        """The fingerprint of the client."""
        return None if self.hello is None else ja4(self.hello)

    @property
    def client_certificate(self) -> Certificate | None:
        """The client's, of mTLS."""
        return None if self.client_certificate_data is None else parse_certificate(self.client_certificate_data)

    @property
    def server_certificate(self) -> Certificate | None:
        """The broker's."""
        return None if self.server_certificate_data is None else parse_certificate(self.server_certificate_data)

    @property
    def principal(self) -> str | None:
        """The subject of the client's certificate: with mTLS what Kafka makes the principal of."""
        certificate = self.client_certificate
        return None if certificate is None else certificate.subject
