"""Text formatting that detectors share."""

from collections.abc import Mapping
from typing import Final

NAMED: Final = 4


def tally(counts: Mapping[str, int]) -> str:
    """Return counts by name, the most frequent first: ``NOT_LEADER_OR_FOLLOWER 3, REQUEST_TIMED_OUT 1``."""
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items(), key=lambda each: -each[1])[:NAMED])
