"""A text as it was before mail programs, terminals, editors and logs changed its lines.

They quote lines, number them, comment them out, put times before them, break them where a column ends (and indent what
follows), and encode them (quoted-printable, RFC 2045; JSON). What a text was before nobody can tell from its looks, so
each version is read, and the one wins that has more messages.

Invariants:
  * the text as it is comes first; the others only where lines look so;
  * a version takes time and memory linear in the text, and there are ten at most.
"""

import quopri
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Final

from dissector.pasted.logged_lines import logged_values, without_prefixes
from dissector.pasted.plain_text import Lines

_QUOTE: Final = re.compile(r"(?:[ \t]*[>|](?!-)[ \t]?)+|\+|[ \t]*(?:/[/*]+|#+|--+|;+|\*+/?)(?:[ \t]|$)")
"""Marks of quotes, of lines that a diff adds, and of comments."""
_NUMBER: Final = re.compile(r"[ \t]*(?:[^\s:]{1,200}:)?([0-9]{1,6})(?:[:|.)│]|(?=[ \t])|$)[ \t]?")
"""A line's number, behind the name of its file as `grep -n` prints it."""
_LEAST_NUMBERED: Final = 3
"""Lines whose numbers follow each other."""
_SOFT_BREAK: Final = re.compile(r"(?m)^[^\n]{40,998}=$\n(?!$)")
_STAR: Final = re.compile(r"[\s>|]*\*\s*")
"""What dumps have in place of rows that repeat."""
_FRONT: Final = re.compile(r"[ \t>|]*")
_NARROWEST: Final = 32
"""Columns of the narrowest window or mail in which lines were broken."""


class TextVersion:
    """A text, and which lines of the pasted one its lines were."""

    def __init__(self, text: str, numbers: Sequence[int] | None = None, *, is_surmised: bool = False) -> None:
        self.text = text
        self.is_surmised = is_surmised
        """Whether words were taken off that may have said what the text is about: then sizes are no proof."""
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
    for each in (version, _without_fronts(version), _values(version) or _without_prefixes(version)):
        if each is None:
            continue
        if each is not version:
            yield each
        for unbroken in (_unbroken(each, is_indented=True), _unbroken(each)):
            if unbroken is not None:
                yield unbroken


def _values(version: TextVersion) -> TextVersion | None:
    """Return what a log of JSON objects or of keys and values has as text."""
    values = logged_values(version.lines.texts)
    if values is None:
        return None
    numbers = [number for number, value in zip(version.numbers, values, strict=True) for _ in value]
    return TextVersion("\n".join(line for value in values for line in value), numbers, is_surmised=True)


def _without_prefixes(version: TextVersion) -> TextVersion | None:
    """Return a text without what was logged before each line."""
    lines = without_prefixes(version.lines.texts)
    return None if lines is None else TextVersion("\n".join(lines), version.numbers, is_surmised=True)


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
    filled = sum(bool(line.strip()) for line in lines)
    if sum(line.endswith("$") for line in lines) == filled:
        lines = [line.removesuffix("$") for line in lines]  # as `cat -A` marks their ends
    found = [_NUMBER.match(line) for line in lines]
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
    if lines == version.lines.texts:
        return None
    return TextVersion("\n".join(lines), version.numbers, is_surmised=version.is_surmised)


def _unbroken(version: TextVersion, *, is_indented: bool = False) -> TextVersion | None:
    """Return a text with lines joined that were broken where a column ends, also within a word; with `is_indented`,
    those that begin with more blanks (or a bar) than the line that they go on."""
    texts: list[str] = []
    numbers: list[int] = []
    at = 0
    for is_blank, group in groupby(version.lines.texts, lambda line: not line.strip()):
        block = list(group)
        width = 0 if is_blank else _width(block)
        indent = _indent(block, width) if is_indented else ""
        goes_on = False
        for line in block:
            if goes_on and line.startswith(indent) and not _STAR.fullmatch(line):
                texts.append(line[len(indent) :])
            else:
                texts.extend(["\n", line] if numbers else [line])
                numbers.append(version.numbers[at])
            longest = len(line) if indent else width  # the first line has no indentation, and may be as much longer
            goes_on = bool(width) and width - 1 <= len(line) <= longest and bool(indent or not is_indented)
            if goes_on and len(line) < width:
                texts.append(" ")  # a blank at the end of a line, which few programs copy
            at += 1
    if len(numbers) == len(version.numbers):
        return None
    return TextVersion("".join(texts), numbers, is_surmised=version.is_surmised)


def _indent(block: list[str], width: int) -> str:
    """Return with what lines begin that go on others."""
    fronts = [_FRONT.match(line) for before, line in pairwise(block) if width - 1 <= len(before) <= width]
    indent, *others = [front[0] for front in fronts if front and front[0]] or [""]
    for front in others:
        while not front.startswith(indent):
            indent = indent[:-1]
    return indent


def _width(block: list[str]) -> int:
    """Return the column at which lines of a block were broken; 0 where none was."""
    lengths = Counter(len(line) for line in block[:-1])
    long = {length: count for length, count in lengths.items() if length >= _NARROWEST}
    if not long:
        return 0
    # A line may be one character shorter, by the blank at its end.
    return max(long, key=lambda length: (long[length] + long.get(length - 1, 0), length))
