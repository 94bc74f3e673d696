"""What is compared by its shape and not by the value: how often, how far apart, how much at a time.

Close is the same. The program that runs again sends a few Fetches more, its batches fall otherwise, its retries depend
on how long a coordinator loads. So: loops may differ by two turns or by a tenth, intervals and batches by half, and
only where there are enough of them to have a shape; a loop's turns are compared by a rate where both go on for long.
"""

from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Final

from dissector.analysis.diff.batching import ProducedBatches, RecordSum
from dissector.analysis.diff.compared_values import ComparedValue, EntityName
from dissector.analysis.diff.field_comparison import KeyDifference
from dissector.analysis.diff.formatting import format_count, format_interval, format_value
from dissector.analysis.diff.matching_keys import REPEATED_APIS, MatchingKey
from dissector.analysis.diff.message_leaves import LeafPath
from dissector.analysis.diff.name_matching import NameMatching
from dissector.analysis.diff.result import DiffReason
from dissector.analysis.diff.side_profile import KeyProfile
from dissector.core.text import counted, duration, size

RECORDS: Final = ("topic_data", "partition_data", "records")
COUNT_TOLERANCE: Final = 2
COUNT_TOLERANCE_RATIO: Final = 0.1
SIZE_TOLERANCE_RATIO: Final = 1.5
RETRY_TOLERANCE: Final = 3
MIN_INTERVALS: Final = 3
MIN_BATCHES: Final = 20
MIN_INTERVAL_DIFFERENCE_NS: Final = 20_000_000
"""Intervals that are less apart than this differ by the machine's doing."""


def is_same_count(a: int, b: int) -> bool:
    """Whether two loops turned as often, all in all."""
    return abs(a - b) <= max(COUNT_TOLERANCE, COUNT_TOLERANCE_RATIO * max(a, b))


def is_same_size(a: float, b: float, loose: float = SIZE_TOLERANCE_RATIO) -> bool:
    """Whether two measures are of a size."""
    return max(a, b) <= loose * min(a, b) if min(a, b) > 0 else max(a, b) <= 0


def compare_frequency(key: MatchingKey, a: KeyProfile, b: KeyProfile) -> Iterator[KeyDifference]:
    """How often and at which intervals both sides say what one key means."""
    counts = [len(facts.rows) - sum(facts.retries.times.values()) for facts in (a, b)]
    if _counts_differ(key, *counts):
        yield _difference(DiffReason.COUNT, format_count(counts[0]), format_count(counts[1]), counts, a, b)
    retried = [sum(facts.retries.times.values()) for facts in (a, b)]
    if abs(retried[0] - retried[1]) > RETRY_TOLERANCE:
        words = "tried again after " + ", ".join(sorted({*a.retries.times, *b.retries.times}))
        yield _difference(DiffReason.COUNT, format_count(retried[0]), format_count(retried[1]), retried, a, b, words)
    pauses = [facts.retries.pauses for facts in (a, b)]
    if all(len(each) >= MIN_INTERVALS for each in pauses):
        yield from _compare_retry_backoff(pauses, a, b)
    if key.api in REPEATED_APIS:
        yield from _compare_intervals(a, b)


def _counts_differ(key: MatchingKey, a: int, b: int) -> bool:
    """Requests of a producer are as many as its batches make; turns of a loop, as it has time for."""
    if key.api == "Produce":
        return max(a, b) >= MIN_BATCHES and not is_same_size(a, b)
    return not is_same_count(a, b) if key.api in REPEATED_APIS else a != b


def _compare_intervals(a: KeyProfile, b: KeyProfile) -> Iterator[KeyDifference]:
    """How far apart the turns of a loop are, where both have enough of them."""
    intervals = [facts.intervals for facts in (a, b)]
    if all(len(each) >= MIN_INTERVALS for each in intervals):
        middles = [median(each) for each in intervals]
        if _intervals_differ(*middles):
            counts = [len(each) for each in intervals]
            told = [format_interval(middle) for middle in middles]
            yield _difference(DiffReason.TIMING, told[0], told[1], counts, a, b, "median", ("interval",))


def _compare_retry_backoff(pauses: Sequence[Sequence[int]], a: KeyProfile, b: KeyProfile) -> Iterator[KeyDifference]:
    middles = [median(each) for each in pauses]
    if _intervals_differ(*middles):
        told = [duration(round(middle)) for middle in middles]
        yield _difference(
            DiffReason.TIMING, told[0], told[1], [len(each) for each in pauses], a, b, "median", ("retry_backoff",)
        )


def _intervals_differ(a: float, b: float) -> bool:
    return abs(a - b) > MIN_INTERVAL_DIFFERENCE_NS and not is_same_size(a, b)


def _difference(
    reason: DiffReason,
    a: str,
    b: str,
    counts: Sequence[int],
    of_a: KeyProfile,
    of_b: KeyProfile,
    words: str = "",
    path: LeafPath = (),
) -> KeyDifference:
    return KeyDifference("", path, reason, a, b, counts[0], counts[1], words, of_a.rows[0], of_b.rows[0])


def compare_batching(a: ProducedBatches, b: ProducedBatches, names: NameMatching) -> Iterator[KeyDifference]:
    """What was produced, and how it was packed."""
    topics, keyed = _renamed(a, b, names)
    for topic in topics[0].keys() & topics[1].keys():
        one, other = topics[0][topic], topics[1][topic]
        if one != other:
            if not (a.unread or b.unread):
                told = [f"{counted(content.records, 'record')}" for content in (one, other)]
                yield _content_difference(told, one, other, f"keys, values or headers differ in {format_value(topic)}")
            continue
        placed = [{number: content for (name, number), content in side.items() if name == topic} for side in keyed]
        if placed[0] != placed[1]:
            told = [", ".join(f"{c.records} in partition {n}" for n, c in sorted(side.items())) for side in placed]
            as_many = ", and as many in each partition," if told[0] == told[1] else ","
            yield _content_difference(told, one, other, f"the same records{as_many} but keys go to other partitions")
    if min(len(a.records), len(b.records)) >= MIN_BATCHES:
        yield from _compare_medians("records a batch", a.records, b.records, str)
        yield from _compare_medians("bytes a batch", a.sizes, b.sizes, size)


def _renamed(
    a: ProducedBatches, b: ProducedBatches, names: NameMatching
) -> tuple[list[dict[ComparedValue, RecordSum]], list[dict[tuple[ComparedValue, int], RecordSum]]]:
    """What each side produced, by the topic's name in the comparison; and what has keys, by partition too."""
    topics: list[dict[ComparedValue, RecordSum]] = []
    keyed: list[dict[tuple[ComparedValue, int], RecordSum]] = []
    for n, side in enumerate((a, b)):
        called = {name: names.value(n, EntityName("topic", name)) for name in side.topics}
        topics.append({called[name]: content for name, content in side.topics.items()})
        keyed.append({(called[name], number): content for (name, number), content in side.keyed.items()})
    return topics, keyed


def _compare_medians(
    what: str, a: Sequence[int], b: Sequence[int], show: Callable[[int], str]
) -> Iterator[KeyDifference]:
    middles = [round(median(each)) for each in (a, b)]
    if not is_same_size(*middles):
        told = [show(middle) for middle in middles]
        words = f"median {what}"
        yield KeyDifference(
            "request", RECORDS, DiffReason.BATCHING, told[0], told[1], len(a), len(b), words, None, None
        )


def _content_difference(told: Sequence[str], a: RecordSum, b: RecordSum, words: str) -> KeyDifference:
    return KeyDifference(
        "request", RECORDS, DiffReason.CONTENT, told[0], told[1], a.records, b.records, words, None, None
    )
