"""Keys from secrets: the PRF of TLS 1.0 to 1.2, and HKDF-Expand-Label of TLS 1.3.

hmac is imported where it is used: it loads OpenSSL, and few captures have TLS."""

import struct
from typing import Final

TLS_1_2: Final = 0x0303


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
