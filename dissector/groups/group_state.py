"""What is known of a group while its events are folded: members, generations, and why each began.

Both protocols (`classic_protocol.py`, `epoch_protocol.py`) change it through the methods here.

Invariants:
  * a first join that is answered with MEMBER_ID_REQUIRED is a step of the protocol and begins nothing;
  * what happened before a generation was complete belongs to it, although rows come in the order of requests; but a
    broker reads a connection's requests one at a time, so a LeaveGroup behind a JoinGroup that waits comes after it;
  * state is bounded: `MAX_MEMBERS`, `MAX_CHANGES`, and the generations that are to be kept.
"""

from bisect import bisect_right
from collections.abc import Set
from typing import Final

from dissector.core.text import rough_duration
from dissector.core.times import MILLISECOND, SECOND
from dissector.groups.causes import ARRIVALS, DEPARTURES, CauseKind
from dissector.groups.deciding import NEARLY, Closed, Decisions
from dissector.groups.group_event import NOWHERE, GroupEvent
from dissector.groups.member import Member, Roster
from dissector.groups.rebalance import (
    MAX_CHANGES,
    HeardRebalance,
    MemberChange,
    Rebalance,
    Trigger,
    keep,
    keep_id,
    keep_time,
)  # fmt: skip
from dissector.groups.tally import CauseTally, Recurrences
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.errors import error_name

STEPS: Final = frozenset((
    ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE,
))  # fmt: skip
"""Errors that say nothing of the group."""
REMOVED: Final = frozenset((ErrorCode.UNKNOWN_MEMBER_ID,))
FENCED: Final = frozenset((ErrorCode.FENCED_INSTANCE_ID, ErrorCode.FENCED_MEMBER_EPOCH))

_OTHER_CAUSES: Final = frozenset(CauseKind) - DEPARTURES - ARRIVALS - {CauseKind.REVOKED, CauseKind.REPLACED}


class GroupState:
    """The state of one group."""

    def __init__(self, most: int, shared: Set[str], closed: Closed, *, hears_all: bool) -> None:
        self.kind = "classic"
        self.tally = CauseTally()
        self.recurring = Recurrences()
        self.roster = Roster(shared)
        self.kept: list[Rebalance] = []
        """The last `most` generations or epochs."""
        self.next = Rebalance(NOWHERE, -1, 0)
        """What belongs to the generation that comes next."""
        self.most = most
        self.closed = closed
        self.node = NOWHERE
        self.late: dict[str, int] = {}
        """Ids of members that may have called poll too late, and the connection of each."""
        self._decisions = Decisions(self.roster, closed, hears_all=hears_all)

    @property
    def is_classic(self) -> bool:
        """Whether the group speaks the classic protocol."""
        return self.kind == "classic"

    def target(self, time_ns: int) -> Rebalance:
        """Return the generation to which belongs what happened before it was complete: rows come in the order of
        requests, and a JoinGroup waits for its response."""
        now = self.kept[-1] if self.kept else None
        return now if now is not None and not now.is_first and time_ns <= now.seen_ns else self.next

    def arrival(self, row: int, event: GroupEvent, member: Member) -> Trigger:
        """Return what a new member id is: a new member, or one that has been here before."""
        before = self.roster.before(member)
        gone = member if member.gone is not None else before
        if self._holder(member) is not None:
            kind, after, details = CauseKind.REPLACED, None, ""
        elif gone is not None and gone.gone is not None:
            self._came_back(gone, event)
            kind, after = CauseKind.RETURNED, gone.gone
            details = f"{rough_duration(max(0, event.time_ns - gone.gone_ns))} after it had gone"
            self.tally.came_back(member.name, gone.gone)
        else:
            kind, after, details = CauseKind.JOINED, None, ""
        if kind is not CauseKind.REPLACED:
            self.recurring.arrived(event.time_ns)
        return Trigger(event.time_ns, kind, member.name, member.member_id, "", row, details=details, after=after)

    def _holder(self, member: Member) -> Member | None:
        """Return the member that has the instance id of a new one."""
        if not member.instance:
            return None
        return self.roster.holder(member.instance, but=member)

    def static_return(self, row: int, event: GroupEvent, member: Member, now: Rebalance) -> None:
        """A static member comes back without a rebalance, or another process takes its instance id."""
        holder = self._holder(member)
        words = "came back with its instance id"
        if holder is not None:
            holder.gone, holder.gone_ns = CauseKind.CLOSED, event.time_ns
            now.previous.discard(holder.member_id)
            words = words if holder.name == member.name else f"took over the instance id of {holder.name}"
        if holder is None or holder.name == member.name:
            self.tally.static_returns += 1
        keep(now.noted, MemberChange(member.name, words, event.time_ns, row))

    def _came_back(self, gone: Member, event: GroupEvent) -> None:
        """A member that left without a reason, and comes back on the same connection, was not closed."""
        is_same = gone.connection == event.connection and not gone.is_sure
        if self.late.pop(gone.member_id, None) is not None and is_same:
            self._restate(gone, CauseKind.POLL_TIMEOUT)
        elif gone.gone is CauseKind.CLOSED and is_same:
            self._restate(gone, CauseKind.UNSUBSCRIBED)

    def _restate(self, gone: Member, kind: CauseKind) -> None:
        """Correct what was said of a departure that had no reason on the wire."""
        for rebalance in (*self.kept[-2:], self.next):
            for at, each in enumerate(rebalance.triggers):
                if each.member_id == gone.member_id and each.kind is gone.gone and not each.reason:
                    rebalance.triggers[at] = each._replace(kind=kind, sure=False)
                    if rebalance.cause is not None:
                        self.tally.take_back(rebalance)
                        rebalance.cause = None
                        self.decide(rebalance)
        gone.gone = kind

    def unexplained(self, member: Member, event: GroupEvent) -> tuple[CauseKind, bool]:
        """Return why a member may have left that gave no reason: it was closed, or poll came too late."""
        allowed = member.rebalance_ms * MILLISECOND
        closed_ns = self.closed(event.connection)
        soon = closed_ns and closed_ns - event.time_ns < SECOND
        if (
            member.rebalance_ms <= 0
            or not member.active_ns
            or event.time_ns - member.active_ns < NEARLY * allowed
            or soon
        ):
            return CauseKind.CLOSED, False
        if len(self.late) < MAX_CHANGES:
            self.late[member.member_id] = event.connection
        return CauseKind.LEFT, False

    def gone(self, row: int, event: GroupEvent, member: Member, kind: CauseKind, reason: str, *, sure: bool) -> None:
        if member.gone is not None:
            return
        left_ns, details = event.time_ns, ""
        if event.connection == member.connection and left_ns < member.joined_ns:
            left_ns = member.joined_ns
            details = f"its LeaveGroup waited {rough_duration(left_ns - event.time_ns)} behind its JoinGroup"
        elif kind in (CauseKind.POLL_TIMEOUT, CauseKind.LEFT):
            details = _limit(member)
        member.gone, member.gone_ns, member.is_sure = kind, left_ns, sure
        target = self.next if left_ns > event.time_ns else self.target(event.done_ns or left_ns)
        keep(target.triggers, Trigger(left_ns, kind, member.name, member.member_id, reason, row, sure, details))
        keep_id(target.departed, member.member_id)
        target.previous.discard(member.member_id)
        keep_time(target.idle, member.name, left_ns)
        keep(target.left, MemberChange(member.name, reason, left_ns, row))
        self.went(member, left_ns)

    def went(self, member: Member, time_ns: int) -> None:
        """A member has gone, by itself or not."""
        if member.gone is not CauseKind.ADMIN:
            self.recurring.allow(member.rebalance_ms * MILLISECOND)
            self.recurring.went(member.name, time_ns, time_ns - member.joined_ns if member.joined_ns else -1)

    def not_a_member(self, row: int, event: GroupEvent, member: Member, heard_ns: int) -> None:
        """A member hears that it is none: it was removed, unless it left."""
        if member.gone is not None or event.said.error == ErrorCode.ILLEGAL_GENERATION:
            return
        found = self._without(member, heard_ns)
        target = found or self.next
        keep_id(target.confirmed, member.member_id)
        kind, sure, details = self._decisions.removal(member, heard_ns, event.time_ns)
        words = f"got {error_name(event.said.error)}"
        keep(target.noted, MemberChange(member.name, words, event.time_ns, row))
        member.gone, member.gone_ns = kind, heard_ns or event.time_ns
        self.went(member, event.time_ns)
        if found is None:
            trigger = Trigger(event.time_ns, kind, member.name, member.member_id, "", row, sure, details)
            keep(self.next.triggers, trigger)
            if member.name not in self.next.idle:
                keep_time(self.next.idle, member.name, heard_ns or event.time_ns)
        else:
            self.tally.take_back(found)
            found.cause = None
            self.decide(found)

    def _without(self, member: Member, heard_ns: int) -> Rebalance | None:
        """Return the generation that began without a member."""
        if self.is_classic:
            first = bisect_right(self.kept, member.generation, key=lambda each: each.number)
        else:
            first = bisect_right(self.kept, heard_ns, key=lambda each: each.seen_ns)
        for at in range(first, len(self.kept)):
            each = self.kept[at]
            is_later = each.number > member.generation if each.unit == "generation" else each.seen_ns > heard_ns > 0
            if is_later and not each.is_first and member.member_id not in each.stops:
                return each
        return None

    def refused(self, row: int, event: GroupEvent, member: Member) -> None:
        code = event.said.error
        if code in REMOVED:
            before = member.heard_ns
            self.not_a_member(row, event, member, before)
            return
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            member.must_rejoin = True
            return
        if code in FENCED:
            words = f"was fenced: {error_name(code)}"
            self.tally.refused(member.name, code)
        elif code == ErrorCode.NOT_COORDINATOR:
            words = "got NOT_COORDINATOR: another broker is the coordinator"
        else:
            words = f"was refused: {error_name(code)}"
            self.tally.refused(member.name, code)
        notes = (self.kept[-1] if self.kept else self.next).noted
        if not notes or (notes[-1].member, notes[-1].words) != (member.name, words):
            keep(notes, MemberChange(member.name, words, event.time_ns, row))

    def coordinator(self, row: int, event: GroupEvent) -> None:
        node = event.said.node
        if node < 0 or event.said.error:
            return
        if self.node not in (NOWHERE, node):
            words = f"moved from node {self.node} to node {node}"
            keep(
                (self.kept[-1] if self.kept else self.next).noted,
                MemberChange("the coordinator", words, event.time_ns, row),
            )
        self.node = node

    def begin(self, number: int, row: int, time_ns: int) -> Rebalance | None:
        """Begin a generation or epoch if its number is new; return it then."""
        last = self.kept[-1] if self.kept else None
        if number < 0 or (last is not None and number <= last.number):
            return None
        if last is not None:
            self.decide(last)
            if last.cause is not None and last.cause.kind in _OTHER_CAUSES:
                self.recurring.began((last.cause.kind, last.cause.member), last.seen_ns)
        now, self.next = self.next, Rebalance(NOWHERE, -1, 0)
        now.number, now.row, now.seen_ns = number, row, time_ns
        now.unit = "generation" if self.kind == "classic" else "epoch"
        now.is_first = last is None
        now.missed = number - last.number - 1 if last is not None else 0
        if last is not None:
            before = last.previous if len(last.previous) <= MAX_CHANGES else set()
            now.previous = (last.listed or before | set(last.stops)) - last.departed - now.departed
            now.previous.update(self.roster.placed(last.number))
            now.previous -= now.departed
            last.previous = last.previous if len(self.kept) < 2 else set()
        if self.kind == "classic" and now.missed == 1 and not now.previous:
            now.missed = 0  # an empty group is a generation, too
        self.kept.append(now)
        self.tally.began(now)
        if len(self.kept) > self.most:
            self.kept.pop(0)
        return now

    def decide(self, now: Rebalance) -> None:
        """Decide why a generation or epoch began."""
        if now.cause is not None:
            self.tally.take_back(now)
        removals = self._decisions.removals(now)
        now.removals = [each.cause for each in removals]
        now.removed = []
        for member, cause, heard_ns in removals:
            words = cause.words.removeprefix(f"{member.name} ")
            keep(now.removed, MemberChange(member.name, words, heard_ns or now.start_ns, now.row))
            if heard_ns and member.name not in now.idle:
                keep_time(now.idle, member.name, heard_ns)
            if member.gone is None:
                member.gone, member.gone_ns = cause.kind, heard_ns
                self.went(member, now.seen_ns)
        now.cause = self._decisions.cause(now)
        self.tally.decided(now)

    def hears(self, member: Member, event: GroupEvent) -> None:
        """A member hears that the group rebalances."""
        now, heard_ns = self.kept[-1] if self.kept else None, event.done_ns or event.time_ns
        target = now if now is not None and event.said.generation == now.number - 1 else self.next
        if len(target.heard) < MAX_CHANGES and member.name not in target.heard:
            stop = target.stops.get(member.member_id)
            rejoined_ns = stop.joins_ns if stop is not None and stop.joins_ns >= heard_ns else 0
            target.heard[member.name] = HeardRebalance(member.name, heard_ns, rejoined_ns)


def _limit(member: Member) -> str:
    if member.rebalance_ms <= 0:
        return ""
    return f"max.poll.interval.ms is {rough_duration(member.rebalance_ms * MILLISECOND)}"
