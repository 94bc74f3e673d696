"""The members of a group, as far as a capture shows them.

A member has a new id each time it joins. Its name is that of what the user runs: the client id, with the host or a
number where several members share it; so a member that comes back has the name it had.
"""

import re
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Final

from dissector.groups.causes import CauseKind
from dissector.groups.group_event import NOWHERE, GroupEvent

MAX_MEMBERS: Final = 10_000
"""Members of a group that are known; the least recently added are forgotten."""
_UUID: Final = re.compile(r"-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")
_NO_NAME: Final = "(no client id)"


@dataclass(slots=True)
class Member:
    """One member id."""

    member_id: str
    name: str
    is_seen: bool
    """Whether exchanges of its own are in the capture; otherwise a leader was told of it."""
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
    was_told: bool = False
    """Whether it was told to rejoin since it joined."""
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

    def find(self, is_it: Callable[[Member], bool]) -> Member | None:
        """Return the last member that fits."""
        return next((each for each in reversed(self._members.values()) if is_it(each)), None)

    def live(self) -> list[Member]:
        """Return members that have joined and not gone."""
        return [each for each in self._members.values() if each.gone is None and each.joined_ns]

    def of_event(self, event: GroupEvent, member_id: str, instance: str) -> Member:
        """Return the member that sent an exchange."""
        known = self._members.get(member_id)
        if known is None or not known.is_seen:
            name = self._name(event.client_id or _NO_NAME, event.host, instance)
            before = known
            known = Member(member_id, name, is_seen=True, client_id=event.client_id, host=event.host)
            if before is not None:
                known.generation, known.joined_ns = before.generation, before.joined_ns
            self._add(known)
        known.connection = event.connection
        known.instance = instance or known.instance
        known.heard_ns = max(known.heard_ns, event.time_ns)
        return known

    def of_list(self, member_id: str, instance: str) -> Member:
        """Return a member of which a leader was told."""
        known = self._members.get(member_id)
        if known is None:
            known = Member(
                member_id, _UUID.sub("", member_id) or instance or _NO_NAME, is_seen=False, instance=instance
            )
            self._add(known)
        return known

    def before(self, member: Member) -> Member | None:
        """Return the member that had the same name before, under another id or in an earlier life."""
        key = member.client_id, member.host, member.name
        found = self._last.get(key)
        return found if found is not member else None

    def settle(self, member: Member) -> None:
        """Keep a member as the last one with its name."""
        self._last[member.client_id, member.host, member.name] = member
        if len(self._last) > MAX_MEMBERS:
            self._last.pop(next(iter(self._last)))

    def _add(self, member: Member) -> None:
        self._members.pop(member.member_id, None)
        self._members[member.member_id] = member
        if len(self._members) > MAX_MEMBERS:
            self._members.pop(next(iter(self._members)))

    def _name(self, client_id: str, host: str, instance: str) -> str:
        """Return a name that no other member has now; that of a member which has gone is free again."""
        base = f"{client_id} at {host}" if client_id in self._shared and host else client_id
        if instance and client_id in self._shared:
            base = f"{client_id} ({instance})"
        elif any(each.client_id == client_id and each.host != host for each in self._last.values()):
            base = f"{client_id} at {host}"
        number = 1
        name = base
        while (last := self._last.get((client_id, host, name))) is not None and _is_other(last, instance):
            number += 1
            name = f"{base} #{number}"
        return name


def _is_other(last: Member, instance: str) -> bool:
    """Whether the last member with a name is still there, so that another one needs another name."""
    if instance and last.instance == instance:
        return False
    return last.gone is None and not last.is_away and bool(last.joined_ns)
