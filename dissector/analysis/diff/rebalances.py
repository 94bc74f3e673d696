"""What rebalances do to the requests of members of a group, whichever the client: another member comes when it comes.

A member looks up offsets after its first join or after each, of which partitions it has then: how often, and between
which joins, is chance, if both sides are told of rebalances. A leader that does not know its topics yet assigns
nothing, or what it knows, and joins again: whether the first metadata comes before its first assignment is chance, too;
and so is whether a member that leaves is told of a rebalance in time to join once more.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from dissector.analysis.diff.alignment import align, out_of_order
from dissector.analysis.diff.field_comparison import ASSIGNED
from dissector.analysis.diff.frequency_comparison import LOOKUPS
from dissector.analysis.diff.group_consequences import SAID_AGAIN, TOLD, has_all_values
from dissector.analysis.diff.key_differences import KeyDifference
from dissector.analysis.diff.key_profile import KeyProfile
from dissector.analysis.diff.matching_keys import MatchingKey
from dissector.analysis.diff.message_leaves import EMPTY, NOT_EMPTY, path_without_labels
from dissector.analysis.diff.result import DiffReason
from dissector.protocol.schema.error_codes import ErrorCode

REBALANCE: Final = ErrorCode.REBALANCE_IN_PROGRESS.name
"""The step of a heartbeat, or another request, that is told of a rebalance."""
AGAIN: Final = 2
"""So many times as many lookups a member may make; one that looks up after each of several joins makes more."""
Keys = Mapping[MatchingKey, KeyProfile]


def told_words(key: MatchingKey, sides: Sequence[Keys]) -> str:
    """Say, of how often both sides join a group, how often they were told to because others came or went."""
    if (key.api, key.step) != ("JoinGroup", ""):
        return ""
    counts = [
        sum(
            len(each.rows)
            for of, each in keys.items()
            if (of.matched, of.subject, of.step) == (key.matched, key.subject, REBALANCE)
        )
        for keys in sides
    ]
    return f"{TOLD}: {{a}} {counts[0]:,}, {{b}} {counts[1]:,}" if counts[0] != counts[1] else ""


def are_told(sides: Sequence[Keys]) -> bool:
    """Return whether members of both sides are told of rebalances."""
    return all(any(key.step == REBALANCE for key in keys) for keys in sides)


def is_lookup_again(key: MatchingKey, found: KeyDifference, sides: Sequence[Keys]) -> bool:
    """Return whether lookups of sides that are told of rebalances are so many more on one of them as other partitions
    after other joins bring."""
    is_count = found.reason is DiffReason.COUNT and not (found.part or found.path)
    if key.api not in LOOKUPS or not is_count or not are_told(sides):
        return False
    few, many = sorted((found.count_a, found.count_b))
    return many <= AGAIN * few


def is_of_early_join(key: MatchingKey, found: KeyDifference, sides: Sequence[Keys]) -> bool:
    """Return whether one side joins more often than the other, or says more then, only because its leader joined again
    before it began to read."""
    if key.api not in ("JoinGroup", "SyncGroup") or key.step:
        return False
    early = [_early_joins(key, keys) for keys in sides]
    joins = [len(keys[key].rows) - each for keys, each in zip(sides, early, strict=True)]
    if early[0] == early[1] or joins[0] != joins[1]:
        return False
    if not found.part:
        return found.reason is DiffReason.COUNT
    more, less = (found.a, found.b) if early[0] > early[1] else (found.b, found.a)
    is_said_again = (key.api, found.part, path_without_labels(found.path)) in SAID_AGAIN
    return is_said_again and has_all_values(more, less)


def _early_joins(key: MatchingKey, keys: Keys) -> int:
    """Return how often a member that leads its group all the time joined again before it looked up its partitions: as
    it got none, or while it asked for metadata once more."""
    syncs, joins, lookups = (keys.get(key._replace(api=api)) for api in ("SyncGroup", "JoinGroup", "OffsetFetch"))
    if not syncs or not joins or syncs.fields.get(("request", ("assignments",)), {}).keys() != {NOT_EMPTY}:
        return 0
    empty = sum(values[EMPTY] for (part, path), values in syncs.fields.items()
                if part == "response" and path_without_labels(path) == ASSIGNED["SyncGroupResponse"])  # fmt: skip
    metadata = [row for of, profile in keys.items() if of.api == "Metadata" for row in profile.rows]
    begins = lookups.rows[0] if lookups else 0
    again = [each for each in joins.rows[1:] if each < begins]
    of_syncs = zip(syncs.rows, again, strict=False)  # of all joins but the first
    return max(empty, sum(any(sync < each < join for each in metadata) for sync, join in of_syncs))


def is_of_last_rebalance(key: MatchingKey, found: KeyDifference, sides: Sequence[Keys]) -> bool:
    """Return whether one side joins once more only because it was told to just before it left, and the other side left
    instead."""
    if key.api not in ("JoinGroup", "SyncGroup") or key.step or found.part or found.reason is not DiffReason.COUNT:
        return False
    few, more = sorted(sides, key=lambda keys: len(keys[key].rows))
    told = [_rows(key, keys, "Heartbeat", REBALANCE) for keys in (few, more)]
    if len(told[0]) != len(told[1]) or len(more[key].rows) - len(few[key].rows) != 1:
        return False
    joins, beats, leaves = ([_rows(key, keys, api) for keys in (few, more)]
                            for api in ("JoinGroup", "Heartbeat", "LeaveGroup"))  # fmt: skip
    has_left = told[0][-1:] > joins[0][-1:] and leaves[0][-1:] > told[0][-1:] > beats[0][-1:]
    return has_left and bool(leaves[1]) and sum(row > joins[1][-1] for row in beats[1]) <= 1


def _rows(key: MatchingKey, keys: Keys, api: str, step: str = "") -> list[int]:
    """Return the rows of an API for the same group."""
    of = key._replace(api=api, step=step)
    return keys[of].rows.tolist() if of in keys else []


def is_same_order(a: Sequence[MatchingKey], b: Sequence[MatchingKey], sides: Sequence[Keys]) -> bool:
    """Return whether steps come in another order only because rebalances come before lookups or after them."""
    if not are_told(sides):
        return False
    steps = [[key for key in side if key.api not in LOOKUPS] for side in (a, b)]
    return not out_of_order(steps[0], steps[1], align(steps[0], steps[1]))
