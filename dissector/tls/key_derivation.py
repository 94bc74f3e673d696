"""Keys from secrets: the PRF of TLS 1.0 to 1.2, HKDF-Expand-Label of TLS 1.3, and master secrets from premaster ones.

A log of NSS names a premaster secret by the beginning of its encrypted form, which an RSA key exchange sends. The
extended master secret depends on a hash of all messages up to the client's key exchange (RFC 7627): they are held until
both sides have sent theirs.

hmac is imported where it is used: it loads OpenSSL, and few captures have TLS."""

import struct
from typing import Final

from dissector.tls.handshake import HandshakeType, ServerHello
from dissector.tls.suites import CipherSuite

TLS_1_2: Final = 0x0303
EXTENDED_MASTER_SECRET: Final = 23
MASTER_SECRET_SIZE: Final = 48
PREFIX: Final = 8
"""Bytes of an encrypted premaster secret by which a key log names it."""
MOST_BYTES: Final = 1 << 17
"""Messages of one side of a handshake that are held."""
_BEGIN: Final = (HandshakeType.CLIENT_HELLO, HandshakeType.SERVER_HELLO)
_END: Final = (HandshakeType.CLIENT_KEY_EXCHANGE, HandshakeType.SERVER_HELLO_DONE)


def expand(hash_name: str, secret: bytes, seed: bytes, size: int) -> bytes:
    """P_hash of RFC 5246, 5."""
    import hmac

    found, chained = b"", seed
    while len(found) < size:
        chained = hmac.digest(secret, chained, hash_name)
        found += hmac.digest(secret, chained + seed, hash_name)
    return found[:size]


def prf(version: int, hash_name: str, secret: bytes, label: bytes, seed: bytes, size: int) -> bytes:
    """The pseudorandom function of TLS 1.2 (RFC 5246, 5), or of 1.0 and 1.1 (RFC 2246, 5), where MD5 and SHA-1 have a
    half of the secret each."""
    if version >= TLS_1_2:
        return expand(hash_name, secret, label + seed, size)
    half = (len(secret) + 1) // 2
    md5 = expand("md5", secret[:half], label + seed, size)
    sha1 = expand("sha1", secret[len(secret) - half :], label + seed, size)
    return bytes(a ^ b for a, b in zip(md5, sha1, strict=True))


def expand_label(hash_name: str, secret: bytes, label: bytes, size: int) -> bytes:
    """HKDF-Expand-Label with an empty context (RFC 8446, 7.1)."""
    import hmac

    info = struct.pack(">HB", size, 6 + len(label)) + b"tls13 " + label + b"\0"
    found = block = b""
    number = 0
    while len(found) < size:
        number += 1
        block = hmac.digest(secret, block + info + bytes([number]), hash_name)
        found += block
    return found[:size]


class _Flight:
    """The messages of a side in one handshake, up to the one that ends them."""

    def __init__(self) -> None:
        self.messages = b""
        self.is_ended = False


class KeyExchanges:
    """The handshakes of one connection, counted from 0."""

    def __init__(self) -> None:
        self._flights: tuple[list[_Flight], list[_Flight]] = [], []
        self._digests: dict[int, bytes] = {}
        self.encrypted: dict[int, bytes] = {}
        """The first bytes of each encrypted premaster secret."""

    def add(self, side: int, kind: int, body: bytes) -> None:
        """Take note of a handshake message of the client, side 0, or of the server."""
        flights = self._flights[side]
        if kind == _BEGIN[side]:
            flights.append(_Flight())
        if not flights or flights[-1].is_ended or kind == HandshakeType.HELLO_REQUEST:  # which no hash has
            return
        flight = flights[-1]
        if len(flight.messages) + len(body) <= MOST_BYTES:
            flight.messages += bytes([kind]) + len(body).to_bytes(3, "big") + body
        flight.is_ended = kind == _END[side]
        if kind == HandshakeType.CLIENT_KEY_EXCHANGE:
            self.encrypted[len(flights) - 1] = body[2 : 2 + PREFIX]

    def complete(self, number: int, version: int, suite: CipherSuite | None) -> None:
        """Hash the messages of a handshake, if both sides have sent theirs, and drop them."""
        flights = [flights[number] for flights in self._flights if number < len(flights)]
        if len(flights) == 2 and all(each.is_ended and each.messages for each in flights):
            client, server = (each.messages for each in flights)
            hello = 4 + int.from_bytes(client[1:4], "big")  # the server's messages are behind the client's hello
            if suite is not None:
                self._digests[number] = _digest(client[:hello] + server + client[hello:], version, suite)
            for each in flights:
                each.messages = b""

    def master_secret(
        self, number: int, premaster: bytes, suite: CipherSuite, client_random: bytes, hello: ServerHello
    ) -> bytes | None:
        """Return the master secret of a handshake (RFC 5246, 8.1; RFC 7627, 4); None if messages are missing."""
        label, seed = b"master secret", client_random + hello.random
        if EXTENDED_MASTER_SECRET in hello.extensions:
            label, seed = b"extended master secret", self._digests.get(number, b"")
        if not seed:
            return None
        return prf(hello.version, suite.prf_hash, premaster, label, seed, MASTER_SECRET_SIZE)


def _digest(messages: bytes, version: int, suite: CipherSuite) -> bytes:
    import hashlib  # loads OpenSSL

    if version >= TLS_1_2:
        return hashlib.new(suite.prf_hash, messages).digest()
    md5 = hashlib.md5(messages, usedforsecurity=False)
    return md5.digest() + hashlib.sha1(messages, usedforsecurity=False).digest()
