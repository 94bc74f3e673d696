"""TOML that users write, read in a time that grows with its length: for a key of many parts `tomllib` takes the square
of their number."""

import re
import tomllib
from typing import Any, Final

MOST_DOTS: Final = 100
"""Dots of a line outside of its texts, at most: parts of a key, and none of ours has one."""
_TEXTS: Final = re.compile(r"\"(?:[^\"\\\n]|\\.)*+\"?|'[^'\n]*+'?|#.*")


def read_toml(text: str) -> dict[str, Any]:
    """Return what a text says. Raises `ValueError`, in plain words of one line."""
    if any(line.count(".") > MOST_DOTS for line in _TEXTS.sub("", text).split("\n")):
        raise ValueError("tables or arrays nested too deeply")
    try:
        return tomllib.loads(text)
    except ValueError as error:  # also of numbers with more digits than Python reads
        raise ValueError(f"not TOML: {error}") from None
    except RecursionError:
        raise ValueError("tables or arrays nested too deeply") from None
