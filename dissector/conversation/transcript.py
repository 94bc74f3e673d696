"""The hex transcript: frames to lines, and lines, which are frames as hex behind marks, to the turns of a conversation.

A mark may have a connection's number before it, as in ``2>``. If a frame has fewer bytes than its size prefix
announces, the rest becomes a gap, so that later frames are still read correctly. An impossible prefix is handled by the
framing. Both give a finding. Bytes in other texts are found by `dissector/pasted`.

Invariants:
  * whatever the text is, `is_transcript` returns and `entries` returns or raises `TranscriptError` with the line's
    number;
  * no digit is skipped.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from dissector.conversation.turns import Turn
from dissector.core import limits

PREFIX: Final = 4
_WIDTH: Final = 32
"""Bytes on a line."""
_GROUP: Final = 4
_DIGITS: Final = re.compile(r"[0-9a-f]*", re.IGNORECASE)
_MARK: Final = re.compile(r"(?P<connection>[0-9]{0,18})(?P<direction>[<>])", re.ASCII)
_MARKED: Final = re.compile(r"[0-9]{0,18}[<>](?:\s*[0-9a-f]{2})+\s*(?:#.*)?", re.ASCII | re.IGNORECASE)
_FIRST: Final = 1
"""The connection of a mark without a number."""


def frame_lines(data: bytes, *, from_client: bool, connection: int = 1) -> Iterator[str]:
    """Yield a frame as lines of a transcript. The first connection has no number."""
    first = ("" if connection == 1 else str(connection)) + (">" if from_client else "<")
    for at in range(0, len(data), _WIDTH):
        mark = " " * len(first) if at else first
        yield f"{mark} {data[at : at + _WIDTH].hex(' ', -_GROUP)}"


def turns_of(data: bytes) -> tuple[dict[int, list[Turn]], list[str]]:
    """Return the turns of a transcript by connection, and problems with sizes. Raises `TranscriptError`.

    A turn's time is its number: it only gives the order."""
    turns: dict[int, list[Turn]] = {}
    problems: list[str] = []
    for number, (line, connection, from_client, sent) in enumerate(entries(data)):
        missing, problem = _short_of(sent)
        if problem:
            problems.append(f"line {line}: {problem}")
        turns.setdefault(connection, []).append(Turn(number, from_client, sent, missing))
    return turns, problems


def _short_of(sent: bytes) -> tuple[int, str]:
    """Return how many bytes the last frame lacks, and what is wrong with the frames."""
    at = 0
    while at < len(sent):
        left = len(sent) - at
        size = int.from_bytes(sent[at : at + PREFIX], "big", signed=True)
        if left < PREFIX:
            return 0, f"{left} bytes behind the last frame, too few for a size"
        if not 0 <= size <= limits.DEFAULT.frame_size:
            return 0, f"byte {at:,}: {size:,} can't be a frame's size"
        if size > left - PREFIX:
            words = f"byte {at:,}: a frame of {size:,} bytes behind its size, of which {left - PREFIX:,} are there"
            return size - (left - PREFIX), words
        at += PREFIX + size
    return 0, ""


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
        raise TranscriptError(number, f"{strange!r} is not a hex digit")
    if len(digits) % 2:
        raise TranscriptError(number, f"{len(digits):,} hex digits: an odd number")
    return bytes.fromhex(digits)
