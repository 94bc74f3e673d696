"""Reads hex transcripts: frames as hex behind marks, which are believed.

A mark may have a connection's number before it, as in ``2>``. Bytes in other texts are found by `dissector/pasted`.

Invariants:
  * whatever the text is, `is_transcript` returns and `entries` returns or raises `TranscriptError` with the line's
    number;
  * no digit is skipped.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_DIGITS: Final = re.compile(r"[0-9a-f]*", re.IGNORECASE)
_MARK: Final = re.compile(r"(?P<connection>[0-9]{0,18})(?P<direction>[<>])", re.ASCII)
_MARKED: Final = re.compile(r"[0-9]{0,18}[<>](?:\s*[0-9a-f]{2})+\s*(?:#.*)?", re.ASCII | re.IGNORECASE)
_FIRST: Final = 1
"""The connection of a mark without a number."""


class TranscriptError(ValueError):
    """A line that can't be read; `is_unmarked` if it may be no part of a transcript at all."""

    def __init__(self, line: int, reason: str, *, is_unmarked: bool = False) -> None:
        super().__init__(f"line {line}: {reason}")
        self.is_unmarked = is_unmarked


class HexFrame(NamedTuple):
    """One entry of a transcript: bytes that were sent together."""

    line: int
    """Line of its beginning, from 1."""
    connection: int
    from_client: bool
    data: bytes


class _Line(NamedTuple):
    number: int
    text: str


def is_transcript(head: bytes) -> bool:
    """Return whether a text that begins with `head` is a transcript: its first line that is neither blank nor a
    comment has a mark and nothing but whole bytes."""
    if b"\0" in head:
        return False
    first = next(_lines(head), None)
    return first is not None and _MARKED.fullmatch(first.text) is not None


def entries(data: bytes) -> Iterator[HexFrame]:
    """Yield the entries of a transcript. Raises `TranscriptError`."""
    begun: tuple[int, re.Match[str]] | None = None
    parts: list[bytes] = []
    for line in _lines(data):
        words, _, _ = line.text.partition("#")
        mark = _MARK.match(words)
        if mark:
            if begun:
                yield _entry(*begun, parts)
            begun, parts = (line.number, mark), [_digits(line.number, words[mark.end() :])]
        elif words[0].isspace() and begun:
            parts.append(_digits(line.number, words))
        else:
            reason = "begins neither with > or < nor, as a line that continues one, with a space"
            raise TranscriptError(line.number, reason, is_unmarked=True)
    if begun:
        yield _entry(*begun, parts)


def _lines(data: bytes) -> Iterator[_Line]:
    """Yield the lines that are neither blank nor comments."""
    for number, line in enumerate(data.decode("utf-8-sig", "replace").split("\n"), 1):
        text = line.rstrip()
        if text and not text.lstrip().startswith("#"):
            yield _Line(number, text)


def _entry(line: int, mark: re.Match[str], parts: list[bytes]) -> HexFrame:
    data = b"".join(parts)
    if not data:
        raise TranscriptError(line, f"no bytes behind {mark['direction']}")
    return HexFrame(line, int(mark["connection"] or _FIRST), mark["direction"] == ">", data)


def _digits(number: int, text: str) -> bytes:
    digits = "".join(text.split())
    if not _DIGITS.fullmatch(digits):
        strange = next(character for character in digits if not _DIGITS.fullmatch(character))
        raise TranscriptError(number, f"{strange!r} is no hex digit")
    if len(digits) % 2:
        raise TranscriptError(number, f"{len(digits):,} hex digits: an odd number")
    return bytes.fromhex(digits)
