"""Count the topics and partitions of fetch sessions (KIP-227): an incremental Fetch is about all of its session.

Rows of a connection are gone through in their order. A topic or partition is in the session from one of them to before
another one, and all between have it: so what is counted of a session costs what its requests say and how many Fetches
there are, but not one times the other.

Invariant: the counts are those of all subjects of all rows, one by one (a property test of `BodyCounts`).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Final, NamedTuple

import numpy as np

from dissector.analysis.stats.column_counts import MeasureColumns, counts_by_number
from dissector.analysis.stats.counts import ExchangeCounts, TopicPartition
from dissector.analysis.stats.exchange_contents import Subject
from dissector.analysis.stats.histogram import Histogram
from dissector.capture_session import Capture
from dissector.core.arrays import Bool, Int64
from dissector.core.grouping import groups

Order = tuple[int, int, int, int, int]
"""Where a subject is counted first: the row's place, then its own place among those that the row has."""
_IN_SESSION: Final = 0
IN_MESSAGE: Final = 1
"""A row's session comes before what its messages mention."""


class SubjectCounts(NamedTuple):
    """Counts of a subject in some rows."""

    order: Order
    subject: Subject
    counts: ExchangeCounts


class SessionSubjects(NamedTuple):
    """What the sessions of some rows have."""

    counts: list[SubjectCounts]
    is_mentioned: dict[int, Bool]
    """Which subjects that a row mentions its session has, too, by the place of the row: they are counted here."""


def session_subjects_of(
    capture: Capture, rows: Int64, places: Int64, connections: Int64, measures: MeasureColumns,
    mentioned: Callable[[int], tuple[int, tuple[Subject, ...]]],
) -> SessionSubjects:  # fmt: skip
    """Count the sessions of the rows at some places, ascending, all of which are incremental Fetches. `connections` and
    `measures` are those of all rows; `mentioned` returns a number of what a row mentions, and that."""
    found = SessionSubjects([], {})
    for some in map(places.__getitem__, groups(connections[places])):
        session = _Session(capture, some.tolist())
        session.follow(rows, mentioned, found.is_mentioned)
        found.counts.extend(session.counted(measures.where(some)))
    return found


class _Interval(NamedTuple):
    """A subject that is in the session from one row to before another one, by their numbers."""

    begin: int
    end: int
    topic_order: int
    subject: Subject


class _Session:
    """The sessions of one connection, one after the other."""

    def __init__(self, capture: Capture, places: list[int]) -> None:
        self._messages = capture.messages
        self._places = places
        self._begun: dict[Subject, int] = {}
        """What is in the session, and since when."""
        self._sizes: dict[str, int] = {}
        """How many partitions of each topic are in it."""
        self._again = Counter[Subject]()
        """How often more a partition is in it, of a topic with two ids."""
        self._order = count()
        self._orders: dict[str, int] = {}
        self._intervals: list[_Interval] = []

    def follow(
        self, rows: Int64, mentioned: Callable[[int], tuple[int, tuple[Subject, ...]]], is_mentioned: dict[int, Bool]
    ) -> None:
        """Go through the rows."""
        known: dict[int, Bool] = {}
        """Of this session as it is, by the numbers of what is mentioned."""
        for number, place in enumerate(self._places):
            which, subjects = mentioned(place)
            if self._move(number, int(rows[place]), names_topics=bool(subjects)):
                known.clear()
            if subjects and self._begun:
                if which not in known:
                    known[which] = np.array([each in self._begun for each in subjects], np.bool_)
                is_mentioned[place] = known[which]
        self._end(len(self._places))

    def _move(self, number: int, row: int, *, names_topics: bool) -> bool:
        """Go to a row; return whether anything changed."""
        is_another, changes = self._messages.fetch_session_changes(row, is_first=number == 0, names_topics=names_topics)
        if is_another:
            self._end(number)
        for topic, numbers, is_added in changes:
            if is_added:
                self._add(number, topic, numbers)
            else:
                self._remove(number, topic, numbers)
        return is_another or bool(changes)

    def _add(self, number: int, topic: str, partitions: Sequence[int]) -> None:
        if topic not in self._sizes:
            self._sizes[topic] = 0
            self._orders[topic] = next(self._order)
            self._begun[topic] = number
        self._sizes[topic] += len(partitions)
        for partition in partitions:
            subject = TopicPartition(topic, partition)
            if subject in self._begun:
                self._again[subject] += 1
            else:
                self._begun[subject] = number

    def _remove(self, number: int, topic: str, partitions: Sequence[int]) -> None:
        self._sizes[topic] -= len(partitions)
        for partition in partitions:
            subject = TopicPartition(topic, partition)
            if self._again.get(subject):
                self._again[subject] -= 1
            else:
                self._close(number, subject)
        if not self._sizes[topic]:
            del self._sizes[topic]
            self._close(number, topic)
            del self._orders[topic]

    def _close(self, number: int, subject: Subject) -> None:
        begin = self._begun.pop(subject)
        if begin < number:
            order = self._orders[subject if isinstance(subject, str) else subject.topic]
            self._intervals.append(_Interval(begin, number, order, subject))

    def _end(self, number: int) -> None:
        for subject in list(self._begun):
            self._close(number, subject)
        self._again.clear()
        self._sizes.clear()
        self._orders.clear()

    def counted(self, measures: MeasureColumns) -> Iterator[SubjectCounts]:
        """The counts of each subject. Those of equal intervals share their histograms."""
        if not self._intervals:
            return
        of = _IntervalCounts(measures)
        for begin, end, topic_order, subject in self._intervals:
            within = (0, 0) if isinstance(subject, str) else (1, subject.number)
            order = self._places[begin], _IN_SESSION, topic_order, *within
            yield SubjectCounts(order, subject, of.counts(begin, end))


class _IntervalCounts:
    """Counts of rows from one to before another one, of which nothing but the number and the latency counts."""

    def __init__(self, measures: MeasureColumns) -> None:
        self._measures = measures
        self._known: dict[tuple[int, int], ExchangeCounts] = {}

    def counts(self, begin: int, end: int) -> ExchangeCounts:
        known = self._known.get((begin, end))
        if known is None:
            some = self._measures.where(np.arange(begin, end))
            [known] = counts_by_number(np.zeros(end - begin, np.int64), 1, some)
            self._known[begin, end] = known
        return ExchangeCounts(known.exchanges, latency=known.latency, waits=known.waits)


class SharedMerges:
    """Merges histograms; of the same two once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[Histogram, Histogram, Histogram]] = {}
        """By identity, with the two, so that these stay what they are."""

    def __call__(self, one: Histogram, other: Histogram) -> Histogram:
        """The counts of both."""
        if other.least is None:
            return one
        known = self._known.get((id(one), id(other)))
        if known is None:
            known = self._known[id(one), id(other)] = one, other, one.merged(other)
        return known[2]
