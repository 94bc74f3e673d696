"""A text as it was before mail programs, terminals and editors changed its lines.

They quote lines, number them, break them where a column ends, and encode them (quoted-printable, RFC 2045). What a text
was before nobody can tell from its looks, so each version is read, and the one wins that has more messages.

Invariants:
  * the text as it is comes first; the others only where lines look so;
  * a version takes time and memory linear in the text, and there are five at most.
"""

import quopri
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from dissector.pasted.plain_text import Lines

_QUOTE: Final = re.compile(r"(?:[ \t]*[>|](?!-)[ \t]?)+")
_NUMBER: Final = re.compile(r"[ \t]*([0-9]{1,6})(?:[:|.)│]|(?=[ \t])|$)[ \t]?")
_LEAST_NUMBERED: Final = 3
"""Lines whose numbers follow each other."""
_SOFT_BREAK: Final = re.compile(r"(?m)^[^\n]{40,998}=$\n(?!$)")
_STAR: Final = re.compile(r"[\s>|]*\*\s*")
"""What dumps have in place of rows that repeat."""
_NARROWEST: Final = 32
"""Columns of the narrowest window or mail in which lines were broken."""


class TextVersion:
    """A text, and which lines of the pasted one its lines were."""

    def __init__(self, text: str, numbers: Sequence[int] | None = None) -> None:
        self.text = text
        self.lines = Lines(text)
        self.numbers = range(1, len(self.lines.texts) + 1) if numbers is None else numbers

    def line(self, at: int) -> int:
        """Return the number of the pasted line with a character of this version, from 1."""
        return self.numbers[bisect_right(self.lines.starts, at) - 1]


def versions_of(text: str) -> Iterator[TextVersion]:
    """Yield a text as it is, and as it may have been before."""
    version = TextVersion(text)
    yield version
    decoded = _decoded(version)
    if decoded is not None:
        version = decoded
        yield version
    for each in (version, _without_fronts(version)):
        if each is None:
            continue
        if each is not version:
            yield each
        unbroken = _unbroken(each)
        if unbroken is not None:
            yield unbroken


def _decoded(version: TextVersion) -> TextVersion | None:
    """Return a quoted-printable text decoded."""
    if _SOFT_BREAK.search(version.text) is None:
        return None
    texts: list[str] = []
    numbers: list[int] = []
    goes_on = False
    for number, line in zip(version.numbers, version.lines.texts, strict=True):
        body = line.removesuffix("=")
        plain = quopri.decodestring(body.encode()).decode("utf-8", "replace").replace("\n", " ")
        if goes_on:
            texts.append(plain)
        else:
            texts.extend(["\n", plain] if texts else [plain])
            numbers.append(number)
        goes_on = body != line
    return TextVersion("".join(texts), numbers)


def _without_fronts(version: TextVersion) -> TextVersion | None:
    """Return a text without marks of quotes and numbers in front of its lines."""
    lines = [_QUOTE.sub("", line, count=1) if _QUOTE.match(line) else line for line in version.lines.texts]
    found = [_NUMBER.match(line) for line in lines]
    filled = sum(bool(line.strip()) for line in lines)
    first = 0
    for place in range(1, len(lines) + 1):
        before, here = found[place - 1], found[place] if place < len(lines) else None
        if before and here and int(here[1]) == int(before[1]) + 1:
            continue
        if place - first >= min(_LEAST_NUMBERED, filled):
            for number in range(first, place):
                match = found[number]
                lines[number] = lines[number][match.end() :] if match else lines[number]
        first = place
    return None if lines == version.lines.texts else TextVersion("\n".join(lines), version.numbers)


def _unbroken(version: TextVersion) -> TextVersion | None:
    """Return a text with lines joined that were broken where a column ends, also within a word."""
    texts: list[str] = []
    numbers: list[int] = []
    at = 0
    for is_blank, group in groupby(version.lines.texts, lambda line: not line.strip()):
        block = list(group)
        width = 0 if is_blank else _width(block)
        goes_on = False
        for line in block:
            if goes_on and not _STAR.fullmatch(line):
                texts.append(line)
            else:
                texts.extend(["\n", line] if numbers else [line])
                numbers.append(version.numbers[at])
            goes_on = bool(width) and width - 1 <= len(line) <= width
            if goes_on and len(line) < width:
                texts.append(" ")  # a blank at the end of a line, which few programs copy
            at += 1
    return TextVersion("".join(texts), numbers) if len(numbers) < len(version.numbers) else None


def _width(block: list[str]) -> int:
    """Return the column at which lines of a block were broken; 0 where none was."""
    lengths = Counter(len(line) for line in block[:-1])
    long = {length: count for length, count in lengths.items() if length >= _NARROWEST}
    if not long:
        return 0
    # A line may be one character shorter, by the blank at its end.
    return max(long, key=lambda length: (long[length] + long.get(length - 1, 0), length))
