"""Compare how many connections in each role both sides have.

A client that needs a connection while those that it has are busy, or not yet ready, opens one more, where it could have
used one of them a moment later or sooner: one connection more is then chance. Connections of a pool are used for one
role each; metadata is asked for on any connection of a client. With several brokers it is chance whether the one that
is asked leads a partition, too; and a leader that moves takes its clients along.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np

from dissector.analysis.diff.connection_roles import BOOTSTRAP, PRODUCER_ID, part_of
from dissector.analysis.diff.kept_numbers import as_column
from dissector.analysis.diff.matching_keys import MatchingKey
from dissector.analysis.diff.moved_leaders import moved_leaders
from dissector.analysis.diff.result import DiffEntry, DiffReason
from dissector.analysis.diff.side import DiffSide
from dissector.analysis.diff.side_profile import SideProfile
from dissector.core.arrays import Int64

TO_ANY: Final = frozenset((BOOTSTRAP, PRODUCER_ID))
"""Roles of connections for what any broker answers."""
TO_LEADERS: Final = frozenset(("fetch", "produce"))
MOST_LOOKED_AT: Final = 64
"""Connections of a role, or for a bootstrap connection of all: of more, one is no matter."""


def compare_connections(
    a: SideProfile, b: SideProfile, left_out: Sequence[Collection[MatchingKey]] = ((), ()), *, is_one_client: bool
) -> Iterator[DiffEntry]:
    """Compare the numbers of connections by role, without those that were closed before a response came: a client that
    tries again has one for each attempt. Other clients may always open one more. `left_out` are keys of each side whose
    requests make no role."""
    sides = (a, b)
    lost = [side.lost_connections for side in sides]
    numbers = [
        side.roles.by_role(each, _only_for(keys, side)) for side, each, keys in zip(sides, lost, left_out, strict=True)
    ]
    counts = [Counter({role: len(each) for role, each in of_side.items()}) for of_side in numbers]
    totals = [side.total() for side in counts]
    if counts[0] == counts[1] or (totals[0] == totals[1] and any(lost)):
        return
    differing = sorted(role for role in counts[0] | counts[1] if counts[0][role] != counts[1][role])
    if is_one_client:
        to_any = TO_ANY if _are_to_any_broker(sides, numbers) else frozenset[str]()
        if all(role in to_any or _is_chance(sides, [each.get(role) for each in numbers], role) for role in differing):
            return
    listed = [", ".join(f"{side[role]} {role}" for role in differing if side[role]) for side in counts]
    none = f"no {' or '.join(differing)}"
    texts = [f"{total} with {roles or none}" for total, roles in zip(totals, listed, strict=True)]
    yield DiffEntry("", "", "connections", DiffReason.COUNT, texts[0], texts[1], totals[0], totals[1])


def _only_for(keys: Collection[MatchingKey], side: SideProfile) -> Iterator[tuple[int, str]]:
    """Yield what connections carry only with the requests of some keys."""
    for part in {part_of(key.api) for key in keys}:
        of_keys, of_others = set[int](), set[int]()
        for key, profile in side.keys.items():
            if part_of(key.api) == part:
                connections = side.side.numbers(as_column(profile.rows)).connection.tolist()
                (of_keys if key in keys else of_others).update(connections)
        yield from ((connection, part) for connection in of_keys - of_others)


def _is_chance(sides: tuple[SideProfile, SideProfile], numbers: list[Int64 | None], role: str) -> bool:
    """Return whether one side has a connection more in a role than the other: one that was opened in need, or, where a
    leader has moved on that side alone, to the new one."""
    of_a, of_b = numbers
    if of_a is None or of_b is None or abs(len(of_a) - len(of_b)) != 1:
        return False
    more, side, other = (of_a, *sides) if len(of_a) > len(of_b) else (of_b, *sides[::-1])
    if role in TO_LEADERS and moved_leaders(side.keys) and not moved_leaders(other.keys):
        return True
    others = np.array(side.roles.numbers, np.int64) if role == BOOTSTRAP else more
    return len(others) <= MOST_LOOKED_AT and _has_one_in_need(side, more, others)


def _are_to_any_broker(sides: tuple[SideProfile, SideProfile], numbers: list[dict[str, Int64]]) -> bool:
    """Return whether the connections for what any broker answers are so few more as one side has more brokers than it
    needs: a client asks one of them, and has a connection to it already, or not."""
    counts = [sum(len(of_side.get(role, ())) for role in TO_ANY) for of_side in numbers]
    more = sides[0] if counts[0] > counts[1] else sides[1]
    return abs(counts[0] - counts[1]) < len(more.names.get("broker", ()))


def _has_one_in_need(side: SideProfile, numbers: Int64, others: Int64) -> bool:
    """Return whether one of some connections was opened while its client had others, none of which was idle."""
    lives = side.side.ask(partial(_lives, connections=others))
    return any(_is_in_need(lives[each], [life for other, life in lives.items() if other != each])
               for each in numbers.tolist())  # fmt: skip


class _Life:
    """When a connection was opened, waited for responses, and was closed, in nanoseconds."""

    def __init__(self, begin_ns: int, end_ns: int | None) -> None:
        self.begin_ns = begin_ns
        self._end_ns = end_ns
        self.client_id = 0
        self.waits_ns: list[tuple[int, int]] = []
        """From each request to its response."""

    def is_open(self, time_ns: int) -> bool:
        """Return whether it was open, or being opened."""
        return self.begin_ns < time_ns and (self._end_ns is None or time_ns < self._end_ns)

    def is_idle(self, time_ns: int) -> bool:
        """Return whether it had answered before, and waited for no response."""
        is_ready = any(response_ns <= time_ns for _, response_ns in self.waits_ns)
        return is_ready and not any(request_ns <= time_ns < response_ns for request_ns, response_ns in self.waits_ns)


def _is_in_need(life: _Life, others: list[_Life]) -> bool:
    there = [each for each in others if each.client_id == life.client_id and each.is_open(life.begin_ns)]
    return bool(there) and not any(each.is_idle(life.begin_ns) for each in there)


def _lives(side: DiffSide, connections: Int64) -> dict[int, _Life]:
    index = side.capture.connections
    ends = [(index.first_time_ns(each), index.closed(each)) for each in connections.tolist()]
    lives = {each: _Life(begin_ns or 0, closed[0] if closed else None)
             for each, (begin_ns, closed) in zip(connections.tolist(), ends, strict=True)}  # fmt: skip
    for rows in side.rows():
        found = side.numbers(rows)
        found = found.where(np.isin(found.connection, connections) & found.has_latency)
        columns = (found.connection, found.client_id, found.request_time_ns, found.latency_ns)
        for number, client_id, time_ns, latency_ns in zip(*(each.tolist() for each in columns), strict=True):
            lives[number].client_id = client_id
            lives[number].waits_ns.append((time_ns, time_ns + latency_ns))
    return lives
