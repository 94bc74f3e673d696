"""The classic protocol of groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup (KIP-62, 345, 394, 429, 800)."""

from typing import Final

from dissector.groups.causes import CauseKind, is_follower, join_kind, leave_kind
from dissector.groups.group_event import NOWHERE, Departure, GroupEvent
from dissector.groups.group_state import REMOVED, STEPS, GroupState
from dissector.groups.member import Member
from dissector.groups.rebalance import MAX_CHANGES, MemberChange, Rebalance, Stop, Trigger, keep
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode

_COOPERATIVE: Final = ("cooperative", "stream", "compatible", "sessioned")
"""Parts of the names of assignors with which members keep partitions while they join; workers of Connect keep their
tasks with the last two (KIP-415, KIP-507)."""


class ClassicProtocol:
    """Folds the exchanges of a classic group."""

    def __init__(self, state: GroupState) -> None:
        self._state = state

    def join(self, row: int, event: GroupEvent) -> None:
        """A member joins, or joins again."""
        said = event.said
        if said.error in STEPS or not event.done_ns:
            return
        member = self._state.roster.of_event(event, said.member, said.instance)
        if said.error:
            self._state.refused(row, event, member)
            return
        is_new = self._state.begin(said.now, row, event.done_ns) is not None
        now = self._state.kept[-1] if self._state.kept else None
        if now is not None and 0 <= said.now < now.number and event.time_ns > now.seen_ns:
            # What is known of the members of the one is not true of those of the other: it is only noted.
            words = f"got generation {said.now}, after {now.number}: another group of this name, or a new one"
            keep(now.noted, MemberChange(member.name, words, event.time_ns, row))
        if now is None or now.number != said.now or not said.member:
            return
        if is_new or event.time_ns <= now.seen_ns:
            self._takes_part(row, event, member, now)
        else:
            self._takes_over(row, event, member, now)
        if said.leads:
            now.leader, now.leader_id, now.size = member.name, member.member_id, len(said.members)
            now.listed = {each for each, _ in said.members}
            now.listed_instances = {instance for _, instance in said.members if instance}
            for each, instance in said.members:
                self._state.roster.place(self._state.roster.of_list(each, instance), said.now)
        self._state.roster.place(member, said.now)
        member.joined_ns = member.active_ns = event.done_ns
        member.session_ms, member.rebalance_ms = said.session_ms, said.rebalance_ms
        member.config_offset = said.config_offset
        member.topics_key, member.must_rejoin, member.gone, member.is_away = said.topics_key, False, None, False
        self._state.roster.settle(member)

    def _takes_part(self, row: int, event: GroupEvent, member: Member, now: Rebalance) -> None:
        """A member joins a generation while it forms."""
        said = event.said
        known = member.member_id in now.previous and member.gone is None
        trigger = self._rejoin(row, event, member, now) if known else self._state.arrival(row, event, member)
        if trigger is not None:
            keep(now.triggers, trigger)
        if not known and trigger is not None:
            keep(now.joined, MemberChange(member.name, trigger.words, event.time_ns, row))
        heard = now.heard.get(member.name)
        if heard is not None and not heard.rejoined_ns:
            heard.rejoined_ns = event.time_ns
        if len(now.stops) < MAX_CHANGES:
            now.stops[member.member_id] = Stop(member.name, event.time_ns, is_old=known)
        now.rebalance_ms = max(now.rebalance_ms, said.rebalance_ms)
        now.assignor = now.assignor or said.chosen
        now.cooperative |= said.owns or any(part in said.chosen for part in _COOPERATIVE)

    def _takes_over(self, row: int, event: GroupEvent, member: Member, now: Rebalance) -> None:
        """A static member joins a generation that is complete: nobody else notices (KIP-345)."""
        if event.said.instance:
            self._state.static_return(row, event, member, now)

    def _rejoin(self, row: int, event: GroupEvent, member: Member, now: Rebalance) -> Trigger | None:
        """Return what a member that joins again begins; None if it only follows."""
        said, leads = event.said, now is not self._state.kept[0] and self._led(member)
        changed = bool(said.topics_key and member.topics_key and said.topics_key != member.topics_key)
        if is_follower(said.reason):
            return None
        kind, sure = join_kind(said.reason), True
        if changed and kind in (None, CauseKind.REQUESTED):
            kind = CauseKind.SUBSCRIPTION
        elif kind is None:
            if member.must_rejoin:
                return None
            kind, sure = (CauseKind.REVOKED, False) if said.owns else (CauseKind.REJOINED, True)
            if NOWHERE != member.config_offset < said.config_offset:  # a worker of Connect that has read more since
                kind, sure = CauseKind.CONFIG, False
            elif leads and said.topics_key and kind is CauseKind.REJOINED:  # only consumers follow topics
                kind, sure = CauseKind.METADATA, False
        reason = "" if kind is CauseKind.SUBSCRIPTION else said.reason
        details = f"now {', '.join(said.topics)}" if kind is CauseKind.SUBSCRIPTION else ""
        return Trigger(event.time_ns, kind, member.name, member.member_id, reason, row, sure, details)

    def _led(self, member: Member) -> bool:
        """Whether a member led the generation before the last one."""
        return len(self._state.kept) > 1 and self._state.kept[-2].leader_id == member.member_id

    def leave(self, row: int, event: GroupEvent) -> None:
        """Members leave, or are removed by an admin client."""
        if not event.done_ns and not event.said.departures:
            return
        for each in event.said.departures:
            self._depart(row, event, each)

    def _depart(self, row: int, event: GroupEvent, said: Departure) -> None:
        member = self._departing(said)
        if member is None or said.error:
            return
        is_own = member.client_id == event.client_id and member.host == event.host
        kind, sure = leave_kind(said.reason), True
        if not is_own and member.is_seen:
            kind = CauseKind.ADMIN
        elif kind is None:
            kind, sure = self._state.unexplained(member, event)
        self._state.gone(row, event, member, kind, said.reason, sure=sure)

    def _departing(self, said: Departure) -> Member | None:
        """Return the member that a LeaveGroup names, by its id or its instance id."""
        if said.member:
            return self._state.roster.get(said.member) or self._state.roster.of_list(said.member, said.instance)
        if said.instance:
            return self._state.roster.holder(said.instance)
        return None

    def stay(self, row: int, event: GroupEvent) -> None:
        """A Heartbeat, SyncGroup or OffsetCommit."""
        said = event.said
        if event.api == ApiKey.OFFSET_COMMIT and said.generation < 0:
            return  # of a consumer without a group
        before = self._state.roster.get(said.member)
        heard_ns = before.heard_ns if before is not None else 0
        member = self._state.roster.of_event(event, said.member, said.instance)
        if said.error == ErrorCode.REBALANCE_IN_PROGRESS:
            member.must_rejoin = True
            self._state.hears(member, event)
        elif said.error in REMOVED or said.error == ErrorCode.ILLEGAL_GENERATION:
            self._state.not_a_member(row, event, member, heard_ns)
        elif said.error:
            self._state.refused(row, event, member)
        elif event.done_ns and said.generation >= 0:
            self._confirms(row, event, member)

    def _confirms(self, row: int, event: GroupEvent, member: Member) -> None:
        """An exchange without an error shows that a member belongs to a generation."""
        said = event.said
        is_epoch = not self._state.is_classic
        if not is_epoch:
            self._state.begin(said.generation, row, event.time_ns)
        now = self._state.kept[-1] if self._state.kept else None
        if event.api == ApiKey.OFFSET_COMMIT:
            member.active_ns = event.done_ns
        if member.joined_ns == 0:
            member.joined_ns = event.done_ns
            self._state.roster.place(member, said.generation)
            self._state.roster.settle(member)
        if now is None or is_epoch or now.number != said.generation:
            return
        stop = now.stops.get(member.member_id)
        if event.api == ApiKey.SYNC_GROUP and stop is not None:
            stop.synced_ns = stop.synced_ns or event.done_ns
            member.active_ns = event.done_ns
