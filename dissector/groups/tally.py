"""How often a group rebalanced, for which causes, and what came again and again: what a verdict is made of.

Bounded, however many generations the history keeps.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Hashable
from typing import Final, NamedTuple

from dissector.groups.causes import CauseKind
from dissector.groups.rebalance import Rebalance

MAX_CAUSES: Final = 1_000
"""Causes of different members that are counted one by one."""
OTHERS: Final = "other members"


class CauseKey(NamedTuple):
    """What is counted together: a member that goes for the same reason again and again, or comes back from it."""

    kind: CauseKind
    member: str
    reason: str
    sure: bool
    after: CauseKind | None = None


class CauseTally:
    """Counts generations and epochs beyond the first one, and their causes."""

    def __init__(self) -> None:
        self.count = 0
        """Generations or epochs that began while the capture ran."""
        self.missed = 0
        """Generations that are not in the capture."""
        self.first_ns = self.last_ns = 0
        """When the first of them began, and when the last one was done."""
        self.causes: Counter[CauseKey] = Counter()
        self.refusals: Counter[tuple[str, int]] = Counter()
        """By member and error."""
        self.returns: Counter[tuple[CauseKind, str]] = Counter()
        """How often members came back that had gone for a cause."""
        self.static_returns = 0
        """How often static members came back without a rebalance."""
        self._details: dict[CauseKey, str] = {}

    def began(self, rebalance: Rebalance) -> None:
        """A generation or epoch began."""
        if rebalance.is_first:
            return
        self.count += 1
        self.missed += rebalance.missed
        self.first_ns = self.first_ns or rebalance.start_ns

    def decided(self, rebalance: Rebalance) -> None:
        """The cause of a generation or epoch is known."""
        if not rebalance.is_first:
            self.last_ns = max(self.last_ns, rebalance.done_ns)
        key = _key(rebalance)
        if key is not None:
            key = key if key in self.causes or len(self.causes) < MAX_CAUSES else _folded(key)
            self.causes[key] += 1
            if rebalance.cause is not None:
                self._details.setdefault(key, rebalance.cause.details)

    def take_back(self, rebalance: Rebalance) -> None:
        """The cause of a generation or epoch is about to be decided again."""
        key = _key(rebalance)
        if key is not None:
            key = key if self.causes[key] > 0 else _folded(key)
            self.causes[key] -= self.causes[key] > 0

    def details(self, key: CauseKey) -> str:
        """Return what else the first rebalance of a cause showed."""
        return self._details.get(key, "")

    def came_back(self, member: str, after: CauseKind) -> None:
        """A member came back."""
        if len(self.returns) < MAX_CAUSES or (after, member) in self.returns:
            self.returns[after, member] += 1

    def refused(self, member: str, code: int) -> None:
        """A member was refused or fenced."""
        if len(self.refusals) < MAX_CAUSES or (member, code) in self.refusals:
            self.refusals[member, code] += 1


def _folded(key: CauseKey) -> CauseKey:
    return key._replace(member=OTHERS, reason="")


def _key(rebalance: Rebalance) -> CauseKey | None:
    cause = rebalance.cause
    if cause is None or rebalance.is_first:
        return None
    return CauseKey(cause.kind, cause.member, cause.reason, cause.sure, cause.after)


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
    """Counts what comes again in one group: a rebalance by itself is everyday, the same one again is a loop."""

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
