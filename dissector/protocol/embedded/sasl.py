"""SASL tokens: PLAIN (RFC 4616), SCRAM (RFC 5802, 7677), OAUTHBEARER (RFC 7628). GSSAPI tokens are only labelled.

The mechanism is that of the connection's SaslHandshake; if that was not captured, it is guessed from the bytes. Bytes
that would allow a login or help to guess a password are marked secret: passwords, proofs, verifiers, and signatures of
bearer tokens. User names, nonces, salts and claims are not secret.
"""

import json
import re
from base64 import urlsafe_b64decode
from binascii import Error
from collections.abc import Iterator
from typing import Final

from dissector.protocol.embedded.subtree import Subtree, SubtreeItem

_SCRAM_NAMES: Final = {
    "a": "authzid", "n": "username", "r": "nonce", "m": "mandatory_extension", "c": "channel_binding", "s": "salt",
    "i": "iterations", "p": "proof", "v": "verifier", "e": "error",
}  # fmt: skip
_SCRAM_SECRETS: Final = ("proof", "verifier")
_SCRAM: Final = re.compile(rb"([npy](=[^,]*)?,(a=[^,]*)?,)?[a-z]=[^,]*(,[a-z]=[^,]*)*", re.DOTALL)
_GS2: Final = re.compile(rb"[npy](?:=[^,]*)?,(?:a=[^,]*)?,")
_PLAIN: Final = re.compile(rb"[^\x00]*\x00[^\x00]+\x00[^\x00]+", re.DOTALL)
_BEARER: Final = re.compile(rb"bearer +", re.IGNORECASE)


def sasl_token(raw: bytes, mechanism: str | None) -> Subtree | None:
    """Return the content of a token; None if it is not of that mechanism, or of no known one."""
    name = mechanism or _guessed(raw)
    if name == "PLAIN" and _PLAIN.fullmatch(raw):
        return Subtree("PLAIN", tuple(_plain(raw)))
    if name is not None and name.startswith("SCRAM-") and _SCRAM.fullmatch(raw):
        return Subtree(name, tuple(_scram(raw)))
    if name == "OAUTHBEARER":
        items = tuple(_json_error(raw) if raw[:1] == b"{" else _bearer(raw))
        return Subtree(name, items) if items else None
    if name == "GSSAPI" and raw:
        return Subtree(name, (SubtreeItem("gssapi_token", "BYTES", 0, len(raw), raw, "GSSAPI: not decoded"),))
    return None


def _guessed(raw: bytes) -> str | None:
    if _GS2.match(raw) and b"\x01auth=" in raw:
        return "OAUTHBEARER"
    if _PLAIN.fullmatch(raw):
        return "PLAIN"
    if _SCRAM.fullmatch(raw) and (_GS2.match(raw) or re.match(rb"(r|c|v|e)=", raw)):
        return "SCRAM-SHA-256"
    return None


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _plain(raw: bytes) -> Iterator[SubtreeItem]:
    first = raw.index(b"\x00")
    second = raw.index(b"\x00", first + 1)
    yield SubtreeItem("authzid", "STRING", 0, first + 1, _text(raw[:first]))
    yield SubtreeItem("username", "STRING", first + 1, second + 1, _text(raw[first + 1 : second]))
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
        letter = chr(raw[at])
        name = _SCRAM_NAMES.get(letter, f"extension_{letter}")
        end = min(stop + 1, len(raw))
        secret = (at + 2, stop) if name in _SCRAM_SECRETS else None
        yield SubtreeItem(name, "STRING", at, end, _text(raw[at + 2 : stop]), secret=secret)
        at = end


def _json_error(raw: bytes) -> Iterator[SubtreeItem]:
    """Yield the error of a server that refuses, a JSON object."""
    yield SubtreeItem("error", "STRING", 0, len(raw), _text(raw))


def _bearer(raw: bytes) -> Iterator[SubtreeItem]:
    """Yield the GS2 header and the key-value pairs, each ended by 0x01; the token may be a JWT."""
    at = 0
    while at < len(raw):
        mark = raw.find(b"\x01", at)
        end = len(raw) if mark < 0 else mark + 1
        piece = raw[at : end - (mark >= 0)]
        key, _, value = piece.partition(b"=")
        if at == 0 and _GS2.match(raw):
            yield SubtreeItem("gs2_header", "STRING", at, end, _text(piece))
        elif key == b"auth":
            yield _authorization(raw, at, end, value)
        else:
            yield SubtreeItem(_text(key) or "(end)", "STRING", at, end, _text(value))
        at = end


def _authorization(raw: bytes, start: int, end: int, value: bytes) -> SubtreeItem:
    scheme = _BEARER.match(value)
    at = start + len(b"auth=") + (scheme.end() if scheme else 0)
    stop = start + len(b"auth=") + len(value)
    token = raw[at:stop]
    names = ("header", "claims", "signature")
    pieces = token.split(b".")
    if len(pieces) != len(names) or _claims(pieces[1]) is None:
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
