"""Handshake messages: cut from the joined contents of records, and what a hello says. RFC 8446, 4; RFC 5246, 7.4.

Any bytes are survived: what is no hello is None.
"""

import struct
from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple

MOST_BYTES: Final = 1 << 20
"""Bytes of handshake messages that are held of one direction: a chain of certificates has some kilobytes."""
_HEADER: Final = 4
RANDOM: Final = 32
HELLO_RETRY: Final = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
"""The random by which a ServerHello is a HelloRetryRequest (RFC 8446, 4.1.3)."""
SERVER_NAME, SIGNATURE_ALGORITHMS, ALPN, ENCRYPT_THEN_MAC = 0, 13, 16, 22
PRE_SHARED_KEY, VERSIONS = 41, 43
VERSION_NAMES: Final = {0x0300: "SSL 3.0", 0x0301: "TLS 1.0", 0x0302: "TLS 1.1", 0x0303: "TLS 1.2", 0x0304: "TLS 1.3"}


class HandshakeType(IntEnum):
    """Types of handshake messages (RFC 8446, 4; RFC 5246, 7.4; RFC 8879, 4)."""

    HELLO_REQUEST = 0
    CLIENT_HELLO = 1
    SERVER_HELLO = 2
    ENCRYPTED_EXTENSIONS = 8
    CERTIFICATE = 11
    SERVER_HELLO_DONE = 14
    CLIENT_KEY_EXCHANGE = 16
    KEY_UPDATE = 24
    COMPRESSED_CERTIFICATE = 25


class ClientHello(NamedTuple):
    """What a client offers."""

    version: int
    """As in the message: TLS 1.3 is in an extension."""
    random: bytes
    session_id: bytes
    suites: tuple[int, ...]
    extensions: Mapping[int, bytes]

    @property
    def server_name(self) -> str | None:
        """The host that the client wants (SNI), None if it does not say."""
        data = self.extensions.get(SERVER_NAME, b"")
        return data[5:].decode("ascii", "replace") if len(data) > 5 else None

    @property
    def application_protocols(self) -> list[bytes]:
        """What the client offers to speak (ALPN), the one that it likes most first."""
        return _protocols(self.extensions.get(ALPN, b""))


class ServerHello(NamedTuple):
    """What a server chose."""

    version: int
    """TLS 1.3 included."""
    random: bytes
    session_id: bytes
    suite: int
    extensions: Mapping[int, bytes]

    @property
    def is_hello_retry(self) -> bool:
        """Whether it asks for another ClientHello."""
        return self.random == HELLO_RETRY

    @property
    def encrypt_then_mac(self) -> bool:
        """Whether the MAC of CBC suites is that of the ciphertext (RFC 7366)."""
        return ENCRYPT_THEN_MAC in self.extensions


def parse_extensions(body: bytes) -> Mapping[int, bytes]:
    """Return the extensions of an EncryptedExtensions message (RFC 8446, 4.3.1), by number; none if it is damaged."""
    try:
        return _extensions(_MessageReader(body))
    except _EndsInsideError:
        return {}


def application_protocol(extensions: Mapping[int, bytes]) -> str | None:
    """Return what a server chose to speak (ALPN); None if it does not say."""
    return next((name.decode("ascii", "replace") for name in _protocols(extensions.get(ALPN, b""))), None)


def _protocols(data: bytes) -> list[bytes]:
    """The names of an extension for ALPN (RFC 7301, 3.1)."""
    reader, found = _MessageReader(data[2:]), []
    try:
        while not reader.is_at_end:
            found.append(reader.vector8())
    except _EndsInsideError:
        pass
    return found


class HandshakeReader:
    """Cuts messages from handshake bytes, however they are divided into records."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Return the messages that these bytes complete: types and bodies. One that is too large ends what is read."""
        buffer, found, at = self._rest + data, [], 0
        while len(buffer) - at >= _HEADER:
            end = at + _HEADER + int.from_bytes(buffer[at + 1 : at + _HEADER], "big")
            if end > len(buffer):
                break
            found.append((buffer[at], buffer[at + _HEADER : end]))
            at = end
        self._rest = buffer[at:] if len(buffer) - at <= MOST_BYTES else b""
        return found


def parse_client_hello(body: bytes) -> ClientHello | None:
    """Return the ClientHello with this body; None if it is none."""
    reader = _MessageReader(body)
    try:
        version, random, session_id = reader.uint16(), reader.take(RANDOM), reader.vector8()
        suites = reader.vector16()
        reader.vector8()  # compression methods
        extensions = _extensions(reader)
    except _EndsInsideError:
        return None
    numbers = struct.unpack(f">{len(suites) // 2}H", suites[: len(suites) // 2 * 2])
    return ClientHello(version, random, session_id, numbers, extensions)


def parse_server_hello(body: bytes) -> ServerHello | None:
    """Return the ServerHello with this body; None if it is none."""
    reader = _MessageReader(body)
    try:
        version, random, session_id, suite = reader.uint16(), reader.take(RANDOM), reader.vector8(), reader.uint16()
        reader.take(1)  # compression method
        extensions = _extensions(reader)
    except _EndsInsideError:
        return None
    chosen = extensions.get(VERSIONS, b"")
    if len(chosen) == 2:
        version = int.from_bytes(chosen, "big")
    return ServerHello(version, random, session_id, suite, extensions)


def version_name(number: int) -> str:
    """Return the name of a version."""
    return VERSION_NAMES.get(number, f"version 0x{number:04x}")


class _EndsInsideError(Exception):
    """The message ends inside a field."""


class _MessageReader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise _EndsInsideError
        self._at, found = end, self._data[self._at : end]
        return found

    def uint16(self) -> int:
        return int.from_bytes(self.take(2), "big")

    def vector8(self) -> bytes:
        return self.take(self.take(1)[0])

    def vector16(self) -> bytes:
        return self.take(self.uint16())

    @property
    def is_at_end(self) -> bool:
        return self._at == len(self._data)


def _extensions(reader: _MessageReader) -> dict[int, bytes]:
    """Extensions by number: none in a hello of an old version."""
    if reader.is_at_end:
        return {}
    inner = _MessageReader(reader.vector16())
    found: dict[int, bytes] = {}
    while not inner.is_at_end:
        number = inner.uint16()
        found[number] = inner.vector16()
    return found
