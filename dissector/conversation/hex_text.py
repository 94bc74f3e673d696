"""Reads hex text: transcripts with their marks, the dumps of `xxd`, `hexdump -C`, `od` and Wireshark, and bare hex. The
first line that is neither blank nor a comment decides which it is, and all other lines must have the same form.

A mark of a transcript may have a connection's number before it, as in ``2>``.

Invariants:
  * whatever the text is, `form_of` returns and `entries` returns or raises `HexError` with the line's number;
  * no digit is skipped.
"""

import re
from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

from dissector.core import limits

MOST_REPEATED: Final = limits.DEFAULT.frame_size
"""Bytes that one ``*`` of a dump may stand for."""
_COLON_DUMP: Final = re.compile(r"(?P<offset>[0-9a-f]{4,16}):(?P<hex>(?: (?:[0-9a-f]{2})+)+)(?:  .*)?", re.IGNORECASE)
"""`xxd`: an offset and a colon, groups of digits, two spaces, the text."""
_SPACE_DUMP: Final = re.compile(
    r"(?P<offset>[0-9a-f]{4,16}) {2,3}(?P<hex>[0-9a-f]{2}(?: {1,2}[0-9a-f]{2})*)(?: +\|.*| {3,}.*)?", re.IGNORECASE
)
"""`hexdump -C` and Wireshark: an offset, bytes, the text between bars or after three spaces."""
_OD_DUMP: Final = re.compile(
    r"(?P<offset>[0-9a-f]{6,16}) (?P<hex>[0-9a-f]{2}(?: [0-9a-f]{2})*)(?: +>.*<)?", re.IGNORECASE
)
"""`od -Ax -tx1`, which `text2pcap` reads: an offset, bytes; with `z` their text between angle brackets."""
_OFFSET: Final = re.compile(r"[0-9a-f]{4,16}", re.IGNORECASE)
_DIGITS: Final = re.compile(r"[0-9a-f]*", re.IGNORECASE)
_MARK: Final = re.compile(r"(?P<connection>[0-9]{0,18})(?P<direction>[<>])", re.ASCII)
_FIRST: Final = 1
"""The connection of a mark without a number."""


class HexError(ValueError):
    """A line that can't be read."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")


class HexForm(Enum):
    """Form of a hex text."""

    MARKED = "hex transcript"
    DUMP = "hex dump"
    BARE = "bare hex"


class HexFrame(NamedTuple):
    """One entry of a hex text: bytes that were sent together."""

    line: int
    """Line of its beginning, from 1."""
    connection: int
    from_client: bool | None
    """None without a mark."""
    data: bytes


class _Line(NamedTuple):
    number: int
    text: str


def form_of(head: bytes) -> HexForm | None:
    """Return the form of a text that begins with `head`; None if it is not hex."""
    if b"\0" in head:
        return None
    for line in _lines(head):
        if _MARK.match(line.text):
            return HexForm.MARKED
        dump = _dump(line.text)
        if dump and (dump.re is _COLON_DUMP or not int(dump["offset"], 16)):
            return HexForm.DUMP
        return HexForm.BARE if _DIGITS.fullmatch("".join(line.text.split())) else None
    return None


def may_be_hex(head: bytes, most: int) -> bool:
    """Return whether a text that begins with `head`, and goes on, may be hex; `most` is how many bytes decide it."""
    whole = head if len(head) >= most else head[: head.rfind(b"\n") + 1]
    decided = len(head) >= most or next(_lines(whole), None) is not None
    return form_of(whole) is not None if decided else b"\0" not in head


def entries(data: bytes, form: HexForm) -> Iterator[HexFrame]:
    """Yield the entries of a text. A text without marks is one entry. Raises `HexError`."""
    lines = _lines(data)
    if form is HexForm.MARKED:
        yield from _marked(lines)
        return
    first = next(lines)
    rest = _dumped if form is HexForm.DUMP else _bare
    yield HexFrame(first.number, _FIRST, None, b"".join(rest(first, lines)))


def _lines(data: bytes) -> Iterator[_Line]:
    """Yield the lines that are neither blank nor comments."""
    for number, line in enumerate(data.decode("utf-8-sig", "replace").split("\n"), 1):
        text = line.rstrip()
        if text and not text.lstrip().startswith("#"):
            yield _Line(number, text)


def _marked(lines: Iterator[_Line]) -> Iterator[HexFrame]:
    begun: tuple[int, re.Match[str]] | None = None
    parts: list[bytes] = []
    for line in lines:
        words, _, _ = line.text.partition("#")
        mark = _MARK.match(words)
        if mark:
            if begun:
                yield _entry(*begun, parts)
            begun, parts = (line.number, mark), [_digits(line.number, words[mark.end() :])]
        elif words[0].isspace() and begun:
            parts.append(_digits(line.number, words))
        else:
            raise HexError(line.number, "begins neither with > or < nor, as a line that continues one, with a space")
    if begun:
        yield _entry(*begun, parts)


def _entry(line: int, mark: re.Match[str], parts: list[bytes]) -> HexFrame:
    data = b"".join(parts)
    if not data:
        raise HexError(line, f"no bytes behind {mark['direction']}")
    return HexFrame(line, int(mark["connection"] or _FIRST), mark["direction"] == ">", data)


def _bare(first: _Line, lines: Iterator[_Line]) -> Iterator[bytes]:
    yield _digits(*first)
    for line in lines:
        yield _digits(*line)


def _digits(number: int, text: str) -> bytes:
    digits = "".join(text.split())
    if not _DIGITS.fullmatch(digits):
        strange = next(character for character in digits if not _DIGITS.fullmatch(character))
        raise HexError(number, f"{strange!r} is no hex digit")
    if len(digits) % 2:
        raise HexError(number, f"{len(digits):,} hex digits: an odd number")
    return bytes.fromhex(digits)


def _dump(text: str) -> re.Match[str] | None:
    return _COLON_DUMP.fullmatch(text) or _SPACE_DUMP.fullmatch(text) or _OD_DUMP.fullmatch(text)


def _dumped(first: _Line, lines: Iterator[_Line]) -> Iterator[bytes]:
    """Yield the rows of a dump. ``*`` repeats the row before it, up to the offset after it."""
    found = _dump(first.text)
    assert found is not None
    row = bytes.fromhex(found["hex"])
    at = int(found["offset"], 16) + len(row)
    yield row
    repeats = False
    for number, text in lines:
        if text == "*":
            repeats = True
            continue
        found = _dump(text)
        if found is None and not _OFFSET.fullmatch(text):
            raise HexError(number, "is no row of a hex dump as the rows before it are")
        offset = int(found["offset"] if found else text, 16)
        if repeats:
            yield _repeated(number, row, offset - at)
        elif offset != at:
            raise HexError(number, f"its offset is {offset:#x}, but the row before it ends at {at:#x}")
        row = bytes.fromhex(found["hex"]) if found else b""
        at, repeats = offset + len(row), False
        yield row
    if repeats:
        raise HexError(number, "nothing behind the * says how often the row comes again")


def _repeated(number: int, row: bytes, size: int) -> bytes:
    if not 0 < size <= MOST_REPEATED or not row or size % len(row):
        raise HexError(number, f"the * before it would stand for {size:,} bytes in rows of {len(row)}")
    return row * (size // len(row))
