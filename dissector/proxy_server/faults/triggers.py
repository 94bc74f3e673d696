"""When a rule fires: `first 3`, `after 10`, `every 5`, `probability 0.1 seed 7`, `for 30s`.

Each trigger counts what the one before it lets through: `after 2, first 3` fires at the third to the fifth match, and
`every 3, first 2` at the third and the sixth. Without a trigger a rule fires at each match.

Invariant: the same matches at the same times give the same answers in each run.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol

from dissector.core.suggestions import nearest
from dissector.proxy_server.faults.errors import WordError
from dissector.proxy_server.faults.words import Word, count, duration_ns, share, shown_duration, shown_share


class Running(Protocol):
    """A trigger while rules are in use."""

    def admits(self, now_ns: int) -> bool:
        """Take a match at a time; return whether the next trigger gets it."""

    def is_over(self, now_ns: int) -> bool:
        """Return whether it will admit nothing more."""


class FaultTrigger(Protocol):
    """A trigger as it is written."""

    def run(self) -> Running:
        """Return it with counts of its own, from 0."""


@dataclass(frozen=True, slots=True)
class First:
    """The first matches."""

    count: int

    def __str__(self) -> str:
        return f"first {self.count}"

    def run(self) -> Running:
        return _Counting(lambda number: number <= self.count, last=self.count)


@dataclass(frozen=True, slots=True)
class After:
    """All matches but the first ones."""

    count: int

    def __str__(self) -> str:
        return f"after {self.count}"

    def run(self) -> Running:
        return _Counting(lambda number: number > self.count)


@dataclass(frozen=True, slots=True)
class Every:
    """Each match whose number is a multiple."""

    count: int

    def __str__(self) -> str:
        return f"every {self.count}"

    def run(self) -> Running:
        return _Counting(lambda number: number % self.count == 0)


@dataclass(frozen=True, slots=True)
class Probability:
    """Some matches, drawn by a generator of its own."""

    share: Fraction
    seed: int = 0

    def __str__(self) -> str:
        return f"probability {shown_share(self.share)} seed {self.seed}"

    def run(self) -> Running:
        chance = random.Random(self.seed)  # the same in each run: no secret depends on it
        return _Counting(lambda _: chance.random() < self.share)


@dataclass(frozen=True, slots=True)
class For:
    """The matches within a time, from the first one on."""

    ns: int

    def __str__(self) -> str:
        return f"for {shown_duration(self.ns)}"

    def run(self) -> Running:
        return _Timed(self.ns)


class _Counting:
    """Decides by the number of a match, from 1."""

    def __init__(self, admits: Callable[[int], bool], last: int | None = None) -> None:
        self._admits = admits
        self._last = last
        self._count = 0

    def admits(self, now_ns: int) -> bool:
        self._count += 1
        return self._admits(self._count)

    def is_over(self, now_ns: int) -> bool:
        return self._last is not None and self._count >= self._last


class _Timed:
    """Decides by the time since the first match."""

    def __init__(self, ns: int) -> None:
        self._ns = ns
        self._until: int | None = None

    def admits(self, now_ns: int) -> bool:
        if self._until is None:
            self._until = now_ns + self._ns
        return now_ns < self._until

    def is_over(self, now_ns: int) -> bool:
        return self._until is not None and now_ns >= self._until


class RunningTriggers:
    """All triggers of a rule while it is in use."""

    def __init__(self, triggers: Sequence[FaultTrigger]) -> None:
        self._running = [each.run() for each in triggers]

    def admit(self, now_ns: int) -> bool:
        """Take a match; return whether the rule fires."""
        return all(each.admits(now_ns) for each in self._running)

    def is_over(self, now_ns: int) -> bool:
        """Return whether the rule will never fire again."""
        return any(each.is_over(now_ns) for each in self._running)


_COUNTED: Final[dict[str, Callable[[int], FaultTrigger]]] = {"first": First, "after": After, "every": Every}
NAMES: Final = ("always", "first", "after", "every", "probability", "for")


def read_trigger(found: Sequence[Word]) -> FaultTrigger | None:
    """Return the trigger that words say; None for `always`. Raises `WordError`."""
    name, *rest = found
    if name.text == "always":
        _expect(name, rest, 0, "nothing")
        return None
    if name.text in _COUNTED:
        _expect(name, rest, 1, f"a number: {name.text} 3")
        return _COUNTED[name.text](count(rest[0]))
    if name.text == "for":
        _expect(name, rest, 1, "a duration: for 30s")
        return For(duration_ns(rest[0]))
    if name.text == "probability":
        if len(rest) == 3 and rest[1].text == "seed":
            return Probability(share(rest[0]), count(rest[2], least=0))
        _expect(name, rest, 1, "a number, and a seed or none: probability 0.1 seed 7")
        return Probability(share(rest[0]))
    raise WordError(name.column, f"unknown trigger {name.text!r:.40}", nearest(name.text, NAMES) or NAMES)


def _expect(name: Word, rest: Sequence[Word], number: int, what: str) -> None:
    if len(rest) != number:
        raise WordError((rest[number] if len(rest) > number else name).column, f"after {name.text!r} comes {what}")
