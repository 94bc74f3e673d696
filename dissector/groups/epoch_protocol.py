"""The newer protocols of groups: heartbeats with epochs (KIP-848, 932, 1071)."""

from dissector.groups.causes import ARRIVALS, CauseKind
from dissector.groups.group_event import NOWHERE, GroupEvent
from dissector.groups.group_state import REMOVED, STEPS, GroupState
from dissector.groups.member import Member
from dissector.groups.rebalance import MAX_CHANGES, MemberChange, Trigger, keep
from dissector.protocol.schema.field_enums import GroupMemberEpoch


class EpochProtocol:
    """Folds the heartbeats of a group with epochs."""

    def __init__(self, state: GroupState) -> None:
        self._state = state

    def heartbeat(self, row: int, event: GroupEvent) -> None:
        said = event.said
        if not said.member:
            return
        before = self._state.roster.get(said.member)
        heard_ns = before.heard_ns if before is not None else 0
        member = self._state.roster.of_event(event, said.member, said.instance)
        if said.error:
            if said.error in REMOVED:
                self._state.not_a_member(row, event, member, heard_ns)
            elif said.error not in STEPS:
                self._state.refused(row, event, member)
            return
        if said.generation == GroupMemberEpoch.LEAVE_GROUP:
            kind, sure = self._state.unexplained(member, event)
            self._state.gone(row, event, member, kind, "", sure=sure)
        elif said.generation == GroupMemberEpoch.LEAVE_GROUP_STATIC:
            member.is_away, member.gone_ns = True, event.time_ns
            keep(
                self._state.next.noted,
                MemberChange(member.name, "left temporarily; its instance id remains", event.time_ns, row),
            )
        elif said.now != NOWHERE:
            self._goes_on(row, event, member)

    def _goes_on(self, row: int, event: GroupEvent, member: Member) -> None:
        """A member joins, goes on, or learns a new epoch."""
        said = event.said
        trigger = None
        if said.generation == GroupMemberEpoch.JOIN_GROUP:
            trigger = self._joins(row, event, member)
        elif said.topics_key and member.topics_key and said.topics_key != member.topics_key:
            details = f"now {', '.join(said.topics)}"
            trigger = Trigger(
                event.time_ns, CauseKind.SUBSCRIPTION, member.name, member.member_id, "", row, True, details
            )
        if trigger is not None:
            keep(self._state.next.triggers, trigger)
            if trigger.kind in ARRIVALS:
                keep(self._state.next.joined, MemberChange(member.name, trigger.words, event.time_ns, row))
        self._state.begin(said.now, row, event.done_ns)
        now = self._state.kept[-1]
        if said.now == now.number and len(now.reached) < MAX_CHANGES:
            now.reached.setdefault(member.name, event.done_ns)
        if said.generation == GroupMemberEpoch.JOIN_GROUP or not member.joined_ns:
            member.joined_ns = member.active_ns = event.done_ns
            self._state.roster.settle(member)
        self._state.roster.place(member, said.now)
        member.gone, member.is_away = None, False
        member.topics_key = said.topics_key or member.topics_key
        member.beat_ms = said.beat_ms if said.beat_ms > 0 else member.beat_ms
        if said.rebalance_ms > 0:
            member.rebalance_ms = said.rebalance_ms

    def _joins(self, row: int, event: GroupEvent, member: Member) -> Trigger | None:
        """Return what a member with epoch 0 begins: nothing if it comes back to its instance id, or to its own
        epoch."""
        before = self._state.roster.before(member)
        if _is_still_in(member, event.said.now, event.said.topics_key):
            keep(self._state.next.noted, MemberChange(member.name, "joined without a new epoch", event.time_ns, row))
            return None
        is_static = event.said.instance and before is not None and before.is_away
        if is_static or member.is_away:
            keep(
                self._state.next.noted, MemberChange(member.name, "came back with its instance id", event.time_ns, row)
            )
            if before is not None:
                before.gone = CauseKind.CLOSED
            return None
        return self._state.arrival(row, event, member)


def _is_still_in(member: Member, now: int, topics_key: int) -> bool:
    """Return whether the coordinator has a member that joins, with what it subscribes to: it was fenced, or lost a
    response, and no new assignment is computed for it. `now` is the epoch that it got."""
    is_in = bool(member.joined_ns) and member.gone is None and not member.is_away
    return is_in and member.generation == now and topics_key in (0, member.topics_key)
