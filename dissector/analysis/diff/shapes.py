"""What is compared by its shape and not by the value: how often, how far apart, how much at a time.

Close is the same. The program that runs again sends a few Fetches more, its batches fall otherwise, its retries depend
on how long a coordinator loads. So: loops may differ by two turns or by a tenth, intervals and batches by half, and
only where there are enough of them to have a shape; a loop's turns are compared by a rate where both go on for long.
"""

from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Final

from dissector.analysis.diff.batching import Batching, Content
from dissector.analysis.diff.comparison import Reason
from dissector.analysis.diff.fields import Found
from dissector.analysis.diff.gathering import Facts
from dissector.analysis.diff.kinds import Symbol, Value
from dissector.analysis.diff.leaves import Path
from dissector.analysis.diff.meaning import LOOPS, Key
from dissector.analysis.diff.names import Names
from dissector.analysis.diff.wording import every, times, word
from dissector.core.text import counted, duration, size

RECORDS: Final = ("topic_data", "partition_data", "records")
LOOSE_TURNS: Final = 2
LOOSE_SHARE: Final = 0.1
LOOSE_RATIO: Final = 1.5
LOOSE_RETRIES: Final = 3
ENOUGH_INTERVALS: Final = 3
ENOUGH_BATCHES: Final = 20
LEAST_APART_NS: Final = 20_000_000
"""Intervals that are less apart than this differ by the machine's doing."""


def same_count(a: int, b: int) -> bool:
    """Whether two loops turned as often, all in all."""
    return abs(a - b) <= max(LOOSE_TURNS, LOOSE_SHARE * max(a, b))


def same_ratio(a: float, b: float, loose: float = LOOSE_RATIO) -> bool:
    """Whether two measures are of a size."""
    return max(a, b) <= loose * min(a, b) if min(a, b) > 0 else max(a, b) <= 0


def compare_shapes(key: Key, a: Facts, b: Facts) -> Iterator[Found]:
    """How often and at which intervals both sides say what one key means."""
    counts = [len(facts.rows) - sum(facts.retries.times.values()) for facts in (a, b)]
    if _counts_differ(key, *counts):
        yield _found(Reason.COUNT, times(counts[0]), times(counts[1]), counts, a, b)
    retried = [sum(facts.retries.times.values()) for facts in (a, b)]
    if abs(retried[0] - retried[1]) > LOOSE_RETRIES:
        words = "tried again after " + ", ".join(sorted({*a.retries.times, *b.retries.times}))
        yield _found(Reason.COUNT, times(retried[0]), times(retried[1]), retried, a, b, words)
    pauses = [facts.retries.pauses for facts in (a, b)]
    if all(len(each) >= ENOUGH_INTERVALS for each in pauses):
        yield from _timing(pauses, a, b)
    if key.api in LOOPS:
        yield from _interval(a, b)


def _counts_differ(key: Key, a: int, b: int) -> bool:
    """Requests of a producer are as many as its batches make; turns of a loop, as it has time for."""
    if key.api == "Produce":
        return max(a, b) >= ENOUGH_BATCHES and not same_ratio(a, b)
    return not same_count(a, b) if key.api in LOOPS else a != b


def _interval(a: Facts, b: Facts) -> Iterator[Found]:
    """How far apart the turns of a loop are, where both have enough of them."""
    intervals = [facts.intervals for facts in (a, b)]
    if all(len(each) >= ENOUGH_INTERVALS for each in intervals):
        middles = [median(each) for each in intervals]
        if _apart(*middles):
            counts = [len(each) for each in intervals]
            told = [every(middle) for middle in middles]
            yield _found(Reason.TIMING, told[0], told[1], counts, a, b, "median", ("interval",))


def _timing(pauses: Sequence[Sequence[int]], a: Facts, b: Facts) -> Iterator[Found]:
    middles = [median(each) for each in pauses]
    if _apart(*middles):
        told = [duration(round(middle)) for middle in middles]
        yield _found(
            Reason.TIMING, told[0], told[1], [len(each) for each in pauses], a, b, "median", ("retry_backoff",)
        )


def _apart(a: float, b: float) -> bool:
    return abs(a - b) > LEAST_APART_NS and not same_ratio(a, b)


def _found(
    reason: Reason, a: str, b: str, counts: Sequence[int], of_a: Facts, of_b: Facts, words: str = "", path: Path = ()
) -> Found:
    return Found("", path, reason, a, b, counts[0], counts[1], words, of_a.rows[0], of_b.rows[0])


def compare_batching(a: Batching, b: Batching, names: Names) -> Iterator[Found]:
    """What was produced, and how it was packed."""
    topics, keyed = _renamed(a, b, names)
    for topic in topics[0].keys() & topics[1].keys():
        one, other = topics[0][topic], topics[1][topic]
        if one != other:
            if not (a.unread or b.unread):
                told = [f"{counted(content.records, 'record')}" for content in (one, other)]
                yield _content(told, one, other, f"keys, values or headers differ in {word(topic)}")
            continue
        placed = [{number: content for (name, number), content in side.items() if name == topic} for side in keyed]
        if placed[0] != placed[1]:
            told = [", ".join(f"{c.records} in partition {n}" for n, c in sorted(side.items())) for side in placed]
            as_many = ", and as many in each partition," if told[0] == told[1] else ","
            yield _content(told, one, other, f"the same records{as_many} but keys go to other partitions")
    if min(len(a.records), len(b.records)) >= ENOUGH_BATCHES:
        yield from _packed("records a batch", a.records, b.records, str)
        yield from _packed("bytes a batch", a.sizes, b.sizes, size)


def _renamed(
    a: Batching, b: Batching, names: Names
) -> tuple[list[dict[Value, Content]], list[dict[tuple[Value, int], Content]]]:
    """What each side produced, by the topic's name in the comparison; and what has keys, by partition too."""
    topics: list[dict[Value, Content]] = []
    keyed: list[dict[tuple[Value, int], Content]] = []
    for n, side in enumerate((a, b)):
        called = {name: names.value(n, Symbol("topic", name)) for name in side.topics}
        topics.append({called[name]: content for name, content in side.topics.items()})
        keyed.append({(called[name], number): content for (name, number), content in side.keyed.items()})
    return topics, keyed


def _packed(what: str, a: Sequence[int], b: Sequence[int], show: Callable[[int], str]) -> Iterator[Found]:
    middles = [round(median(each)) for each in (a, b)]
    if not same_ratio(*middles):
        told = [show(middle) for middle in middles]
        words = f"median {what}"
        yield Found("request", RECORDS, Reason.BATCHING, told[0], told[1], len(a), len(b), words, None, None)


def _content(told: Sequence[str], a: Content, b: Content, words: str) -> Found:
    return Found("request", RECORDS, Reason.CONTENT, told[0], told[1], a.records, b.records, words, None, None)
