"""Redacts SASL tokens: user names become pseudonyms, all other content asterisks.

The syntax of the mechanism stays (RFC 4616, 5802, 7628): separators, the letters of SCRAM's attributes, its iteration
count, that a bearer token is a JWT. So the token parses as before and grants nothing.
"""

import re
from base64 import urlsafe_b64encode
from typing import Final

from dissector.export.redaction.pseudonyms import MASK, Pseudonyms

USER: Final = "user"
_BOUND: Final = b"biws"
"""SCRAM's ``c=`` of a client that binds to no channel: ``n,,`` in base64."""
_PAIRS: Final = frozenset((b"auth", b"host", b"port"))
"""Keys of a bearer token that are not the user's (RFC 7628, 3.1)."""
_COUNT: Final = re.compile(rb"i=\d{1,9}")
_GS2: Final = re.compile(rb"([npy](?:=[^,]*)?),(?:a=([^,]*))?,")
_JWT: Final = re.compile(rb"(bearer +)([^.]*)\.([^.]*)\.(.*)", re.IGNORECASE | re.DOTALL)
_BEARER: Final = re.compile(rb"(bearer +)(.*)", re.IGNORECASE | re.DOTALL)


def redacted_token(raw: bytes, mechanism: str, names: Pseudonyms) -> bytes:
    """Return the redacted token of a mechanism, of the same size."""
    if mechanism == "PLAIN":
        authzid, user, password = raw.split(b"\x00", 2)
        return b"\x00".join((_user(authzid, names), _user(user, names), MASK * len(password)))
    if mechanism.startswith("SCRAM-"):
        return _scram(raw, names)
    if mechanism == "OAUTHBEARER":
        return _json(len(raw)) if raw[:1] == b"{" else _bearer(raw, names)
    return MASK * len(raw)


def _user(name: bytes, names: Pseudonyms) -> bytes:
    return names.of(name, USER) if name else b""


def _gs2(raw: bytes, names: Pseudonyms) -> bytes:
    """Return the redacted GS2 header before the attributes; empty without one."""
    found = _GS2.match(raw)
    if found is None:
        return b""
    flag = found[1][:1] + (b"=" + MASK * (len(found[1]) - 2) if b"=" in found[1] else b"")
    authzid = b"" if found[2] is None else b"a=" + _user(found[2], names)
    return flag + b"," + authzid + b","


def _scram(raw: bytes, names: Pseudonyms) -> bytes:
    head = _gs2(raw, names)
    return head + b",".join(_attribute(each, names) for each in raw[len(head) :].split(b","))


def _attribute(attribute: bytes, names: Pseudonyms) -> bytes:
    letter, value = attribute[:2], attribute[2:]
    if _COUNT.fullmatch(attribute) or attribute == b"c=" + _BOUND:
        return attribute
    if not letter.endswith(b"="):
        return MASK * len(attribute)
    return letter + (_user(value, names) if letter == b"n=" else MASK * len(value))


def _bearer(raw: bytes, names: Pseudonyms) -> bytes:
    """Redact key-value pairs, each ended by 0x01, after the header."""
    head = _gs2(raw, names)
    return head + b"\x01".join(_pair(pair) for pair in raw[len(head) :].split(b"\x01"))


def _pair(pair: bytes) -> bytes:
    key, equals, value = pair.partition(b"=")
    if key != b"auth":
        return _key(key, equals) + equals + MASK * len(value)
    if found := _JWT.fullmatch(value):
        scheme, header, claims, signature = found.groups()
        return b"auth=" + scheme + b".".join((_piece(header), _piece(claims), MASK * len(signature)))
    if found := _BEARER.fullmatch(value):
        return b"auth=" + found[1] + MASK * len(found[2])
    return b"auth=" + MASK * len(value)


def _key(key: bytes, equals: bytes) -> bytes:
    """Return a key: of the user's the length, in letters as the syntax wants them."""
    if not equals:
        return MASK * len(key)
    return key if key in _PAIRS else b"x" * len(key)


def _piece(encoded: bytes) -> bytes:
    """Return an empty JSON object in base64 of the same length, or asterisks if there is none."""
    size = len(encoded.rstrip(b"="))
    encoded_object = urlsafe_b64encode(_json(size * 3 // 4)).rstrip(b"=")
    if len(encoded_object) != size or size <= 2:
        return MASK * len(encoded)
    return encoded_object + b"=" * (len(encoded) - size)


def _json(size: int) -> bytes:
    return b"{}".ljust(size)[:size]
