"""Requests that only one side has.

A transaction or a group that only one side uses is one difference, not one for each API that it takes: the request that
begins it stands for the others.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from dissector.analysis.diff.compared_values import EntityName
from dissector.analysis.diff.consequences import FOLLOWED_BY
from dissector.analysis.diff.formatting import describe_key
from dissector.analysis.diff.key_differences import KeyDifference
from dissector.analysis.diff.key_profile import KeyProfile
from dissector.analysis.diff.matching_keys import MatchingKey
from dissector.analysis.diff.name_matching import NameMatching
from dissector.analysis.diff.result import DiffReason
from dissector.protocol.schema.error_codes import ErrorCode

BEGINNINGS: Final = ("InitProducerId", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "JoinGroup", "FindCoordinator")
"""APIs that begin the use of a transaction or a group: the first of them stands for the others."""
Keys = Mapping[MatchingKey, KeyProfile]


def one_sided(a: Keys, b: Keys, names: NameMatching) -> Iterator[tuple[MatchingKey, KeyDifference]]:
    """Yield the keys that only one side has."""
    for side, (mine, other) in enumerate(((a, b), (b, a))):
        alone = [key for key in mine if key not in other and _with_news(key) not in other]
        alone = [key for key in alone if not names.is_key_left_out(side, names.own_key(side, key))]
        of_both = {entity for key in other if (entity := _entity(key)) is not None}
        groups: dict[EntityName | MatchingKey, list[MatchingKey]] = {}
        for key in alone:
            entity = _entity(key)
            groups.setdefault(key if entity is None or entity in of_both else entity, []).append(key)
        several = {key.api for key in other}
        several |= {api for api, keys in Counter(key.api for key in mine).items() if keys > 1}
        for keys in groups.values():
            first = min(keys, key=_rank)
            yield first, _difference(side, first, mine, keys, several, names)


def _with_news(key: MatchingKey) -> MatchingKey:
    """Return the key of heartbeats that are told of a rebalance: a side has heartbeats if all of them are."""
    return key._replace(step=ErrorCode.REBALANCE_IN_PROGRESS.name) if key.api == "Heartbeat" else key


def _entity(key: MatchingKey) -> EntityName | None:
    """Return the transaction or group that a key is for."""
    return next((each for each in key.subject if isinstance(each, EntityName)), None)


def _rank(key: MatchingKey) -> tuple[int, bool]:
    """Return the rank of a key among those of a transaction or group: one with an error stands for no others."""
    return BEGINNINGS.index(key.api) if key.api in BEGINNINGS else len(BEGINNINGS), bool(key.step)


def _difference(
    side: int, key: MatchingKey, mine: Keys, keys: list[MatchingKey], several: set[str], names: NameMatching
) -> KeyDifference:
    """Return the difference of one key; `keys` are those that it stands for, `several` APIs with more subjects.

    Requests of its API that were refused for another step (MEMBER_ID_REQUIRED) are counted with it.
    """
    counts: list[int] = [0, 0]
    rows: list[int | None] = [None, None]
    same = [mine[each].rows for each in keys if each.api == key.api]
    counts[side], rows[side] = sum(map(len, same)), min(each[0] for each in same)
    subject = describe_key(names.own_key(side, key)) if key.api in several or len(keys) > 1 else ""
    others = sorted({each.api for each in keys} - {key.api})
    explanation = f"{FOLLOWED_BY}requests of {', '.join(others)}" if others else ""
    return KeyDifference("", (), DiffReason.ONE_SIDE, f"{counts[0]:,}", f"{counts[1]:,}", counts[0], counts[1],
                         explanation, rows[0], rows[1], subject)  # fmt: skip
