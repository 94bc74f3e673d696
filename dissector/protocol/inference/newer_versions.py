"""Versions newer than the tables: whether the newest known layout reads such a message sensibly.

A new version often adds only tagged fields, or none, or a field at the end. Where it does more, reading goes astray,
and what it then finds costs about what mere bytes do, or can't be.
"""

from typing import Final

from dissector.protocol.codec.plan import plan
from dissector.protocol.inference.scoring import InconclusiveError, LayoutMismatchError, Scorer

BEGIN: Final = 4
RATE: Final = 6.0
"""Bits a byte that a body may cost; mere bytes cost 8."""
START: Final = 16.0
"""Bits that it may cost beside them: short bodies vary more."""
MOST_REST: Final = 24
"""Bytes after the newest known layout that new fields may be."""


def reads_as(data: bytes, header: str, header_version: int, body: str, version: int) -> bool:
    """Whether a frame reads sensibly as that version of a message, with a little left at most."""
    end = len(data)
    start = Scorer(data, BEGIN, end, RATE * end + 100, frozenset())
    try:
        start.message(plan(header, header_version))
        scorer = Scorer(data, start.at, end, RATE * (end - start.at) + START, frozenset())
        scorer.message(plan(body, version))
    except (LayoutMismatchError, InconclusiveError):
        return False
    return end - scorer.at <= MOST_REST
