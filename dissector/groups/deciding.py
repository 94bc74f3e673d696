"""Why a generation or epoch began, decided from all that is known of it: law 10 of the project is kept here.

A cause is stated only if what contradicts it was not seen. A member was removed only if it did not leave; for silence
only if it was silent; for a late rejoin only if the rebalance took as long as it may; by a crash only if its connection
had closed before. What one host does not show is said to be elsewhere.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from dissector.core.text import rough_duration
from dissector.core.times import MILLISECOND
from dissector.groups.causes import OTHER_MEMBER, CauseKind, RebalanceCause
from dissector.groups.member import Member, Roster
from dissector.groups.rebalance import Rebalance

NEARLY: Final = 0.9
"""Of a time limit: clients and brokers measure from another moment than the capture shows."""
MISSED_BEATS: Final = 2.2
"""Heartbeats that a silent member has missed; one may be late."""
Closed = Callable[[int], int]
"""When a connection was closed; 0 if that is not in the capture."""
_EXPLAINED: Final = frozenset((CauseKind.CLOSED, CauseKind.LEFT, CauseKind.POLL_TIMEOUT, CauseKind.ADMIN))


class MemberRemoval(NamedTuple):
    """A member that is none any more, and has not left."""

    member: Member
    cause: RebalanceCause
    heard_ns: int
    """When it was last heard."""


class Decisions:
    """Decides for one group."""

    def __init__(self, roster: Roster, closed: Closed, *, hears_all: bool) -> None:
        self.roster = roster
        self.closed = closed
        self.hears_all = hears_all

    def removal(self, member: Member, heard_ns: int, seen_ns: int) -> tuple[CauseKind, bool, str]:
        """Return why a member is none any more that did not leave: kind, whether that is sure, and what shows it."""
        if not member.is_seen:
            return CauseKind.GONE, False, ""
        closed_ns = self.closed(member.connection)
        limit = (
            f"session.timeout.ms is {rough_duration(member.session_ms * MILLISECOND)}" if member.session_ms > 0 else ""
        )
        if closed_ns and heard_ns <= closed_ns <= seen_ns:
            since = f"its connection closed {rough_duration(seen_ns - closed_ns)} before"
            return (
                CauseKind.STATIC_AWAY if member.instance else CauseKind.CRASH,
                True,
                ", ".join(filter(None, (since, limit))),
            )
        if not self.hears_all:
            return CauseKind.SESSION_TIMEOUT, False, limit
        silent = max(0, seen_ns - heard_ns) if heard_ns else 0
        allowed = max(member.session_ms * MILLISECOND * (1 - NEARLY), MISSED_BEATS * member.beat_ms * MILLISECOND, 0)
        if heard_ns and silent < allowed:
            return CauseKind.DROPPED, False, f"its last heartbeat came only {rough_duration(silent)} before"
        since = f"its last heartbeat came {rough_duration(silent)} before" if heard_ns else ""
        return CauseKind.SESSION_TIMEOUT, True, ", ".join(filter(None, (since, limit)))

    def removals(self, now: Rebalance) -> list[MemberRemoval]:
        """Return the members that are none any more without having left."""
        if now.is_first:
            return []
        gone = set(now.confirmed)
        if now.listed:
            gone |= now.previous - now.listed - now.departed - set(now.stops)
        elif self.hears_all and now.unit == "epoch" and not any(each.time_ns <= now.seen_ns for each in now.triggers):
            gone |= self._silent(now)
        found = []
        for each in sorted(gone):
            member = self.roster.get(each)
            if member is None or (member.instance and member.instance in now.listed_instances):
                continue
            heard_ns = member.gone_ns if member.gone is not None and member.gone_ns else member.heard_ns
            if member.gone in _EXPLAINED:
                continue
            kind, sure, details = self.removal(member, heard_ns, now.heard_ns or now.start_ns)
            took = now.done_ns - now.start_ns
            if now.triggers and now.rebalance_ms > 0 and took >= NEARLY * now.rebalance_ms * MILLISECOND:
                kind, sure = CauseKind.REBALANCE_TIMEOUT, True
                details = f"the others waited {rough_duration(took)}"
            found.append(MemberRemoval(member, RebalanceCause(kind, member.name, "", sure, details), heard_ns))
        return found

    def _silent(self, now: Rebalance) -> set[str]:
        """Return ids of members without a heartbeat for longer than usual when an epoch began."""
        return {
            each.member_id for each in self.roster.live()
            if each.is_seen and each.beat_ms > 0 and not each.is_away
            and now.seen_ns - each.heard_ns > MISSED_BEATS * each.beat_ms * MILLISECOND
        }  # fmt: skip

    def cause(self, now: Rebalance) -> RebalanceCause | None:
        """Return why a generation or epoch began: what came first, of all that may begin one."""
        if now.is_first and not now.triggers:
            return None
        removals = now.removals
        heard_ns = now.heard_ns or now.seen_ns
        triggers = sorted(now.triggers, key=lambda each: each.time_ns)
        early = [each for each in triggers if each.time_ns <= heard_ns]
        if early:
            return early[0].cause
        if removals:
            timely = [each for each in removals if each.kind is not CauseKind.REBALANCE_TIMEOUT]
            return (timely or removals)[0]
        if triggers:
            return triggers[0].cause
        strangers = sorted(now.listed - now.previous - set(now.stops))
        if now.listed and strangers:
            names = ", ".join(self.roster.of_list(each, "").name for each in strangers[:3])
            return RebalanceCause(CauseKind.JOINED, names, "", True, "its own exchanges are not in this capture")
        kind = CauseKind.UNSEEN if now.unit == "generation" else CauseKind.UNSEEN_EPOCH
        return RebalanceCause(kind, OTHER_MEMBER, "", False)
