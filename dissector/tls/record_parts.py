"""What an encrypted record is made of: where header, nonce, ciphertext, tag and padding are.

No cipher moves bytes: the first byte of the ciphertext is the first one of the plaintext, encrypted. So the sizes
follow from the suite and from the sizes of record and plaintext, without a key.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from dissector.tls.suites import CipherKind, CipherSuite

CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, APPLICATION_DATA = 20, 21, 22, 23
"""Content types (RFC 8446, 5.1)."""
HEADER: Final = 5
LONGEST_FRAGMENT: Final = (1 << 14) + 2048
"""Bytes of a record behind its header: 2^14 and what protection may add (RFC 5246, 6.2.3)."""
LONGEST_RECORD: Final = HEADER + LONGEST_FRAGMENT
TAG: Final = 16
SHORT_TAG: Final = 8
BLOCK: Final = 16
EXPLICIT_NONCE: Final = 8
TLS_1_1: Final = 0x0302
TLS_1_3: Final = 0x0304
CIPHERTEXT: Final = "ciphertext"


class BadRecordError(Exception):
    """A record that a key does not open: a wrong tag, impossible padding, too short."""


class RecordPart(NamedTuple):
    """A part of a record, from its first byte."""

    name: str
    start: int
    end: int


class Agreement(NamedTuple):
    """What the sizes of a record's parts follow from."""

    version: int
    suite: CipherSuite
    encrypt_then_mac: bool


class TlsRecord(NamedTuple):
    """A record of application data as it was sent. Nothing of it is secret: no key, no plaintext."""

    data: bytes
    """Header included."""
    parts: tuple[RecordPart, ...]
    """What tiles it."""
    start: int
    """Where its plaintext begins, from the first byte that was asked for: negative if before that."""
    size: int
    """Bytes of its plaintext."""
    packets: tuple[int, ...]
    """The packets that carried it, from 0. In place of one that came too early it has the one that this waited for."""


def record_parts(agreements: Iterable[Agreement], plain: int, size: int) -> list[RecordPart]:
    """Return the parts that tile a record of `size` bytes with `plain` bytes of plaintext.

    `agreements` are those of its connection, the last one that fits counts: a renegotiation may agree on another suite.
    Where none fits, all behind the header is ciphertext."""
    whole = [("header", HEADER), (CIPHERTEXT, size - HEADER)]
    for agreement in agreements:
        parts = _sizes(agreement, plain, size)
        if all(width >= 0 for _, width in parts) and sum(width for _, width in parts) == size:
            whole = parts
    found, at = [], 0
    for name, width in whole:
        if width:
            found.append(RecordPart(name, at, at + width))
        at += width
    return found


def tag_size(kind: CipherKind) -> int:
    """Bytes of an AEAD's tag."""
    return SHORT_TAG if kind is CipherKind.CCM_8 else TAG


def _sizes(agreement: Agreement, plain: int, size: int) -> list[tuple[str, int]]:
    """Names and sizes of parts in order; a negative size, or another sum than the record's, is another suite's."""
    version, suite, encrypt_then_mac = agreement
    begin, text = ("header", HEADER), (CIPHERTEXT, plain)
    if suite.kind is CipherKind.CBC:  # RFC 5246, 6.2.3.2; RFC 7366
        assert suite.mac_hash is not None
        import hashlib  # loads OpenSSL, which few captures need

        mac = ("MAC", hashlib.new(suite.mac_hash).digest_size)
        vector = ("initialization vector", BLOCK if version >= TLS_1_1 else 0)
        padding = ("padding", size - HEADER - vector[1] - plain - mac[1])
        return [begin, vector, text, *((padding, mac) if encrypt_then_mac else (mac, padding))]
    tag = ("authentication tag", tag_size(suite.kind))
    if version == TLS_1_3:  # RFC 8446, 5.2
        return [begin, text, ("content type", 1), ("padding", size - HEADER - plain - 1 - tag[1]), tag]
    return [begin, ("explicit nonce", 0 if suite.kind is CipherKind.CHACHA20 else EXPLICIT_NONCE), text, tag]
