"""The secrets of a recording with TLS, in the recording itself, so that it opens without a file beside it."""

import struct
from pathlib import Path
from typing import Final

SECRETS_BLOCK, TLS_KEY_LOG = 10, 0x544C534B
"""Numbers of pcapng: a Decryption Secrets Block, and what it holds."""
_SESSION: Final = b"RSA Session-ID:"


def of_capture(capture: Path, lines: bytes) -> bytes:
    """The lines of a key log that belong to connections of a capture: those whose random or session id is in it."""
    packets = capture.read_bytes()
    return b"".join(line + b"\n" for line in lines.splitlines() if (found := _identity(line)) and found in packets)


def _identity(line: bytes) -> bytes:
    """The random or the session id in a line; nothing in others."""
    words = line.split()
    if not words or line.startswith(b"#"):
        return b""
    digits = words[1].removeprefix(b"Session-ID:") if line.startswith(_SESSION) else words[1]
    return bytes.fromhex(digits.decode())


def inject(capture: Path, lines: bytes) -> None:
    """Add a block with these secrets behind the header of a pcapng file."""
    data = capture.read_bytes()
    assert data[8:12] == b"\x4d\x3c\x2b\x1a", "not a little-endian pcapng file"
    [end] = struct.unpack_from("<I", data, 4)
    body = struct.pack("<II", TLS_KEY_LOG, len(lines)) + lines + bytes(-len(lines) % 4)
    size = struct.pack("<I", len(body) + 12)
    block = struct.pack("<I", SECRETS_BLOCK) + size + body + size
    capture.write_bytes(data[:end] + block + data[end:])
