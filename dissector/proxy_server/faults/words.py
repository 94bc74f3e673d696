"""Words of an action or a trigger, and the values that they stand for: ``200ms``, ``64kB/s``, ``3``, ``0.1``.

Units are those of filters.
"""

import re
from fractions import Fraction
from typing import Final, NamedTuple

from dissector.core.times import NANOSECONDS
from dissector.filter.grammar import BYTES
from dissector.proxy_server.faults.errors import WordError

LONGEST_NS: Final = 24 * 3600 * 10**9
"""A day: the longest time of a rule."""
MOST_COUNT: Final = 10**9
FASTEST: Final = 10**12
"""Bytes a second, at most."""
_WORD: Final = re.compile(r"\S+")
_NUMBER: Final = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)([a-zA-Zµ]*)", re.ASCII)
_INTEGER: Final = re.compile(r"\d{1,10}", re.ASCII)
_SHOWN_TIMES: Final = ("h", "min", "s", "ms", "us", "ns")
_SHOWN_SIZES: Final = ("GB", "MB", "kB", "B")


class Word(NamedTuple):
    """A word, and where it begins."""

    text: str
    column: int


def words(text: str, column: int = 0) -> list[Word]:
    """Return the words of a text that begins at a column."""
    return [Word(found.group(), column + found.start()) for found in _WORD.finditer(text)]


def duration_ns(word: Word) -> int:
    """Return a duration in nanoseconds. Raises `WordError`."""
    number, unit = _parts(word, "a duration, such as 200ms or 1.5s")
    if unit not in NANOSECONDS:
        raise WordError(word.column, f"{word.text} needs a unit: {number}ms, {number}s" if not unit else
                        f"unknown unit {unit!r} for a duration", () if not unit else ("ms", "s", "min"))  # fmt: skip
    found = round(Fraction(number) * NANOSECONDS[unit])
    if not 0 < found <= LONGEST_NS:
        raise WordError(word.column, f"{word.text} is not a duration above 0 and up to 24h")
    return found


def rate(word: Word) -> int:
    """Return a rate in bytes a second. Raises `WordError`."""
    size, _, per = word.text.partition("/")
    if per != "s":
        raise WordError(word.column, f"{word.text!r:.40} is not a rate, such as 64kB/s")
    number, unit = _parts(Word(size, word.column), "a rate, such as 64kB/s")
    if unit not in BYTES:
        raise WordError(word.column, f"{word.text} is not a rate", ("64kB/s", "1MB/s"))
    found = round(Fraction(number) * BYTES[unit])
    if not 0 < found <= FASTEST:
        raise WordError(word.column, f"{word.text} is not a rate above 0 and up to 1000GB/s")
    return found


def count(word: Word, least: int = 1) -> int:
    """Return a number of matches. Raises `WordError`."""
    if not _INTEGER.fullmatch(word.text) or not least <= int(word.text) <= MOST_COUNT:
        raise WordError(word.column, f"{word.text!r:.40} is not a whole number from {least} to {MOST_COUNT:,}")
    return int(word.text)


def share(word: Word) -> Fraction:
    """Return a probability above 0 and up to 1. Raises `WordError`."""
    found = _NUMBER.fullmatch(word.text)
    if found is None or found[2] or not 0 < Fraction(found[1]) <= 1:
        raise WordError(word.column, f"{word.text!r:.40} is not a probability above 0 and up to 1")
    return Fraction(found[1])


def shown_duration(ns: int) -> str:
    """Return a duration as a rule has it, in the largest unit without a fraction."""
    return _shown(ns, _SHOWN_TIMES, NANOSECONDS)


def shown_rate(found: int) -> str:
    """Return a rate as a rule has it."""
    return f"{_shown(found, _SHOWN_SIZES, BYTES)}/s"


def shown_share(found: Fraction) -> str:
    """Return a probability as a rule has it."""
    return f"{float(found):.9f}".rstrip("0").rstrip(".")


def _shown(value: int, units: tuple[str, ...], sizes: dict[str, int]) -> str:
    unit = next(each for each in units if value % sizes[each] == 0)
    return f"{value // sizes[unit]}{unit}"


def _parts(word: Word, what: str) -> tuple[str, str]:
    found = _NUMBER.fullmatch(word.text)
    if found is None:
        raise WordError(word.column, f"{word.text!r:.40} is not {what}")
    return found[1], found[2]
