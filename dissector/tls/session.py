"""What is known of the TLS of a connection: what its ends agreed on, and who they are; JA4, the fingerprint of a
ClientHello (FoxIO's specification): clients of one library and version have the same."""

from enum import StrEnum
from typing import NamedTuple

from dissector.tls.certificates import Certificate, parse_certificate
from dissector.tls.handshake import ALPN, SERVER_NAME, SIGNATURE_ALGORITHMS, VERSIONS, ClientHello, version_name
from dissector.tls.suites import suite_name

_VERSIONS = {0x0304: "13", 0x0303: "12", 0x0302: "11", 0x0301: "10", 0x0300: "s3"}


def ja4(hello: ClientHello) -> str:
    """Return the JA4 of a client that speaks TLS over TCP, such as ``t13d1516h2_8daaf6152771_e5627efa2ab1``."""
    suites = [number for number in hello.suites if not _is_grease(number)]
    extensions = [number for number in hello.extensions if not _is_grease(number)]
    offered = [number for number in _numbers(hello.extensions.get(VERSIONS, b"")[1:]) if not _is_grease(number)]
    version = _VERSIONS.get(max(offered, default=hello.version), "00")
    sent_to = "d" if SERVER_NAME in hello.extensions else "i"
    counts = f"{min(len(suites), 99):02}{min(len(extensions), 99):02}"
    algorithms = _numbers(hello.extensions.get(SIGNATURE_ALGORITHMS, b"")[2:])
    hashed = sorted(number for number in extensions if number not in (SERVER_NAME, ALPN))
    of_extensions = _hex(hashed) + (f"_{_hex(algorithms)}" if algorithms else "")
    return f"t{version}{sent_to}{counts}{_alpn(hello)}_{_hash(_hex(sorted(suites)))}_{_hash(of_extensions)}"


def _is_grease(number: int) -> bool:
    """Whether a value is a reserved one, which a client adds at random (RFC 8701)."""
    return number & 0x0F0F == 0x0A0A and number >> 8 == number & 0xFF


def _numbers(data: bytes) -> list[int]:
    return [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data) - 1, 2)]


def _hex(numbers: list[int]) -> str:
    return ",".join(f"{number:04x}" for number in numbers)


def _hash(text: str) -> str:
    from hashlib import sha256  # loads OpenSSL, which few captures need

    return sha256(text.encode()).hexdigest()[:12] if text else "0" * 12


def _alpn(hello: ClientHello) -> str:
    """The first and the last character of the first protocol; hex digits where they are no letters or digits."""
    protocols = hello.application_protocols
    if not protocols or not protocols[0]:
        return "00"
    first, last = protocols[0][:1], protocols[0][-1:]
    if first.isalnum() and last.isalnum():
        return (first + last).decode()
    return protocols[0].hex()[0] + protocols[0].hex()[-1]


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
