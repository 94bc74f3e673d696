"""Leaders of partitions that moved while a client worked: what it then does on that side alone is the cluster's doing.

A client whose leader has moved is refused, asks for metadata, and connects to the new leader; before it reads there it
validates its position (KIP-320). How often it is refused is compared as any other retries are.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from dissector.analysis.diff.key_profile import KeyProfile
from dissector.analysis.diff.matching_keys import MatchingKey
from dissector.protocol.schema.error_codes import ErrorCode

REFUSALS: Final = frozenset(
    each.name
    for each in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH)
)
AT_LEADERS: Final = frozenset(("Produce", "Fetch"))
VALIDATION: Final = "OffsetForLeaderEpoch"
Keys = Mapping[MatchingKey, KeyProfile]


def moved_leaders(keys: Keys) -> bool:
    """Return whether a leader refused a client that produces or reads as it leads no more."""
    return any(not REFUSALS.isdisjoint(each.retries.counts) for key, each in keys.items() if key.api in AT_LEADERS)


def is_validation(key: MatchingKey, sides: Sequence[Keys]) -> bool:
    """Return whether requests of one side alone validate a position as only there a leader has moved."""
    moved = [moved_leaders(keys) for keys in sides]
    return key.api == VALIDATION and moved[0] != moved[1] and all(
        (key in keys) is has_moved for keys, has_moved in zip(sides, moved, strict=True)
    )  # fmt: skip
