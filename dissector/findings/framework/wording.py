"""Wording that detectors share."""

from collections.abc import Mapping
from typing import Final

NAMED: Final = 4


def tally(counts: Mapping[str, int]) -> str:
    """``NOT_LEADER_OR_FOLLOWER 3, REQUEST_TIMED_OUT 1``: the most frequent first."""
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items(), key=lambda each: -each[1])[:NAMED])
