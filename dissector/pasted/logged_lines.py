"""What programs that log put around each line of a text: timestamps, levels and names before it, a class behind it, or
a JSON object or `key="value"` around it.

What stands before lines is recognized by its shape: the first words of neighboring lines are the same but for their
digits, and the last of them is no byte, offset or number. The shape that most lines have is taken off.

Invariant: time and memory are linear in the text.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

_WORDS: Final = 12
"""Words of a line that may stand before what was logged."""
_HEAD: Final = 400
"""Characters among which they are."""
_LEAST: Final = 2
"""Pairs of lines with the same words before them."""
_WORD: Final = re.compile(r"\S+")
_NUMBER: Final = re.compile(r"[0-9]+")
_DATA: Final = re.compile(r"(?![A-Z]\Z)[\[({<\"'`|,+]*+(?:(?:0[xX]|\\x|&[hH]|-)?[0-9a-fA-F]++[\])}>\"'`,;:|]*+)*+")
"""A word that may be bytes, an offset or a number; a letter by itself is a mark."""
_TIME: Final = re.compile(r"\[?[0-9]{1,4}[-/:][0-9]{2}(?:[-/:][0-9]{2})?(?:[T,.]\S{0,30})?[\]:]?")
_LOGGER: Final = re.compile(r"\s+\([\w.$]{2,100}\)$")
"""The class behind a line, as brokers log it."""
_VALUE: Final = re.compile(r"\b(?:msg|message|log|text)=(\"(?:[^\"\\]|\\.)*\")")
_KEYS: Final = ("msg", "message", "log", "text", "body", "payload", "MESSAGE")
"""What logs call the text of a line."""
_DEEPEST: Final = 4
_LONGEST_VALUE: Final = 1 << 24


def without_prefixes(texts: list[str]) -> list[str] | None:
    """Return lines without what was logged before each; None if they have nothing in common."""
    texts = [_LOGGER.sub("", line) for line in texts]
    heads = [_head(line) for line in texts]
    shapes: Counter[tuple[str, ...]] = Counter()
    before: list[tuple[str, bool, int]] | None = None
    for head in heads:
        if not head:
            continue
        if before is not None and (shape := _shared(before, head)):
            shapes[shape] += 1
        before = head
    if not shapes:
        return None
    shape, count = max(shapes.items(), key=lambda item: (item[1], len(item[0])))
    if count < min(_LEAST, sum(map(bool, heads)) - 1):
        return None
    made = []
    for line, head in zip(texts, heads, strict=True):
        if tuple(word for word, _, _ in head[: len(shape)]) == shape:
            line = line[head[len(shape) - 1][2] + 1 :]
        made.append(line)
    return made


def _head(line: str) -> list[tuple[str, bool, int]]:
    """Return the first words of a line, each without its digits, whether it may be bytes, and where it ends."""
    found = []
    for match in _WORD.finditer(line, 0, _HEAD):
        word = match[0]
        is_data = _DATA.fullmatch(word) is not None and _TIME.fullmatch(word) is None
        found.append((_NUMBER.sub("#", word), is_data, match.end()))
        if len(found) == _WORDS:
            break
    return found


def _shared(first: list[tuple[str, bool, int]], second: list[tuple[str, bool, int]]) -> tuple[str, ...]:
    """Return the words with which two lines begin, up to the last one that is no byte."""
    count = 0
    for number, (one, other) in enumerate(zip(first, second, strict=False), 1):
        if one[0] != other[0]:
            break
        if not one[1] and not other[1]:
            count = number
        elif one[0] == "#:" and number > 1 and first[number - 2][0].isalpha():
            count = number  # as in `chunk 3:`
    return tuple(word for word, _, _ in first[:count])


def logged_values(texts: list[str]) -> list[list[str]] | None:
    """Return for each line the lines of what was logged in it, as a value in JSON or behind `msg=`; None where no line
    has any."""
    made = []
    is_found = False
    for line in texts:
        value = _value(line)
        is_found = is_found or value is not None
        made.append([line] if value is None else value.rstrip("\n").split("\n"))
    return made if is_found else None


def _value(line: str) -> str | None:
    text = line.strip()
    if text[:1] == "{" and text[-1:] == "}" and len(text) <= _LONGEST_VALUE:
        try:
            strings = list(_strings(json.loads(text)))
            return next((text for key, text in strings if key in _KEYS), None) or max(
                (text for _, text in strings), key=len, default=None
            )
        except (ValueError, RecursionError):
            return None
    found = _VALUE.search(text)
    if found is None:
        return None
    try:
        return str(json.loads(found[1]))
    except ValueError:
        return None


def _strings(value: object, key: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the strings in a value of JSON, each behind its key."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict) and depth < _DEEPEST:
        for name, each in value.items():
            yield from _strings(each, name, depth + 1)
