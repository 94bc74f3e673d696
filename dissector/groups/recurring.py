"""What comes again and again in a group: a rebalance by itself is everyday, the same one again is a loop."""

from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Final

MAX_KEYS: Final = 1_000
"""Members of whom it is known how often they went."""
SAME_MEMBER: Final = 3
"""Departures of one member that make a loop: two are a restart and the end, or a deployment and its repair."""
SAME_CAUSE: Final = 5
"""Other rebalances for the same cause that make a loop."""
SHORT_LIVES: Final = 4
"""Members that make a loop where each joins after another has gone soon after it joined."""
SHORT_NS: Final = 60_000_000_000
QUIET_NS: Final = 600_000_000_000
"""A pause that ends a loop, if the longest time that a member may take between polls is not longer."""


class Recurrences:
    """Counts what comes again in one group."""

    def __init__(self) -> None:
        self.count = 0
        """Events that came again so often that they are a loop."""
        self.quiet_ns = QUIET_NS
        self._times: OrderedDict[Hashable, deque[int]] = OrderedDict()
        self._short_ns = 0

    def allow(self, between_polls_ns: int) -> None:
        """A member may be silent for so long: a loop has pauses as long."""
        self.quiet_ns = max(self.quiet_ns, 2 * between_polls_ns)

    def went(self, member: str, time_ns: int, life_ns: int) -> None:
        """A member left or was removed, so long after it had joined; a negative time if that is not known."""
        self._add(member, SAME_MEMBER, time_ns)
        if 0 <= life_ns <= SHORT_NS:
            self._short_ns = time_ns

    def arrived(self, time_ns: int) -> None:
        """A member joined."""
        if self._short_ns and time_ns - self._short_ns <= SHORT_NS:
            self._add(None, SHORT_LIVES, time_ns)
        self._short_ns = 0

    def began(self, cause: Hashable, time_ns: int) -> None:
        """A rebalance began for a cause that is neither a departure nor an arrival."""
        self._add((cause,), SAME_CAUSE, time_ns)

    def _add(self, key: Hashable, many: int, time_ns: int) -> None:
        times = self._times.setdefault(key, deque(maxlen=many))
        self._times.move_to_end(key)
        if len(self._times) > MAX_KEYS:
            self._times.popitem(last=False)
        if times and time_ns - times[-1] > self.quiet_ns:
            times.clear()
        times.append(time_ns)
        self.count += len(times) == many
