"""One generation of a classic group, or one epoch of a newer one: how it began, and what its members did."""

from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from dissector.groups.causes import CauseKind, RebalanceCause
from dissector.groups.group_event import NOWHERE

MAX_CHANGES: Final = 1_000
"""What is kept of each kind in a generation."""
Kept = TypeVar("Kept")


class MemberChange(NamedTuple):
    """What a member did, or what was done to it."""

    member: str
    words: str
    time_ns: int
    row: int
    """From 0."""


class Trigger(NamedTuple):
    """What may have begun a rebalance."""

    time_ns: int
    kind: CauseKind
    member: str
    member_id: str
    reason: str
    row: int
    sure: bool = True
    details: str = ""
    after: CauseKind | None = None

    @property
    def cause(self) -> RebalanceCause:
        """The trigger as the cause of the rebalance."""
        return RebalanceCause(self.kind, self.member, self.reason, self.sure, self.details, self.after)

    @property
    def words(self) -> str:
        """What the member did, without its name."""
        return self.cause.words.removeprefix(f"{self.member} ")


@dataclass(slots=True)
class HeardRebalance:
    """A member heard that the group rebalances, and rejoined."""

    member: str
    heard_ns: int
    rejoined_ns: int = 0
    """0 if it did not."""


@dataclass(slots=True)
class Stop:
    """A member of a classic group consumes nothing between joining and being synced."""

    member: str
    joins_ns: int
    synced_ns: int = 0
    """0 if that is not in the capture."""
    is_old: bool = False
    """Whether it was a member before."""


@dataclass(slots=True)
class Rebalance:
    """A generation or an epoch."""

    number: int
    row: int
    """The row that shows it first, from 0."""
    seen_ns: int
    """When a response first had its number."""
    unit: str = "generation"
    is_first: bool = False
    """Whether nothing is known of the time before."""
    missed: int = 0
    """How many generations before it are not in the capture."""
    assignor: str = ""
    leader: str = ""
    leader_id: str = ""
    size: int = 0
    """Members in the list of the leader; 0 if that is not in the capture."""
    cooperative: bool = False
    triggers: list[Trigger] = field(default_factory=list)
    heard: dict[str, HeardRebalance] = field(default_factory=dict)
    joined: list[MemberChange] = field(default_factory=list)
    left: list[MemberChange] = field(default_factory=list)
    removed: list[MemberChange] = field(default_factory=list)
    removals: list[RebalanceCause] = field(default_factory=list)
    """Why each of `removed` was."""
    noted: list[MemberChange] = field(default_factory=list)
    """Refusals, fenced members, coordinators that moved, static members that came back."""
    stops: dict[str, Stop] = field(default_factory=dict)
    """By member id."""
    reached: dict[str, int] = field(default_factory=dict)
    """By member, when it got this epoch."""
    idle: dict[str, int] = field(default_factory=dict)
    """By member that went, since when no member read its partitions."""
    previous: set[str] = field(default_factory=set)
    """Ids of the members before."""
    listed: set[str] = field(default_factory=set)
    """Ids of the members in the list of the leader."""
    listed_instances: set[str] = field(default_factory=set)
    confirmed: set[str] = field(default_factory=set)
    """Ids of members that later heard that they are none."""
    departed: set[str] = field(default_factory=set)
    """Ids of members that left by themselves."""
    rebalance_ms: int = NOWHERE
    """The longest time that a member may take to rejoin."""
    cause: RebalanceCause | None = None

    @property
    def start_ns(self) -> int:
        """When it began, as far as the capture shows it."""
        heard = [each.heard_ns for each in self.heard.values()]
        joins = [each.joins_ns for each in self.stops.values()]
        return min((*(each.time_ns for each in self.triggers), *heard, *joins, self.seen_ns))

    @property
    def done_ns(self) -> int:
        """When its last member went on."""
        return max((*(each.synced_ns for each in self.stops.values()), *self.reached.values(), self.seen_ns))

    @property
    def heard_ns(self) -> int:
        """When a member first heard of it; 0 if none did."""
        return min((each.heard_ns for each in self.heard.values()), default=0)

    @property
    def nobody_ns(self) -> int | None:
        """How long no member of the capture consumed; None where members go on, or it is not known."""
        old = [each for each in self.stops.values() if each.is_old]
        synced = [each.synced_ns for each in self.stops.values() if each.synced_ns]
        if self.cooperative or not old or not synced or self.unit != "generation":
            return None
        return max(0, min(synced) - max(each.joins_ns for each in old))

    @property
    def unread_ns(self) -> dict[str, int]:
        """By member that went: how long no member read its partitions."""
        ends = [each.synced_ns for each in self.stops.values() if each.synced_ns] or [*self.reached.values()]
        end = min(ends, default=0)
        return {member: end - since for member, since in self.idle.items() if end > since}


def keep(kept: list[Kept], one: Kept) -> None:
    """Add a change or a trigger, up to a bound."""
    if len(kept) < MAX_CHANGES:
        kept.append(one)


def keep_id(ids: set[str], member_id: str) -> None:
    """Add a member's id, up to a bound."""
    if len(ids) < MAX_CHANGES:
        ids.add(member_id)


def keep_time(times: dict[str, int], member: str, time_ns: int) -> None:
    """Set the time of a member, up to a bound."""
    if member in times or len(times) < MAX_CHANGES:
        times[member] = time_ns
