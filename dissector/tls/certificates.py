"""The certificate of one end: whose it is, who signed it, how long it is valid. RFC 8446, 4.4.2; RFC 5246, 7.4.2. In
TLS 1.3 it may be compressed (RFC 8879), as OpenSSL does from 3.2 on with those of clients.

Any bytes are survived: what is no certificate is None. `cryptography` is imported when a certificate is read, not when
it is found.
"""

from datetime import datetime
from functools import lru_cache
from typing import Final, NamedTuple

MOST_CERTIFICATES: Final = 4096
"""Certificates that are kept once for all connections that have them."""
MOST_COMPRESSED: Final = 64
"""Compressed ones that are kept: each may take as much as `LARGEST_MESSAGE`, from a few bytes."""
LARGEST_MESSAGE: Final = 1 << 17
"""Bytes of a decompressed Certificate message, at most."""
_ALGORITHMS: Final = {1: "zlib", 2: "brotli", 3: "zstd"}


class Certificate(NamedTuple):
    """What people ask of a certificate. Names are as in RFC 4514, ``CN=alice,O=Example``: they may hold anything."""

    subject: str
    issuer: str
    valid_from: datetime
    """UTC, as `valid_until`."""
    valid_until: datetime
    host_names: tuple[str, ...]
    """Of the extension subjectAltName; addresses too."""


@lru_cache(maxsize=MOST_CERTIFICATES)
def first_certificate(body: bytes, *, has_context: bool) -> bytes | None:
    """Return the first certificate of a Certificate message, in DER; None if it has none. `has_context` as in TLS 1.3.
    Equal messages give the same object."""
    return _first(body, has_context=has_context)


@lru_cache(maxsize=MOST_COMPRESSED)
def first_compressed_certificate(body: bytes) -> bytes | None:
    """Return the first certificate of a CompressedCertificate message, in DER; None if it has none."""
    message = _decompressed(body)
    return None if message is None else _first(message, has_context=True)


def _first(body: bytes, *, has_context: bool) -> bytes | None:
    at = 1 + body[0] if has_context and body else 0
    at += 3  # size of the list
    size = int.from_bytes(body[at : at + 3], "big")
    found = body[at + 3 : at + 3 + size]
    return found if size and len(found) == size else None


def _decompressed(body: bytes) -> bytes | None:
    import cramjam  # few certificates are compressed

    name, size = _ALGORITHMS.get(int.from_bytes(body[:2], "big")), int.from_bytes(body[2:5], "big")
    if name is None or size > LARGEST_MESSAGE:
        return None
    found = bytearray(size)
    try:
        written = getattr(cramjam, name).decompress_into(body[8:], found)
    except cramjam.DecompressionError:
        return None
    return bytes(found) if written == size else None


@lru_cache(maxsize=MOST_CERTIFICATES)
def parse_certificate(data: bytes) -> Certificate | None:
    """Return what a certificate in DER says; None if it is none."""
    from cryptography import x509

    try:
        found = x509.load_der_x509_certificate(data)
        subject, issuer = found.subject.rfc4514_string(), found.issuer.rfc4514_string()
        valid = found.not_valid_before_utc, found.not_valid_after_utc
    except ValueError:
        return None
    try:
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        hosts = (*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress)))
    except (ValueError, x509.ExtensionNotFound):
        hosts = ()
    return Certificate(subject, issuer, *valid, hosts)
