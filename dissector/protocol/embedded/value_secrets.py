"""Secrets in JSON, as keys and values of records hold it: Connect's configs, events with tokens, requests' headers.

A member is a secret if its name is one of a secret (`secret_names`), and no config of Kafka's that is public: a text or
a number; of an array or an object all texts in it. So is the member ``value``, or all that is in it, of an object that
has such a name as its ``name``, and the key of a session of Connect's workers (SessionKey of
org.apache.kafka.connect.storage). In any other text of JSON these are: the password of a URL; a private key in PEM,
whose lines are escapes there; what is assigned to such a name (``password=...``, as URLs and login modules do); what
follows such a name as a header (``authorization: ...``), in any line; the same in JSON in that text. Text that is no
JSON is the user's, and has no secrets here.

Invariants:
  * what is masked has as many bytes as before, and JSON stays JSON;
  * the bytes need not be well-formed: what was cut or damaged is searched as far as it reads;
  * work grows with the bytes, times `DEEPEST`.
"""

import re
from array import array
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from dissector.protocol.embedded.mask import Mask
from dissector.protocol.embedded.public_configs import is_public_config
from dissector.protocol.embedded.secret_names import SESSION_KEY, is_count, is_secret_name

DEEPEST: Final = 6
"""JSON in texts of JSON: below that a text is a secret as a whole."""
MOST_LEVELS: Final = 500
"""Objects and arrays in each other that are distinguished; those below are as one."""
LARGEST_ESCAPED: Final = 1 << 20
"""Bytes of a text with escapes that is searched; a larger one is a secret as a whole."""
_LONGEST: Final = 256
"""Characters of a name that is remembered."""
_START: Final = re.compile(rb'\{\s*"|\[\s*["{\[]')
_TOKEN: Final = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)("?)(\s*:)?|([{}\[\]])|[^\s"{}\[\],:]+', re.DOTALL)
_STRICT_TOKEN: Final = re.compile(
    rb'"([^"\\\x00-\x1f]*(?:\\[^\x00-\x1f][^"\\\x00-\x1f]*)*)("?)(\s*:)?|([{}\[\]])|[^\s"{}\[\],:\x00-\x1f]+'
    rb"|([\x00-\x08\x0b\x0c\x0e-\x1f])",
    re.DOTALL,
)
_CONTROL: Final = 5
"""The group of a control character in the strict form."""
_NUMBER: Final = re.compile(rb"-?\d[\d.eE+-]*")
_ESCAPE: Final = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SHORT_ESCAPES: Final = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"b": b"\b", b"f": b"\f"}
_MAY_HOLD: Final = re.compile(rb"[=:@{\[\\]")
"""What a text with a secret has; it may be written as an escape, as Gson does with ``=``."""
_USER: Final = re.compile(rb"://[^\s/?#@:\"]*:([^\s/?#\"]*)@")
_CUT_USER: Final = re.compile(rb"://[^\s/?#@:\"]*:([^\s/?#\"@]+)\Z")
_ORACLE: Final = re.compile(rb"oracle:[a-z0-9]{1,16}:[^\s/@\"]{0,128}/([^\s@]{1,128})@", re.IGNORECASE)
_PRIVATE_KEY: Final = re.compile(rb"-----BEGIN [A-Z ]{0,24}PRIVATE KEY(?: BLOCK)?-----(.+?)(?:-----END|\Z)", re.DOTALL)
"""As OpenSSL, OpenSSH and GnuPG write one, between the lines that say so."""
_ASSIGNED: Final = re.compile(
    rb"(?<![A-Za-z0-9_.-])([A-Za-z0-9_.-]+)\s*=\s*"
    rb"(?:\"((?:[^\"\\]|\\.)*)|'((?:[^'\\]|\\.)*)|\{((?:[^}]|\}\})*)|([^\s&;,\"')]+))",
    re.DOTALL,
)
"""Quoted as login modules have it, or in braces as ODBC does."""
_HEADER: Final = re.compile(rb"\s*([A-Za-z0-9_.-]+):\s*(\S.*)", re.DOTALL)
_LINE: Final = re.compile(rb"^[ \t]*([A-Za-z0-9_.-]+):[ \t]*([^\s][^\r\n]*)", re.MULTILINE)
_NAMING: Final = frozenset(("name", "key", "config_name", "configname", "header", "field"))
"""Members that say what the member `_VALUE` is of."""
_VALUE: Final = "value"
_PUBLIC: Final = frozenset(("type",))
"""Members of an object with a secret's name that are none: ``{"type": "basic", ...}``."""


def is_secret_member(name: str) -> bool:
    """Whether a member of JSON, or the header of a record, may be a secret by its name."""
    return _is_secret_name(name) if len(name) <= _LONGEST else is_secret_name(name)


@lru_cache(maxsize=4096)
def _is_secret_name(name: str) -> bool:
    return is_secret_name(name) and not is_public_config(name)


def json_masks(data: bytes, *, strict: bool = False) -> list[Mask]:
    """Return what to mask of bytes with JSON in them. With `strict` the bytes are more than a value: JSON ends where a
    control character is that JSON can't have."""
    return _Search(strict=strict).masks(data, 0)


@dataclass(slots=True)
class _Level:
    """An object or an array that is open."""

    is_secret: bool = False
    name: str | None = None
    """Of the member that is read."""
    names: set[str] = field(default_factory=set)
    names_secret: bool = False
    values: list[Mask] = field(default_factory=list)
    """The members `_VALUE`."""
    keys: list[Mask] = field(default_factory=list)
    in_values: list[Mask] = field(default_factory=list)
    """What is in arrays and objects that are members `_VALUE`."""
    of_value: list[Mask] | None = None
    """`in_values` of the object whose member `_VALUE` it is, or is in."""

    def masks(self) -> list[Mask]:
        """What is known to be secret only at its end."""
        of_session = self.keys if self.names >= SESSION_KEY else []
        return (self.values + self.in_values if self.names_secret else []) + of_session


class _Levels:
    """The objects and arrays that are open in a piece of JSON."""

    def __init__(self) -> None:
        self.open = [_Level()]
        self._deeper = 0
        """Those below `MOST_LEVELS`."""

    def begin(self) -> list[Mask]:
        """Open one."""
        if len(self.open) > MOST_LEVELS:
            self._deeper += 1
        else:
            level = self.open[-1]
            of_value = level.in_values if (level.name or "").lower() == _VALUE else level.of_value
            self.open.append(_Level(level.is_secret or _is_secret(level.name), of_value=of_value))
        return []

    def close(self) -> list[Mask]:
        """Close the last one; return what is known of it only now."""
        found: list[Mask] = []
        if self._deeper:
            self._deeper -= 1
        else:
            found = self.open[-1].masks()
            del self.open[max(1, len(self.open) - 1) :]
        self.open[-1].name = None
        return found


class _Search:
    """Searches one value."""

    def __init__(self, *, strict: bool) -> None:
        self._is_strict = strict
        self._tokens = _STRICT_TOKEN if strict else _TOKEN

    def masks(self, data: bytes, depth: int) -> list[Mask]:
        """Return the masks of all JSON in bytes."""
        found: list[Mask] = []
        at = 0
        head = data[:64].lstrip()
        if head.startswith(b'"'):
            at = self._read(data, data.index(b'"'), depth, found)
        while start := _START.search(data, at):
            at = max(self._read(data, start.start(), depth, found), start.start() + 1)
        return found

    def _read(self, data: bytes, start: int, depth: int, found: list[Mask]) -> int:
        """Add the masks of the JSON that begins there; return where it ends."""
        levels = _Levels()
        end = len(data)
        for token in self._tokens.finditer(data, start):
            text, _, colon, bracket = token.group(1, 2, 3, 4)
            level = levels.open[-1]
            if self._is_strict and token.end() == len(data) and (cut := _CUT_USER.search(data, token.start())):
                found.append(Mask(*cut.span(1)))
            if text is not None and colon is not None:
                level.name = _text(text)
                level.names.add(level.name.lower())
                continue
            if token.lastindex == _CONTROL:
                end = token.end()
                break
            if bracket:
                found += levels.close() if bracket in b"}]" else levels.begin()
            elif text is not None:
                self._add_text(level, token.start(1), token.end(1), text, depth, found)
            elif _NUMBER.fullmatch(token[0]):
                _add_number(level, token.start(), token.end(), found)
            if len(levels.open) == 1:
                end = token.end()
                break
            if not bracket:
                level.name = None  # a name is that of one value
        for level in levels.open:
            found += level.masks() or (level.values if self._is_strict else [])  # its name may have been cut off
        return end

    def _add_text(self, level: _Level, start: int, end: int, text: bytes, depth: int, found: list[Mask]) -> None:
        name = (level.name or "").lower()
        mask = Mask(start, end)
        if (level.is_secret and name not in _PUBLIC) or _is_secret(level.name):
            if text:
                found.append(mask)
            return
        if name in _NAMING and is_secret_member(_text(text[:256])):
            level.names_secret = True
        if name == _VALUE:
            level.values.append(mask)
        elif name == "key":
            level.keys.append(mask)
        if level.of_value is not None and name not in _PUBLIC:
            level.of_value.append(mask)
        if _MAY_HOLD.search(text):
            found += self._of_text(text, start, depth)

    def _of_text(self, raw: bytes, start: int, depth: int) -> list[Mask]:
        """Return the masks of a text of JSON, as it is written there."""
        if b"\\" not in raw:
            return [
                each._replace(start=start + each.start, end=start + each.end) for each in self._of_plain(raw, depth)
            ]
        if len(raw) > LARGEST_ESCAPED:
            return [Mask(start, start + len(raw))]
        plain, places = _unescaped(raw)
        return [
            each._replace(start=start + places[each.start], end=start + places[each.end])
            for each in self._of_plain(plain, depth)
        ]

    def _of_plain(self, text: bytes, depth: int) -> list[Mask]:
        found = [
            Mask(*each.span(1)) for form in (_USER, _ORACLE, _PRIVATE_KEY) for each in form.finditer(text) if each[1]
        ]
        for each in _ASSIGNED.finditer(text):
            if each.lastindex and each.lastindex > 1 and is_secret_member(each[1].decode("latin-1")):
                start, end = each.span(each.lastindex)
                if start < end:
                    found.append(Mask(start, end))
        header = _HEADER.fullmatch(text)
        if header is not None and is_secret_member(header[1].decode("latin-1")):
            found.append(Mask(*header.span(2)))
        elif b"\n" in text:
            lines = (each for each in _LINE.finditer(text) if is_secret_member(each[1].decode("latin-1")))
            found += (Mask(*each.span(2)) for each in lines)
        if _START.search(text) is not None:
            found += self.masks(text, depth + 1) if depth < DEEPEST else [Mask(0, len(text))]
        return found


def _add_number(level: _Level, start: int, end: int, found: list[Mask]) -> None:
    if _is_secret(level.name) and level.name is not None and not is_count(level.name):
        found.append(Mask(start, end, number=True))
    elif (level.name or "").lower() == _VALUE:
        level.values.append(Mask(start, end, number=True))
    elif level.of_value is not None:
        level.of_value.append(Mask(start, end, number=True))


def _is_secret(name: str | None) -> bool:
    return name is not None and is_secret_member(name)


def _text(raw: bytes) -> str:
    """A text of JSON."""
    plain = _unescaped(raw)[0] if b"\\" in raw and len(raw) <= LARGEST_ESCAPED else raw
    return plain.decode("utf-8", "replace")


def _unescaped(raw: bytes) -> "tuple[bytes, array[int]]":
    """Return a text without its escapes, and where each byte of it is written, and its end."""
    plain, places, at = bytearray(), array("q"), 0
    for found in _ESCAPE.finditer(raw):
        plain += raw[at : found.start()]
        places.extend(range(at, found.start()))
        code, letter = found.group(1, 2)
        character = chr(int(code, 16)).encode("utf-8", "surrogatepass") if code else _SHORT_ESCAPES.get(letter, letter)
        plain += character
        places.extend([found.start()] * len(character))
        at = found.end()
    plain += raw[at:]
    places.extend(range(at, len(raw) + 1))
    return bytes(plain), places
