"""The coordinators of a group, by address: whether they can be of one cluster.

A group has one coordinator at a time, and its generations only grow, wherever it moves. So where a coordinator
responds before another one has a higher generation, and after that still has a lower one, these are two groups of one
name, as on two clusters. Members with an epoch may lag behind their group: only those count that get another epoch.
"""

from typing import Final

from dissector.groups.group_event import NOWHERE, GroupEvent
from dissector.groups.group_messages import EPOCH_APIS
from dissector.protocol.schema.api_keys import ApiKey

MAX_COORDINATORS: Final = 64
"""Addresses that are known of a group."""
_WITHOUT_GENERATION: Final = frozenset((ApiKey.FIND_COORDINATOR, ApiKey.LEAVE_GROUP, ApiKey.OFFSET_COMMIT))


class Coordinators:
    """Those of one group name."""

    def __init__(self) -> None:
        self.disagree = False
        """Whether they are of different groups."""
        self._highest: dict[str, tuple[int, int, int]] = {}
        """By address: when it first had a generation, its highest one, and when it last had that."""
        self._highest_of_all = NOWHERE

    def add(self, event: GroupEvent) -> None:
        """Take the next event, in the order of rows."""
        said = event.said
        number = said.now if said.now >= 0 else said.generation
        if self.disagree or said.error or not event.done_ns or number < 0 or event.api in _WITHOUT_GENERATION:
            return
        first_ns, highest, _ = self._highest.get(event.server, (event.done_ns, NOWHERE, 0))
        may_lag = event.api in EPOCH_APIS and said.now == said.generation
        if number < self._highest_of_all and not may_lag:
            self.disagree = any(
                higher > number and first_ns < had_ns < event.time_ns
                for server, (_, higher, had_ns) in self._highest.items()
                if server != event.server
            )
        if number >= highest and (event.server in self._highest or len(self._highest) < MAX_COORDINATORS):
            self._highest[event.server] = first_ns, number, event.done_ns
            self._highest_of_all = max(self._highest_of_all, number)
