"""JSON in keys and values. Numbers that 64 bits can't hold keep all their digits."""

import json
import re
from typing import Final

import orjson

from dissector.records.values.opened import UnreadableError, check_size

_BEGINS: Final = re.compile(rb"[ \t\r\n]*[\[{]")
_DEEP: Final = 1 << 8
"""Brackets that a text may have before its depth is worth a look."""
_LONG_NUMBER: Final = re.compile(rb"\d{17}")
"""What may lose digits in 64 bits."""


def looks_like_json(data: bytes) -> bool:
    """Return whether bytes may be a JSON object or array."""
    return _BEGINS.match(data) is not None and data.rstrip()[-1:] in (b"}", b"]")


def read_json(data: bytes) -> object:
    """Return a JSON value. Raises `UnreadableError`."""
    try:
        if _LONG_NUMBER.search(data) and data.count(b"[") + data.count(b"{") < _DEEP:
            value: object = json.loads(data, parse_constant=_no_number)
        else:
            value = orjson.loads(data)
    except (ValueError, RecursionError) as error:  # of both readers
        raise UnreadableError(f"not JSON: {str(error).partition(':')[0]}") from None
    check_size(value)
    return value


def _no_number(word: str) -> object:
    raise ValueError(f"{word} is not a number")
