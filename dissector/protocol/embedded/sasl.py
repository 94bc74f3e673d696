"""SASL tokens: PLAIN (RFC 4616), SCRAM (RFC 5802, 7677), OAUTHBEARER (RFC 7628). GSSAPI tokens are only labelled.

The mechanism is that of the connection's SaslHandshake. Bytes that would allow a login or help to guess a password are
marked secret: passwords, proofs, verifiers, and signatures of bearer tokens. User names, nonces, salts and claims are
not secret.

Invariant: a token is taken apart only if it is exactly of its mechanism's grammar, with nothing besides. Any other
token, and any whose mechanism is not known, is a secret from its first byte to its last: `tree` sees to it.
"""

import json
import re
from base64 import urlsafe_b64decode
from binascii import Error
from collections.abc import Iterator
from typing import Final

from dissector.protocol.embedded.subtree import Subtree, SubtreeItem
from dissector.protocol.wire import is_printable

_SCRAM_NAMES: Final = {
    b"n": "username", b"r": "nonce", b"c": "channel_binding", b"s": "salt", b"i": "iterations", b"p": "proof",
    b"v": "verifier", b"e": "error", b"tokenauth": "tokenauth",
}  # fmt: skip
_SCRAM_SECRETS: Final = ("proof", "verifier")
_BASE64: Final = rb"(?:[A-Za-z0-9+/]+={0,2}|\*+)"
"""Or its mask: a masked token has the same parts."""
_NONCE: Final = rb"[\x21-\x2b\x2d-\x7e]+"
_GS2: Final = re.compile(rb"[ny],(?:a=[^,\x00-\x1f]*)?,")
_SCRAM: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rb"[ny],(?:a=[^,\x00-\x1f]*)?,n=[^,\x00-\x1f]+,r=" + _NONCE + rb"(?:,tokenauth=true)?",
        rb"r=" + _NONCE + rb",s=" + _BASE64 + rb",i=\d{1,9}",
        rb"c=" + _BASE64 + rb",r=" + _NONCE + rb",p=" + _BASE64,
        rb"v=" + _BASE64,
        rb"e=(?:[a-z-]{1,40}|\*+)",
    )
)
"""The messages, in the order in which they are sent (RFC 5802, 7). Kafka adds one extension, for delegation tokens."""
_PLAIN: Final = re.compile(rb"[^\x00]*\x00[^\x00]+\x00[^\x00]+", re.DOTALL)
_BEARER_TOKEN: Final = re.compile(_GS2.pattern + rb"\x01(?:[A-Za-z]+=[^\x00\x01]*\x01)*\x01")
_BEARER: Final = re.compile(rb"bearer +", re.IGNORECASE)
_PUBLIC_KEYS: Final = (b"host", b"port")
_ENDPOINT: Final = re.compile(rb"[A-Za-z0-9.:_-]{1,255}")
_ERROR_KEYS: Final = frozenset(("status", "scope", "openid-configuration"))
_END: Final = b"\x01"
"""The client's last word after an error (RFC 7628, 3.2.3)."""


def sasl_token(raw: bytes, mechanism: str | None) -> Subtree | None:
    """Return the content of a token; None if it is not exactly of that mechanism, or of no known one."""
    name = (mechanism or "").upper()
    if name == "PLAIN" and _PLAIN.fullmatch(raw):
        return Subtree(name, tuple(_plain(raw)))
    if name.startswith("SCRAM-") and any(message.fullmatch(raw) for message in _SCRAM):
        return Subtree(name, tuple(_scram(raw)))
    if name == "OAUTHBEARER":
        items = tuple(_oauth(raw))
        return Subtree(name, items) if items else None
    if name == "GSSAPI" and raw:
        item = SubtreeItem("gssapi_token", "BYTES", 0, len(raw), raw, "GSSAPI: not decoded", secret=(0, len(raw)))
        return Subtree(name, (item,))
    return None


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _plain(raw: bytes) -> Iterator[SubtreeItem]:
    """Yield the three parts. Brokers take no authzid but the user's name: with another one neither is a name that could
    be relied on, and both are masked. So is what is not UTF-8 or has control characters, where RFC 4616 has texts: the
    NUL before the password may be damaged, and another one be in it."""
    first = raw.index(b"\x00")
    second = raw.index(b"\x00", first + 1)
    authzid, name = raw[:first], raw[first + 1 : second]
    is_odd = (bool(authzid) and authzid != name) or not is_printable(name)
    of_authzid, of_name = ((0, first), (first + 1, second)) if is_odd else (None, None)
    yield SubtreeItem("authzid", "STRING", 0, first + 1, _text(authzid), secret=of_authzid)
    yield SubtreeItem("username", "STRING", first + 1, second + 1, _text(name), secret=of_name)
    yield SubtreeItem(
        "password", "STRING", second + 1, len(raw), _text(raw[second + 1 :]), secret=(second + 1, len(raw))
    )


def _scram(raw: bytes) -> Iterator[SubtreeItem]:
    found = _GS2.match(raw)
    at = found.end() if found else 0
    if found:
        yield SubtreeItem("gs2_header", "STRING", 0, at, _text(raw[:at]))
    while at < len(raw):
        comma = raw.find(b",", at)
        stop = len(raw) if comma < 0 else comma
        key, _, value = raw[at:stop].partition(b"=")
        name = _SCRAM_NAMES[key]
        end = min(stop + 1, len(raw))
        secret = (stop - len(value), stop) if name in _SCRAM_SECRETS else None
        yield SubtreeItem(name, "STRING", at, end, _text(value), secret=secret)
        at = end


def _oauth(raw: bytes) -> Iterator[SubtreeItem]:
    if _BEARER_TOKEN.fullmatch(raw):
        yield from _bearer(raw)
    elif raw == _END:
        yield SubtreeItem("(end)", "STRING", 0, 1, "")
    elif _is_error(raw):
        yield SubtreeItem("error", "STRING", 0, len(raw), _text(raw))


def _is_error(raw: bytes) -> bool:
    """Whether it is the error of a server that refuses, a JSON object of texts (RFC 7628, 3.2.2)."""
    try:
        words = json.loads(raw) if raw[:1] == b"{" else None
    except (ValueError, RecursionError):
        return False
    return (
        isinstance(words, dict)
        and words.keys() <= _ERROR_KEYS
        and all(isinstance(each, str) for each in words.values())
    )


def _bearer(raw: bytes) -> Iterator[SubtreeItem]:
    """Yield the GS2 header and the key-value pairs, each ended by 0x01; the token may be a JWT. Values of other keys
    than the standard's own are secret: nobody knows what they are."""
    at = 0
    while at < len(raw):
        end = raw.index(b"\x01", at) + 1
        piece = raw[at : end - 1]
        key, _, value = piece.partition(b"=")
        if at == 0:
            yield SubtreeItem("gs2_header", "STRING", at, end, _text(piece))
        elif key == b"auth":
            yield _authorization(raw, at, end, value)
        else:
            is_public = key in _PUBLIC_KEYS and _ENDPOINT.fullmatch(value)
            secret = None if is_public or not value else (end - 1 - len(value), end - 1)
            yield SubtreeItem(_text(key) or "(end)", "STRING", at, end, _text(value), secret=secret)
        at = end


def _authorization(raw: bytes, start: int, end: int, value: bytes) -> SubtreeItem:
    scheme = _BEARER.match(value)
    at = start + len(b"auth=") + (scheme.end() if scheme else 0)
    stop = start + len(b"auth=") + len(value)
    token = raw[at:stop]
    names = ("header", "claims", "signature")
    pieces = token.split(b".")
    if len(pieces) != len(names) or _claims(pieces[0]) is None or _claims(pieces[1]) is None:
        return SubtreeItem("token", "STRING", start, end, _text(token), secret=(at, stop))
    items: list[SubtreeItem] = []
    for name, piece in zip(names, pieces, strict=True):
        close = end if name == "signature" else at + len(piece) + 1
        if name == "signature":
            items.append(SubtreeItem(name, "STRING", at, close, _text(piece), secret=(at, at + len(piece))))
        else:
            items.append(SubtreeItem(name, "STRING", at, close, _claims(piece) or _text(piece)))
        at = close
    return SubtreeItem("token", "STRUCT", start, end, items=tuple(items))


def _claims(piece: bytes) -> str | None:
    """Return a part of a JWT as JSON text; None if it is not one."""
    try:
        claims = json.loads(urlsafe_b64decode(piece + b"=" * (-len(piece) % 4)))
    except (ValueError, Error, RecursionError):
        return None
    return json.dumps(claims) if isinstance(claims, dict) else None
