"""The members of a group, as far as a capture shows them.

A member has a new id each time it joins. Its name is that of what the user runs: the client id, with the host or a
number where several members share it; so a member that comes back has the name it had.
"""

import re
from collections import deque
from collections.abc import Set
from dataclasses import dataclass
from typing import Final

from dissector.groups.causes import CauseKind
from dissector.groups.group_event import NOWHERE, GroupEvent

MAX_MEMBERS: Final = 10_000
"""Members of a group that are known; the least recently added are forgotten."""
MOST_NUMBERED: Final = 100
"""Members of one client id and host that have a number each; further ones are called by their ids."""
_PLACED: Final = 4
"""Generations of which it is kept who belongs to them."""
_HOLDERS: Final = 4
"""Members with the same instance id, one after the other, that can be found by it."""
_UUID: Final = re.compile(r"-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")
_NO_NAME: Final = "(no client id)"


@dataclass(slots=True)
class Member:
    """One member id."""

    member_id: str
    name: str
    is_seen: bool
    """Whether exchanges of its own are in the capture; otherwise a leader has it in its list."""
    client_id: str = ""
    host: str = ""
    instance: str = ""
    connection: int = -1
    generation: int = NOWHERE
    joined_ns: int = 0
    active_ns: int = 0
    """When its application was last seen at work: it joined, or committed."""
    heard_ns: int = 0
    """When its last exchange began."""
    session_ms: int = NOWHERE
    rebalance_ms: int = NOWHERE
    beat_ms: int = NOWHERE
    topics_key: int = 0
    config_offset: int = NOWHERE
    must_rejoin: bool = False
    """Whether it heard REBALANCE_IN_PROGRESS since it joined."""
    gone: CauseKind | None = None
    gone_ns: int = 0
    is_sure: bool = True
    """Whether the reason why it has gone is on the wire."""
    is_away: bool = False
    """Whether it left for a while and its instance id stays (KIP-848)."""


class Roster:
    """All members of a group."""

    def __init__(self, shared: Set[str] = frozenset()) -> None:
        """`shared` are client ids that clients on several hosts have, if that is known."""
        self._shared = shared
        self._members: dict[str, Member] = {}
        self._last: dict[tuple[str, str, str], Member] = {}
        """By client id, host and name: the last member with the name."""
        self._hosts: dict[str, dict[str, int]] = {}
        """By client id, how many entries of `_last` each host has."""
        self._holders: dict[str, deque[Member]] = {}
        """By instance id, the last members that had it."""
        self._placed: dict[int, dict[str, Member]] = {}
        """By generation, the members that belong to it or did."""

    def __len__(self) -> int:
        return len(self._members)

    def get(self, member_id: str) -> Member | None:
        """Return the member with an id, if it is known."""
        return self._members.get(member_id)

    def names(self) -> list[str]:
        """Return the names of members that joined, in the order in which they were first seen."""
        return list(
            dict.fromkeys(each.name for each in self._members.values() if each.joined_ns or each.generation >= 0)
        )

    def by_id(self) -> dict[str, str]:
        """Return the names of all members, by id."""
        return {each.member_id: each.name for each in self._members.values()}

    def holder(self, instance: str, but: Member | None = None) -> Member | None:
        """Return the last member with an instance id that has not gone, and is not `but`."""
        found = reversed(self._holders.get(instance, ()))
        return next((each for each in found if each.gone is None and each is not but), None)

    def place(self, member: Member, generation: int) -> None:
        """Note that a member belongs to a generation or epoch."""
        member.generation = generation
        self._placed.setdefault(generation, {})[member.member_id] = member
        if len(self._placed) > _PLACED:
            self._placed.pop(next(iter(self._placed)))

    def placed(self, generation: int) -> list[str]:
        """Return the ids of members that belong to a generation, and have joined and not gone."""
        found = self._placed.get(generation, {}).values()
        return [
            each.member_id for each in found if each.generation == generation and each.gone is None and each.joined_ns
        ]

    def live(self) -> list[Member]:
        """Return members that have joined and not gone."""
        return [each for each in self._members.values() if each.gone is None and each.joined_ns]

    def of_event(self, event: GroupEvent, member_id: str, instance: str) -> Member:
        """Return the member that sent an exchange."""
        known = self._members.get(member_id)
        if known is None or not known.is_seen:
            name = self._name(event.client_id or _NO_NAME, event.host, instance, member_id)
            before = known
            known = Member(member_id, name, is_seen=True, client_id=event.client_id, host=event.host)
            if before is not None:
                known.joined_ns = before.joined_ns
                self.place(known, before.generation)
            self._add(known)
        known.connection = event.connection
        if instance and instance != known.instance:
            known.instance = instance
            self._hold(known)
        known.heard_ns = max(known.heard_ns, event.time_ns)
        return known

    def of_list(self, member_id: str, instance: str) -> Member:
        """Return a member in the list of a leader."""
        known = self._members.get(member_id)
        if known is None:
            known = Member(
                member_id, _UUID.sub("", member_id) or instance or _NO_NAME, is_seen=False, instance=instance
            )
            self._add(known)
            self._hold(known)
        return known

    def before(self, member: Member) -> Member | None:
        """Return the member that had the same name before, under another id or in an earlier life."""
        key = member.client_id, member.host, member.name
        found = self._last.get(key)
        return found if found is not member else None

    def settle(self, member: Member) -> None:
        """Keep a member as the last one with its name."""
        key = member.client_id, member.host, member.name
        if key not in self._last:
            hosts = self._hosts.setdefault(member.client_id, {})
            hosts[member.host] = hosts.get(member.host, 0) + 1
        self._last[key] = member
        if len(self._last) > MAX_MEMBERS:
            client_id, host, _ = oldest = next(iter(self._last))
            del self._last[oldest]
            hosts = self._hosts[client_id]
            hosts[host] -= 1
            if not hosts[host]:
                del hosts[host]
            if not hosts:
                del self._hosts[client_id]

    def _hold(self, member: Member) -> None:
        if not member.instance:
            return
        self._holders.setdefault(member.instance, deque(maxlen=_HOLDERS)).append(member)
        if len(self._holders) > MAX_MEMBERS:
            self._holders.pop(next(iter(self._holders)))

    def _add(self, member: Member) -> None:
        self._members.pop(member.member_id, None)
        self._members[member.member_id] = member
        if len(self._members) > MAX_MEMBERS:
            self._members.pop(next(iter(self._members)))

    def _name(self, client_id: str, host: str, instance: str, member_id: str) -> str:
        """Return a name that no other member has now; that of a member which has gone is free again."""
        base = f"{client_id} at {host}" if client_id in self._shared and host else client_id
        if instance and client_id in self._shared:
            base = f"{client_id} ({instance})"
        elif len(hosts := self._hosts.get(client_id, {})) > (host in hosts):
            base = f"{client_id} at {host}"
        number = 1
        name = base
        while (last := self._last.get((client_id, host, name))) is not None and _is_other(last, instance):
            number += 1
            if number > MOST_NUMBERED:
                return member_id
            name = f"{base} #{number}"
        return name


def _is_other(last: Member, instance: str) -> bool:
    """Whether the last member with a name is still there, so that another one needs another name."""
    if instance and last.instance == instance:
        return False
    return last.gone is None and not last.is_away and bool(last.joined_ns)
