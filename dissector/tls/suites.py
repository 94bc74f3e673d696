"""Cipher suites by number: what protects the records of a connection. IANA's registry, "TLS Cipher Suites"."""

import re
from enum import Enum
from typing import Final, NamedTuple


class CipherKind(Enum):
    """How records are encrypted."""

    GCM = "GCM"
    CCM = "CCM"
    CCM_8 = "CCM_8"
    """CCM with a tag of 8 bytes."""
    CHACHA20 = "CHACHA20"
    CBC = "CBC"
    """AES in CBC mode, with a MAC of its own."""


class CipherSuite(NamedTuple):
    """A suite that can be decrypted."""

    number: int
    name: str
    kind: CipherKind
    key_size: int
    prf_hash: str
    """Of the PRF in TLS 1.2 and of HKDF in 1.3, as `hashlib` calls it."""
    mac_hash: str | None
    """Of the MAC of a CBC suite."""


_TLS13: Final = {
    0x1301: "AES_128_GCM_SHA256", 0x1302: "AES_256_GCM_SHA384", 0x1303: "CHACHA20_POLY1305_SHA256",
    0x1304: "AES_128_CCM_SHA256", 0x1305: "AES_128_CCM_8_SHA256",
}  # fmt: skip
_TLS12: Final = {
    0x002F: "RSA_WITH_AES_128_CBC_SHA", 0x0033: "DHE_RSA_WITH_AES_128_CBC_SHA", 0x0035: "RSA_WITH_AES_256_CBC_SHA",
    0x0039: "DHE_RSA_WITH_AES_256_CBC_SHA", 0x003C: "RSA_WITH_AES_128_CBC_SHA256",
    0x003D: "RSA_WITH_AES_256_CBC_SHA256", 0x0067: "DHE_RSA_WITH_AES_128_CBC_SHA256",
    0x006B: "DHE_RSA_WITH_AES_256_CBC_SHA256", 0x009C: "RSA_WITH_AES_128_GCM_SHA256",
    0x009D: "RSA_WITH_AES_256_GCM_SHA384", 0x009E: "DHE_RSA_WITH_AES_128_GCM_SHA256",
    0x009F: "DHE_RSA_WITH_AES_256_GCM_SHA384", 0xC009: "ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    0xC00A: "ECDHE_ECDSA_WITH_AES_256_CBC_SHA", 0xC013: "ECDHE_RSA_WITH_AES_128_CBC_SHA",
    0xC014: "ECDHE_RSA_WITH_AES_256_CBC_SHA", 0xC023: "ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    0xC024: "ECDHE_ECDSA_WITH_AES_256_CBC_SHA384", 0xC027: "ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    0xC028: "ECDHE_RSA_WITH_AES_256_CBC_SHA384", 0xC02B: "ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    0xC02C: "ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", 0xC02D: "ECDH_ECDSA_WITH_AES_128_GCM_SHA256",
    0xC02E: "ECDH_ECDSA_WITH_AES_256_GCM_SHA384", 0xC02F: "ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    0xC030: "ECDHE_RSA_WITH_AES_256_GCM_SHA384", 0xC031: "ECDH_RSA_WITH_AES_128_GCM_SHA256",
    0xC032: "ECDH_RSA_WITH_AES_256_GCM_SHA384", 0xC09C: "RSA_WITH_AES_128_CCM", 0xC09D: "RSA_WITH_AES_256_CCM",
    0xC09E: "DHE_RSA_WITH_AES_128_CCM", 0xC09F: "DHE_RSA_WITH_AES_256_CCM", 0xC0AC: "ECDHE_ECDSA_WITH_AES_128_CCM",
    0xC0AD: "ECDHE_ECDSA_WITH_AES_256_CCM", 0xCCA8: "ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    0xCCA9: "ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", 0xCCAA: "DHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
}  # fmt: skip
_OTHERS: Final = {
    0x0004: "RSA_WITH_RC4_128_MD5", 0x0005: "RSA_WITH_RC4_128_SHA", 0x000A: "RSA_WITH_3DES_EDE_CBC_SHA",
    0x0016: "DHE_RSA_WITH_3DES_EDE_CBC_SHA", 0x0041: "RSA_WITH_CAMELLIA_128_CBC_SHA",
    0x0084: "RSA_WITH_CAMELLIA_256_CBC_SHA", 0x00FF: "EMPTY_RENEGOTIATION_INFO_SCSV", 0x5600: "FALLBACK_SCSV",
    0x0034: "DH_anon_WITH_AES_128_CBC_SHA", 0x003A: "DH_anon_WITH_AES_256_CBC_SHA",
    0x00A6: "DH_anon_WITH_AES_128_GCM_SHA256", 0x00A7: "DH_anon_WITH_AES_256_GCM_SHA384",
    0xC018: "ECDH_anon_WITH_AES_128_CBC_SHA", 0xC019: "ECDH_anon_WITH_AES_256_CBC_SHA",
    0xC012: "ECDHE_RSA_WITH_3DES_EDE_CBC_SHA", 0xC0A0: "RSA_WITH_AES_128_CCM_8", 0xC0A1: "RSA_WITH_AES_256_CCM_8",
    0xC0AE: "ECDHE_ECDSA_WITH_AES_128_CCM_8", 0xC0AF: "ECDHE_ECDSA_WITH_AES_256_CCM_8",
}  # fmt: skip
"""Suites that are named, and not decrypted."""


def _suite(number: int, words: str) -> CipherSuite:
    kinds = {"CCM_8": CipherKind.CCM_8, "CCM": CipherKind.CCM, "GCM": CipherKind.GCM, "CBC": CipherKind.CBC}
    kind = next((kind for word, kind in kinds.items() if f"_{word}" in words), CipherKind.CHACHA20)
    size = 16 if "AES_128" in words else 32
    last = words.rpartition("_")[2].lower()
    mac = {"sha": "sha1"}.get(last, last) if kind is CipherKind.CBC else None
    return CipherSuite(number, f"TLS_{words}", kind, size, "sha384" if last == "sha384" else "sha256", mac)


SUITES: Final = {number: _suite(number, words) for number, words in (_TLS13 | _TLS12).items()}


def suites_of_secret(secret: bytes) -> list[CipherSuite]:
    """The suites of TLS 1.3 with a hash of a secret's size."""
    of_size = {32: (0x1301, 0x1303, 0x1304, 0x1305), 48: (0x1302,)}
    return [SUITES[number] for number in of_size.get(len(secret), ())]


BROKEN: Final = "is broken"
_BROKEN_SUITE: Final = re.compile("RC4|DES_|MD5|NULL|EXPORT|anon")


def weakness(number: int) -> str:
    """What speaks against a suite, in words; empty for none."""
    name = suite_name(number)
    if _BROKEN_SUITE.search(name):
        return BROKEN
    if name.startswith("TLS_RSA_"):
        return "has no forward secrecy"
    return "is of a kind that TLS 1.3 gave up: CBC" if "_CBC_" in name else ""


def suite_name(number: int) -> str:
    """Return the name of a suite."""
    words = (_TLS13 | _TLS12 | _OTHERS).get(number)
    return f"suite 0x{number:04x}" if words is None else f"TLS_{words}"
