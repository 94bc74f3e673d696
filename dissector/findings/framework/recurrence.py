"""What is remembered from one row to another: bounded, and counted."""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

from dissector.core.text import duration
from dissector.findings.framework.open_findings import Case

KEYS: Final = 8_192
"""Connections, partitions, groups of which a finder knows something, at most; past it those unseen for longest go."""
SECOND: Final = 1_000_000_000
MILLISECOND: Final = 1_000_000
Key = TypeVar("Key")
State = TypeVar("State")


class Recent(Generic[Key, State]):
    """What is known by key, bounded."""

    def __init__(self, make: Callable[[], State], most: int = KEYS) -> None:
        self._make = make
        self._most = most
        self._known: OrderedDict[Key, State] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def of(self, key: Key) -> State:
        """What is known of a key, to be changed in place; new where nothing is."""
        state = self._known.get(key)
        if state is None:
            state = self._known[key] = self._make()
            if len(self._known) > self._most:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(key)
        return state

    def get(self, key: Key) -> State | None:
        """What is known of a key, if anything is; it does not count as seen."""
        return self._known.get(key)

    def values(self) -> Iterable[State]:
        """All that is known."""
        return self._known.values()

    def forget(self, key: Key) -> None:
        """Begin anew with a key."""
        self._known.pop(key, None)


class Episode:
    """One cause, seen again and again."""

    __slots__ = ("case", "count", "first_ns", "last_ns", "words")

    def __init__(self) -> None:
        self.case: Case | None = None
        self.count = 0
        self.first_ns = self.last_ns = 0
        self.words = ""


class Burst:
    """Many in a short time."""

    __slots__ = ("_is_on", "_times", "case", "count", "first_ns", "is_new")

    def __init__(self) -> None:
        self._times: deque[int] = deque()
        self._is_on = False
        self.is_new = False
        """Whether the one that came last made it a burst."""
        self.case: Case | None = None
        """What is told of it, for who tells."""
        self.count = 0
        self.first_ns = 0

    def is_on(self, time_ns: int, many: int, span_ns: int) -> bool:
        """One more has come: whether there are `many` within the span, or were and no such time has gone by since."""
        times = self._times
        if times and time_ns - times[-1] > span_ns:
            self.over()
        times.append(time_ns)
        if self._is_on:
            self.is_new = False
            self.count += 1
            times.popleft()
            return True
        while times[0] < time_ns - span_ns:
            times.popleft()
        self.count, self.first_ns = len(times), times[0]
        self._is_on = self.is_new = len(times) >= many
        return self._is_on

    def took(self, time_ns: int) -> str:
        """How long it goes on, in words."""
        return duration(max(0, time_ns - self.first_ns))

    def over(self) -> None:
        """What comes next is of another one."""
        self._times.clear()
        self._is_on = False
