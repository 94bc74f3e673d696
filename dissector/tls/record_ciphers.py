"""The protection of records: what opens one, given its header, its fragment and its sequence number.

Importing this module imports `cryptography`: it is imported when a key is there.

Invariant: whatever the bytes, `open` returns what the tag or the MAC confirmed, or raises `BadRecordError`.
"""

import hashlib
import hmac
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM, ChaCha20Poly1305

from dissector.tls.key_derivation import expand_label, prf
from dissector.tls.record_parts import BLOCK, EXPLICIT_NONCE, HEADER, TLS_1_1, BadRecordError, tag_size
from dissector.tls.suites import CipherKind, CipherSuite


class RecordCipher(Protocol):
    """Opens the records of one direction and epoch."""

    overhead: int
    """Least bytes that a record has besides its plaintext, its header included: exact in AEAD without padding."""
    suite: CipherSuite
    chained: bytes | None
    """The last block of the record before, where a record can be opened only after that."""

    def open(self, header: bytes, fragment: bytes | memoryview, sequence: int) -> tuple[int, bytes]:
        """Return the content type of a record and its plaintext. Raises `BadRecordError`."""


class _Aead(Protocol):
    def decrypt(self, nonce: bytes, data: bytes | memoryview, associated_data: bytes | None, /) -> bytes: ...


class Tls13Cipher:
    """TLS 1.3: the content type is behind the plaintext, then zeros as padding (RFC 8446, 5.2 and 5.4)."""

    chained: bytes | None = None

    def __init__(self, suite: CipherSuite, secret: bytes) -> None:
        self.suite = suite
        self._secret = secret
        key = expand_label(suite.prf_hash, secret, b"key", suite.key_size)
        self._iv = int.from_bytes(expand_label(suite.prf_hash, secret, b"iv", 12), "big")
        self._decrypt = _aead(suite.kind, key).decrypt
        self.overhead = HEADER + 1 + tag_size(suite.kind)

    def open(self, header: bytes, fragment: bytes | memoryview, sequence: int) -> tuple[int, bytes]:
        try:
            text = self._decrypt((self._iv ^ sequence).to_bytes(12, "big"), fragment, header)
        except (InvalidTag, ValueError):
            raise BadRecordError from None
        if text and text[-1]:
            return text[-1], text[:-1]
        text = text.rstrip(b"\0")
        if not text:
            raise BadRecordError
        return text[-1], text[:-1]

    def updated(self) -> "Tls13Cipher":
        """Return the cipher after a KeyUpdate (RFC 8446, 7.2)."""
        size = len(self._secret)
        return Tls13Cipher(self.suite, expand_label(self.suite.prf_hash, self._secret, b"traffic upd", size))


class AeadCipher:
    """AEAD suites of TLS 1.2: RFC 5288, RFC 6655, RFC 7905."""

    chained: bytes | None = None

    def __init__(self, suite: CipherSuite, key: bytes, iv: bytes) -> None:
        self.suite = suite
        self._decrypt = _aead(suite.kind, key).decrypt
        self._iv = iv
        self._explicit = EXPLICIT_NONCE if suite.kind is not CipherKind.CHACHA20 else 0
        self._tag = tag_size(suite.kind)
        self.overhead = HEADER + self._explicit + self._tag

    def open(self, header: bytes, fragment: bytes | memoryview, sequence: int) -> tuple[int, bytes]:
        size = len(fragment) - self._explicit - self._tag
        if size < 0:
            raise BadRecordError
        if self._explicit:
            nonce = self._iv + bytes(fragment[: self._explicit])
        else:
            nonce = (int.from_bytes(self._iv, "big") ^ sequence).to_bytes(12, "big")
        associated = sequence.to_bytes(8, "big") + header[:3] + size.to_bytes(2, "big")
        try:
            return header[0], self._decrypt(nonce, fragment[self._explicit :], associated)
        except (InvalidTag, ValueError):
            raise BadRecordError from None


class CbcCipher:
    """AES-CBC with HMAC (RFC 5246, 6.2.3.2; RFC 7366). The iv of a TLS 1.0 record is the last block of the one before:
    records have to be opened in order, and one behind a gap can't be."""

    def __init__(
        self, suite: CipherSuite, version: int, key: bytes, mac_key: bytes, iv: bytes, *, encrypt_then_mac: bool
    ) -> None:
        assert suite.mac_hash is not None
        self.suite = suite
        self._algorithm = algorithms.AES(key)
        self._mac_key = mac_key
        self._mac_hash = suite.mac_hash
        self._mac_size = hashlib.new(suite.mac_hash).digest_size
        self.chained = iv if version < TLS_1_1 else None
        self.overhead = HEADER + (0 if self.chained is not None else BLOCK) + self._mac_size + 1
        self._encrypt_then_mac = encrypt_then_mac

    def open(self, header: bytes, fragment: bytes | memoryview, sequence: int) -> tuple[int, bytes]:
        data = bytes(fragment)
        before = sequence.to_bytes(8, "big") + header[:3]
        if self._encrypt_then_mac:
            data, mac = data[: -self._mac_size], data[-self._mac_size :]
            self._check(before, data, mac)
        iv, blocks = (self.chained, data) if self.chained is not None else (data[:BLOCK], data[BLOCK:])
        if not blocks or len(blocks) % BLOCK or len(iv) != BLOCK:
            raise BadRecordError
        text = Cipher(self._algorithm, modes.CBC(iv)).decryptor().update(blocks)
        padding = text[-1] + 1
        least = padding + (0 if self._encrypt_then_mac else self._mac_size)
        if least > len(text) or text[-padding:] != bytes([padding - 1]) * padding:
            raise BadRecordError
        text = text[:-padding]
        if not self._encrypt_then_mac:
            text, mac = text[: -self._mac_size], text[-self._mac_size :]
            self._check(before, text, mac)
        if self.chained is not None:
            self.chained = blocks[-BLOCK:]
        return header[0], text

    def _check(self, before: bytes, data: bytes, mac: bytes) -> None:
        expected = hmac.digest(self._mac_key, before + len(data).to_bytes(2, "big") + data, self._mac_hash)
        if not hmac.compare_digest(expected, mac):
            raise BadRecordError


def tls12_ciphers(
    suite: CipherSuite, version: int, master_secret: bytes, client_random: bytes, server_random: bytes,
    *, encrypt_then_mac: bool,
) -> tuple[RecordCipher, RecordCipher]:  # fmt: skip
    """Return the ciphers of the client and of the server before TLS 1.3 (RFC 5246, 6.3)."""
    mac_size = hashlib.new(suite.mac_hash).digest_size if suite.mac_hash else 0
    iv_size = {CipherKind.CHACHA20: 12, CipherKind.CBC: BLOCK}.get(suite.kind, 4)
    sizes = (mac_size, mac_size, suite.key_size, suite.key_size, iv_size, iv_size)
    block = prf(version, suite.prf_hash, master_secret, b"key expansion", server_random + client_random, sum(sizes))
    parts, at = [], 0
    for size in sizes:
        parts.append(block[at : at + size])
        at += size

    def cipher(side: int) -> RecordCipher:
        mac_key, key, iv = parts[side], parts[2 + side], parts[4 + side]
        if suite.kind is CipherKind.CBC:
            return CbcCipher(suite, version, key, mac_key, iv, encrypt_then_mac=encrypt_then_mac)
        return AeadCipher(suite, key, iv)

    return cipher(0), cipher(1)


def _aead(kind: CipherKind, key: bytes) -> _Aead:
    match kind:
        case CipherKind.GCM:
            return AESGCM(key)
        case CipherKind.CHACHA20:
            return ChaCha20Poly1305(key)
        case _:
            return AESCCM(key, tag_size(kind))
