"""The partitions of one fetch session, changed from Fetch to Fetch, and back.

Invariants:
  * the topics are in the order in which they were added, whatever way led to a row;
  * what is kept for going back is bounded: some of the last changes, and copies of which each costs no more than what
    changed since the one before it. Where neither reaches, the requests are read again.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

Partitions = Mapping[str, frozenset[int]]
"""Partitions by topic, by name or by id as the request has it."""
RowPartitions = tuple[int, Partitions | None]
"""A row, and the partitions of its session then; None where they are unknown."""
MOST_KEPT: Final = 64
"""Copies, and changes that can be taken back."""
MOST_KEPT_NUMBERS: Final = 1 << 17
"""Partitions in the copies, and in the changes."""
FEW: Final = 64
"""One in so many: fewer new partitions than that are put into their places one by one, and others are sorted in."""
SHOWN_NUMBERS: Final = 4


class SessionChange(NamedTuple):
    """What became of the partitions of one topic: numbers that were added, or that were forgotten."""

    topic: str
    numbers: list[int]
    is_added: bool


class _Step(NamedTuple):
    """What a Fetch changed; `order` is that of the topic before, for one that is forgotten whole."""

    row: int
    changes: list[SessionChange]
    orders: dict[str, int]


class SessionSet:
    """The set of one connection, as it is at one row; unknown at first."""

    def __init__(self) -> None:
        self.row = -1
        """All Fetches up to this one are in the set."""
        self.topics: dict[str, list[int]] | None = None
        """The partitions by topic, ascending; None for unknown."""
        self.size = 0
        """How many partitions."""
        self._orders: dict[str, int] = {}
        self._next_order = 0
        self._steps: list[_Step] = []
        """What changed last, ..."""
        self._done = 0
        """... of which so many steps are in the set, and the others were taken back."""
        self._first_row = -1
        """Up to which row the steps lead back, ..."""
        self._last_row = -1
        """... and forward."""
        self._changed = 0
        """Partitions that came or went since a copy was kept."""
        self._kept_rows: list[int] = []
        self._kept: list[dict[str, tuple[int, ...]] | None] = []
        self._tuples: dict[str, tuple[int, ...]] = {}
        """Of topics that have not changed since they were copied."""
        self._sets: dict[str, frozenset[int]] = {}
        self._copy: Partitions | None = None

    # Where it is.

    def go_to(self, row: int, otherwise: RowPartitions) -> bool:
        """Go back, or forward as far as the changes are known, to a row or to the nearest one before it from which the
        requests have to be read; to `otherwise` if that is nearer. Return whether it is another set from now on."""
        if row >= self.row and otherwise[0] <= self.row:
            self._go_forward(row)
            return False
        if self._first_row <= row < self.row and otherwise[0] <= row:
            self._go_back(row)
            return True
        at = bisect_right(self._kept_rows, row) - 1
        if at >= 0 and self._kept_rows[at] >= otherwise[0]:
            self._restore(self._kept_rows[at], self._kept[at])
        else:
            self._restore(*otherwise)
        return True

    def _go_back(self, row: int) -> None:
        while self._done and self._steps[self._done - 1].row > row:
            self._done -= 1
            step = self._steps[self._done]
            for change in reversed(step.changes):
                self._change(change._replace(is_added=not change.is_added))
            if step.orders and self.topics is not None:
                self._orders |= step.orders
                self.topics = dict(sorted(self.topics.items(), key=lambda item: self._orders[item[0]]))
        self.row = row

    def _go_forward(self, row: int) -> None:
        while self._done < len(self._steps) and self._steps[self._done].row <= row:
            for change in self._steps[self._done].changes:
                self._change(change)
            self._done += 1
        self.row = max(self.row, min(row, self._last_row))

    def _restore(self, row: int, topics: "Mapping[str, Sequence[int] | frozenset[int]] | None") -> None:
        self._begin(row, None if topics is None else {topic: sorted(numbers) for topic, numbers in topics.items()})

    def _begin(self, row: int, topics: dict[str, list[int]] | None) -> None:
        """Be another set from this row on."""
        self.row = self._first_row = self._last_row = row
        self.topics = topics
        self.size = 0 if topics is None else sum(map(len, topics.values()))
        self._orders = dict(zip(topics or (), range(len(topics or ())), strict=True))
        self._next_order = len(self._orders)
        self._steps, self._done = [], 0
        self._tuples, self._sets, self._copy = {}, {}, None

    # What changes it.

    def move(self, row: int) -> None:
        """Take a Fetch that changes nothing."""
        self.row = self._last_row = row

    def forget(self, row: int) -> None:
        """Be unknown at a row. What was unknown before is so all the way."""
        if self.topics is None:
            self.move(row)
            return
        self._begin(row, None)

    def begin(self, row: int, named: Mapping[str, set[int]], forgotten: Mapping[str, set[int]]) -> None:
        """Take a Fetch that begins a session with the partitions that it names."""
        found = ((topic, sorted(numbers - forgotten.get(topic, set()))) for topic, numbers in named.items())
        self._begin(row, {topic: numbers for topic, numbers in found if numbers})
        self._changed = self.size
        self._keep()

    def take(self, row: int, named: Mapping[str, set[int]], forgotten: Mapping[str, set[int]]) -> list[SessionChange]:
        """Take a Fetch that adds partitions and forgets others; return what it changes. The set must be known."""
        assert self.topics is not None
        del self._steps[self._done :]
        changes: list[SessionChange] = []
        orders: dict[str, int] = {}
        for some, is_added in ((named, True), (forgotten, False)):
            for topic, numbers in some.items():
                here = self.topics.get(topic, [])
                changed = sorted(number for number in numbers if _has(here, number) != is_added)
                if changed:
                    order = self._orders.get(topic)
                    changes.append(SessionChange(topic, changed, is_added))
                    self._change(changes[-1])
                    if topic not in self.topics and order is not None:
                        orders.setdefault(topic, order)
        self.move(row)
        if changes:
            self._steps.append(_Step(row, changes, orders))
            self._done += 1
            self._changed += sum(len(change.numbers) for change in changes)
            self._forget_steps()
            if self._changed >= self.size:
                self._keep()
        return changes

    def _change(self, change: SessionChange) -> None:
        assert self.topics is not None
        topic, numbers, is_added = change
        if is_added:
            here = self.topics.get(topic)
            if here is None:
                here = self.topics[topic] = []
                self._orders[topic] = self._next_order
                self._next_order += 1
            _put(here, numbers)
        else:
            here = self.topics[topic]
            _take(here, numbers)
            if not here:
                del self.topics[topic], self._orders[topic]
        self.size += len(numbers) if is_added else -len(numbers)
        self._tuples.pop(topic, None)
        self._sets.pop(topic, None)
        self._copy = None

    def _forget_steps(self) -> None:
        count = sum(len(change.numbers) for step in self._steps for change in step.changes)
        while self._steps and (len(self._steps) > MOST_KEPT or count > MOST_KEPT_NUMBERS):
            step = self._steps.pop(0)
            self._done -= 1
            self._first_row = step.row
            count -= sum(len(change.numbers) for change in step.changes)

    def _keep(self) -> None:
        """Keep a copy."""
        assert self.topics is not None
        self._changed = 0
        at = bisect_left(self._kept_rows, self.row)
        if at < len(self._kept_rows) and self._kept_rows[at] == self.row:
            return
        for topic, numbers in self.topics.items():
            if topic not in self._tuples:
                self._tuples[topic] = tuple(numbers)
        self._kept_rows.insert(at, self.row)
        self._kept.insert(at, {topic: self._tuples[topic] for topic in self.topics})
        most = max(2, min(MOST_KEPT, MOST_KEPT_NUMBERS // max(1, self.size)))
        if len(self._kept_rows) > most:
            del self._kept_rows[: most // 2 : 2], self._kept[: most // 2 : 2]

    # What it says.

    def copied(self) -> Partitions | None:
        """All partitions, in a mapping that never changes."""
        if self.topics is None:
            return None
        if self._copy is None:
            for topic, numbers in self.topics.items():
                if topic not in self._sets:
                    self._sets[topic] = frozenset(numbers)
            self._copy = {topic: self._sets[topic] for topic in self.topics}
        return self._copy

    def first(self, most: int) -> tuple[dict[str, Sequence[int]], int] | None:
        """The first topics, at most so many, and how many more there are."""
        if self.topics is None:
            return None
        first = {topic: _shown(numbers) for topic, numbers in islice(self.topics.items(), most)}
        return first, len(self.topics) - len(first)


def _shown(numbers: list[int]) -> Sequence[int]:
    """All numbers as a range, or some that show that it is none."""
    if numbers[-1] - numbers[0] == len(numbers) - 1:
        return range(numbers[0], numbers[-1] + 1)
    return numbers[:SHOWN_NUMBERS] + numbers[SHOWN_NUMBERS:][-1:]


def _has(numbers: list[int], number: int) -> bool:
    at = bisect_left(numbers, number)
    return at < len(numbers) and numbers[at] == number


def _put(numbers: list[int], more: list[int]) -> None:
    """Add numbers that are not there."""
    if len(more) * FEW > len(numbers):
        numbers += more
        numbers.sort()
        return
    for number in more:
        insort(numbers, number)


def _take(numbers: list[int], some: list[int]) -> None:
    """Remove numbers that are there."""
    if len(some) * FEW > len(numbers):
        gone = set(some)
        numbers[:] = [number for number in numbers if number not in gone]
        return
    for number in some:
        del numbers[bisect_left(numbers, number)]
