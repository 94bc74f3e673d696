"""What every command ends with: its exit code, and the one plain line that says what went wrong."""

import sys
from typing import Final

from dissector.text import clean

NEGATIVE: Final = 1
"""The question had a negative answer: nothing matched, or there is a difference."""
BAD_INPUT: Final = 2


def complain(words: str, *notes: str) -> int:
    """One plain line on stderr, and what shows where it comes from; the exit code for bad use or bad input."""
    print(f"kdissect: {clean(words)}", *map(clean, notes), sep="\n", file=sys.stderr)
    return BAD_INPUT
