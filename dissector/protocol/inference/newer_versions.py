"""Tests whether the newest known layout fits a message of a newer version.

A new version often adds only tagged fields, nothing, or a field at the end. If it changes more, the known layout
reads nonsense, which costs about as many bits as random bytes, or can't be valid.
"""

from typing import Final

from dissector.protocol.codec.plan import plan
from dissector.protocol.inference.scoring import InconclusiveError, LayoutMismatchError, Scorer

BEGIN: Final = 4
RATE: Final = 6.0
"""Bits per byte that a body may cost; random bytes cost 8."""
START: Final = 16.0
"""Bits that it may cost in addition: short bodies vary more."""
MOST_REST: Final = 24
"""Bytes that may follow the newest known layout, as new fields."""


def reads_as(data: bytes, header: str, header_version: int, body: str, version: int) -> bool:
    """Return whether a frame fits that version of a message, with at most `MOST_REST` bytes behind it."""
    end = len(data)
    start = Scorer(data, BEGIN, end, RATE * end + 100, frozenset())
    try:
        start.message(plan(header, header_version))
        scorer = Scorer(data, start.at, end, RATE * (end - start.at) + START, frozenset())
        scorer.message(plan(body, version))
    except (LayoutMismatchError, InconclusiveError):
        return False
    return end - scorer.at <= MOST_REST
