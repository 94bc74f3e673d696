"""Bounded state of detectors, and recurring events: episodes and bursts."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Generic, TypeVar

from dissector.core.text import duration
from dissector.findings.framework.open_findings import OpenFinding

MAX_KEYS: Final = 8_192
"""Maximum connections, partitions or groups of which a detector keeps state; the least recently seen are dropped."""
Key = TypeVar("Key")
State = TypeVar("State")


class BoundedStates(Generic[Key, State]):
    """A bounded number of states, by key."""

    def __init__(self, make: Callable[[], State], most: int = MAX_KEYS) -> None:
        self._make = make
        self._most = most
        self._states: OrderedDict[Key, State] = OrderedDict()

    def __len__(self) -> int:
        return len(self._states)

    def of(self, key: Key) -> State:
        """Return the state of a key, to be changed in place; a new one if there is none."""
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = self._make()
            if len(self._states) > self._most:
                self._states.popitem(last=False)
        else:
            self._states.move_to_end(key)
        return state

    def get(self, key: Key) -> State | None:
        """Return the state of a key, or None. The key does not count as seen."""
        return self._states.get(key)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._states)

    def values(self) -> Iterable[State]:
        """Return all states."""
        return self._states.values()

    def forget(self, key: Key) -> None:
        """Drop the state of a key."""
        self._states.pop(key, None)

    def keep(self, is_kept: Callable[[Key], bool]) -> None:
        """Drop the states of other keys."""
        self._states = OrderedDict((key, state) for key, state in self._states.items() if is_kept(key))


class Episode:
    """A recurring cause: its finding, count and times."""

    __slots__ = ("count", "finding", "first_ns", "last_ns", "message")

    def __init__(self) -> None:
        self.finding: OpenFinding | None = None
        self.count = 0
        self.first_ns = self.last_ns = 0
        self.message = ""


class Burst:
    """Many events in a short time."""

    __slots__ = ("_is_on", "_times", "count", "finding", "first_ns", "is_new")

    def __init__(self) -> None:
        self._times: list[int] = []
        """Few, as `many` are: a queue would take seven times as much memory in each of thousands."""
        self._is_on = False
        self.is_new = False
        """Whether the last event made it a burst."""
        self.finding: OpenFinding | None = None
        """The finding about the burst, set by the detector that reports it."""
        self.count = 0
        self.first_ns = 0

    def is_on(self, time_ns: int, many: int, span_ns: int, *, by_pauses: bool = False) -> bool:
        """Count an event; return whether the burst is on. It begins with `many` events within the span, or `by_pauses`
        with as many of which none is later than the span after the one before it, and ends when as long a time passes
        without one."""
        times = self._times
        if times and time_ns - times[-1] > span_ns:
            self.end()
        times.append(time_ns)
        if self._is_on:
            self.is_new = False
            self.count += 1
            del times[0]
            return True
        while not by_pauses and times[0] < time_ns - span_ns:
            del times[0]
        self.count, self.first_ns = len(times), times[0]
        self._is_on = self.is_new = len(times) >= many
        return self._is_on

    def took(self, time_ns: int) -> str:
        """Return its duration until `time_ns`, as text."""
        return duration(max(0, time_ns - self.first_ns))

    def end(self) -> None:
        """End the burst: the next event belongs to another one."""
        self._times.clear()
        self._is_on = False
