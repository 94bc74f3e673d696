"""The members of a text that is JSON, each with the bytes that it is written in.

Invariants:
  * a member's bytes are within those of the member around it;
  * numbers keep their digits, and members their order, repeated names included;
  * nesting, size and count are bounded: a text beyond is no tree.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import accumulate
from json.decoder import scanstring  # type: ignore[attr-defined]  # what `json` reads strings with; not in its stub
from typing import Final, NamedTuple

MOST_BYTES: Final = 1 << 18
MOST_MEMBERS: Final = 20_000
DEEPEST: Final = 64
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_WORDS: Final = {"true": True, "false": False, "null": None}
_ENDS: Final = {"{": "}", "[": "]"}


class JsonMember(NamedTuple):
    """A member of an object, or an element of an array."""

    name: str
    """As in the text; ``[3]`` of an element."""
    start: int
    """Offsets of the value's first byte and behind its last one, from that of the text."""
    end: int
    value: object
    """None of an object or an array, and of null."""
    kind: str
    """``object``, ``array`` or ``value``."""
    children: tuple["JsonMember", ...] = ()


class _NotJsonError(ValueError):
    """It is no JSON, or beyond the bounds."""


def json_members(data: bytes) -> tuple[JsonMember, ...] | None:
    """Return the members of an object or an array; None if the bytes are neither."""
    if len(data) > MOST_BYTES or data.lstrip(b" \t\r\n")[:1] not in (b"{", b"["):
        return None
    try:
        return _SpanReader(data.decode()).whole()
    except (_NotJsonError, ValueError):
        return None


class _SpanReader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._left = MOST_MEMBERS
        is_plain = text.isascii()
        self._bytes = range(len(text) + 1) if is_plain else [0, *accumulate(len(each.encode()) for each in text)]

    def whole(self) -> tuple[JsonMember, ...]:
        member, end = self._value("", self._skip(0), 0)
        if self._skip(end) != len(self._text):
            raise _NotJsonError
        return member.children

    def _skip(self, at: int) -> int:
        match = _SPACE.match(self._text, at)
        return match.end() if match else at

    def _value(self, name: str, at: int, depth: int) -> tuple[JsonMember, int]:
        """Return the value that begins at a character, and where it ends."""
        self._left -= 1
        if self._left < 0 or depth >= DEEPEST:
            raise _NotJsonError
        first = self._text[at : at + 1]
        value: object = None
        children: tuple[JsonMember, ...] = ()
        kind = {"{": "object", "[": "array"}.get(first, "value")
        if first in _ENDS:
            found = list(self._inside(at + 1, first, depth + 1))
            children, end = tuple(each for each, _ in found[:-1] if each is not None), found[-1][1]
        elif first == '"':
            value, end = scanstring(self._text, at + 1, True)
        elif number := _NUMBER.match(self._text, at):
            is_whole = number[1] is None and number[2] is None
            value = int(number[0]) if is_whole and len(number[0]) < 40 else Decimal(number[0])
            end = number.end()
        else:
            word = next((each for each in _WORDS if self._text.startswith(each, at)), None)
            if word is None:
                raise _NotJsonError
            value, end = _WORDS[word], at + len(word)
        return JsonMember(name, self._bytes[at], self._bytes[end], value, kind, children), end

    def _inside(self, at: int, first: str, depth: int) -> Iterator[tuple[JsonMember | None, int]]:
        """Yield the members behind a bracket, and at last None and where the closing one ends."""
        at, count = self._skip(at), 0
        is_first = True
        while True:
            if is_first and self._text[at : at + 1] == _ENDS[first]:
                break
            name = f"[{count}]"
            if first == "{":
                if self._text[at : at + 1] != '"':
                    raise _NotJsonError
                name, at = scanstring(self._text, at + 1, True)
                at = self._skip(at)
                if self._text[at : at + 1] != ":":
                    raise _NotJsonError
                at = self._skip(at + 1)
            member, at = self._value(name, at, depth)
            yield member, at
            at, count, is_first = self._skip(at), count + 1, False
            sign = self._text[at : at + 1]
            if sign == _ENDS[first]:
                break
            if sign != ",":
                raise _NotJsonError
            at = self._skip(at + 1)
        yield None, at + 1
