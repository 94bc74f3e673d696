"""Whether a client commits its offsets as it leaves its group: one that commits by itself does.

Java and kafka-python do whatever was committed before, librdkafka only what it has read since. So a commit that is
missing says something only if there was something to commit, or if the other side commits without that and joins its
group as often: with a rebalance clients commit, too. A program that commits and leaves at once looks the same, and a
commit that comes a while before says nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from dissector.analysis.diff.kept_numbers import as_column
from dissector.analysis.diff.key_differences import KeyDifference
from dissector.analysis.diff.key_profile import KeyProfile
from dissector.analysis.diff.matching_keys import GROUP_PROTOCOLS, MatchingKey
from dissector.analysis.diff.result import DiffReason
from dissector.analysis.diff.side import DiffSide
from dissector.analysis.diff.side_profile import SideProfile
from dissector.core.arrays import Int64

COMMIT: Final = "OffsetCommit"
ON_LEAVING: Final = ("on_leaving",)
LEFT: Final = -1
"""The epoch with which a member leaves for good (KIP-848)."""
AT_ONCE_NS: Final = 100_000_000
"""From the response to a commit to the request to leave, at most."""
BEFORE_NS: Final = 1_000_000_000
"""A commit that is as far from leaving has nothing to do with it."""
RECORD_BYTES: Final = 60
"""A response to Fetch with a batch has as many more than one without."""
Keys = Mapping[MatchingKey, KeyProfile]
FoundLeaving = tuple[MatchingKey, KeyDifference]
MAX_BYTES: Final = 1 << 31
NO_ROWS: Final = np.zeros(0, np.int64)


class Leaving(NamedTuple):
    """How the members of a group leave."""

    commits: bool
    """Right before; else not for a while."""
    has_read: bool
    """Since the commit before that."""
    has_committed: bool
    """Before."""


def compare_leaving(a: SideProfile, b: SideProfile, keys: Sequence[Keys]) -> Iterator[FoundLeaving]:
    """Yield, for each group that both sides leave, whether one side alone commits as it does; `keys` are those of both,
    matched."""
    for key in (key for key in keys[0] if key in keys[1]):
        sides = [leaving(side, each, key) for side, each in zip((a, b), keys, strict=True)]
        found = [each for each in sides if each is not None]
        missing = next((each for each in found if not each.commits), None)
        if len(found) < len(sides) or missing is None or not any(each.commits for each in found):
            continue
        is_alike = not any(each.has_read for each in found) and _has_equal_joins(key, keys)
        if missing.has_read or (missing.has_committed and is_alike):
            counts = [int(each.commits) for each in found]
            rows = [int(_leaves(key, side)[0]) if count else None for side, count in zip(keys, counts, strict=True)]
            yield (
                key._replace(api=COMMIT),
                KeyDifference("", ON_LEAVING, DiffReason.ONE_SIDE, f"{counts[0]}", f"{counts[1]}", counts[0], counts[1],
                              "commits right before the client leaves its group", rows[0], rows[1],
                              setting=f"{COMMIT}.{ON_LEAVING[0]}"),
            )  # fmt: skip


def leaving(profile: SideProfile, keys: Keys, key: MatchingKey) -> Leaving | None:
    """Return how members leave a group with the requests of a key; None if none does, or not all alike."""
    leaves = _leaves(key, keys)
    if not len(leaves):
        return None
    commits = _rows_of(key._replace(api=COMMIT), keys)
    fetches = _rows(each for of, each in keys.items() if of.api == "Fetch")
    found = profile.side.ask(partial(_look, leaves=leaves, commits=commits, fetches=fetches))
    return found[0] if len({*found}) == 1 else None


def _has_equal_joins(key: MatchingKey, keys: Sequence[Keys]) -> bool:
    """Return whether both sides join a group as often: with each rebalance clients commit, too."""
    a, b = (len(_rows_of(key._replace(api="JoinGroup"), side)) for side in keys)
    return a == b


def _leaves(key: MatchingKey, keys: Keys) -> Int64:
    """Return the rows of a key with which members leave a group."""
    rows = as_column(keys[key].rows)
    if key.api == "LeaveGroup":
        return rows
    has_left = LEFT in keys[key].fields.get(("request", ("member_epoch",)), ())
    return rows[-1:] if key.api in GROUP_PROTOCOLS and has_left else NO_ROWS


def _rows_of(key: MatchingKey, keys: Keys) -> Int64:
    """Return the rows of a key, of all its steps."""
    return _rows(each for of, each in keys.items() if of._replace(step="") == key)


def _rows(profiles: Iterable[KeyProfile]) -> Int64:
    rows = [as_column(each.rows) for each in profiles]
    return np.sort(np.concatenate(rows)) if rows else NO_ROWS


def _look(side: DiffSide, leaves: Int64, commits: Int64, fetches: Int64) -> list[Leaving | None]:
    """Return how each of some members leaves, None for one of which it can't be told."""
    left, committed, fetched = (side.capture.index.numbers(each) for each in (leaves, commits, fetches))
    has_records = fetched.response_size > fetched.response_size.min(initial=MAX_BYTES) + RECORD_BYTES
    read_ns = (fetched.request_time_ns + fetched.latency_ns)[has_records]
    found: list[Leaving | None] = []
    for n, (row, connection) in enumerate(zip(leaves.tolist(), left.connection.tolist(), strict=True)):
        before = np.flatnonzero((committed.connection == connection) & (commits < row))
        times_ns = [0, *committed.request_time_ns[before].tolist()]
        answered_ns = times_ns[-1] + int(max(0, committed.latency_ns[before[-1]])) if len(before) else 0
        gap_ns = int(left.request_time_ns[n]) - answered_ns
        commits_at_once = gap_ns <= AT_ONCE_NS
        since_ns = times_ns[-2] if commits_at_once else times_ns[-1]
        is_known = commits_at_once or gap_ns >= BEFORE_NS
        has_read = bool((read_ns > since_ns).any())
        found.append(Leaving(commits_at_once, has_read, len(before) > commits_at_once) if is_known else None)
    return found
