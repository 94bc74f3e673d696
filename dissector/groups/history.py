"""The history of one group: its generations or epochs, and why each began.

`GroupHistory` folds events in the order of rows, at a bounded price each. A cause is decided when the next generation
begins, or when it is asked for: what comes later can confirm it (a member that hears that it is none any more).
"""

from collections.abc import Set
from typing import Final

from dissector.groups.classic_protocol import ClassicProtocol
from dissector.groups.deciding import Closed
from dissector.groups.epoch_protocol import EpochProtocol
from dissector.groups.group_event import GroupEvent, GroupFields
from dissector.groups.group_messages import EPOCH_APIS
from dissector.groups.group_state import GroupState
from dissector.groups.rebalance import Rebalance
from dissector.groups.tally import CauseTally
from dissector.protocol.schema.api_keys import ApiKey

MAX_REBALANCES: Final = 10_000
"""Generations that are kept of a group; of more of them the first are forgotten, but counted."""


def never_closed(_connection: int) -> int:
    """Where it is not known whether connections close."""
    return 0


class GroupHistory:
    """Folds the events of one group."""

    def __init__(
        self,
        group: str,
        server: str = "",
        *,
        most: int = MAX_REBALANCES,
        shared: Set[str] = frozenset(),
        closed: Closed = never_closed,
        hears_all: bool = False,
    ) -> None:
        """With `server`, of that coordinator only: others have another group of this name (`coordinators.py`).

        Of its generations the last `most` are kept, all are counted. `shared` are client ids that several hosts
        have. `hears_all` says whether heartbeats that change nothing are among the events, too."""
        self.group = group
        self.server = server
        self.first_ns = self.last_ns = 0
        """Of its exchanges."""
        self._state = GroupState(most, shared, closed, hears_all=hears_all)
        self._classic = ClassicProtocol(self._state)
        self._epochs = EpochProtocol(self._state)

    @property
    def name(self) -> str:
        """The group, with its coordinator where another group has this name."""
        return f"{self.group} at {self.server}" if self.server else self.group

    @property
    def kind(self) -> str:
        """``classic``, ``consumer`` (KIP-848), ``share`` (KIP-932) or ``streams`` (KIP-1071)."""
        return self._state.kind

    @property
    def tally(self) -> CauseTally:
        """How often it rebalanced, and why."""
        return self._state.tally

    @property
    def rebalances(self) -> list[Rebalance]:
        """The generations or epochs that are kept, their causes decided."""
        self.decide()
        return self._state.kept

    def decide(self) -> None:
        """Decide why the last generation or epoch began, as far as that is known by now."""
        if self._state.kept:
            self._state.decide(self._state.kept[-1])

    @property
    def loops(self) -> int:
        """How many events came again so often that the group is in a loop; 0 if it is not."""
        return self._state.recurring.count

    @property
    def rest(self) -> Rebalance:
        """What came after the last generation began and led to none: members that left, refusals."""
        return self._state.next

    @property
    def members(self) -> list[str]:
        """Names of all members, in the order in which they were first seen."""
        return self._state.roster.names()

    @property
    def names(self) -> dict[str, str]:
        """Names of the members that are known, by member id."""
        return self._state.roster.by_id()

    def add(self, row: int, event: GroupEvent) -> None:
        """Take the next event; `row` is from 0."""
        self.first_ns = self.first_ns or event.time_ns
        self.last_ns = max(self.last_ns, event.time_ns, event.done_ns)
        if event.api in EPOCH_APIS:
            self._state.kind = EPOCH_APIS[event.api]
            self._epochs.heartbeat(row, event)
        elif event.api == ApiKey.FIND_COORDINATOR:
            self._state.coordinator(row, event)
        elif event.api == ApiKey.LEAVE_GROUP:
            self._classic.leave(row, event)
        elif event.api == ApiKey.JOIN_GROUP:
            self._classic.join(row, event)
        elif event.said.member:
            self._classic.stay(row, event)

    def beats(self, said: GroupFields, time_ns: int) -> bool:
        """Take a Heartbeat without an error; return whether it changes nothing, so that `add` need not see it."""
        state = self._state
        member = state.roster.get(said.member)
        if member is None or member.generation != said.generation or not state.kept or member.gone is not None:
            return False
        member.heard_ns = time_ns
        self.last_ns = max(self.last_ns, time_ns)
        return state.kept[-1].number >= said.generation
