"""Compare numbers that vary from run to run: how many requests, at which intervals, after which pauses again.

Close numbers are equal. A program that runs again sends a few Fetches more, and retries as long as a coordinator loads.
So repeated requests may differ by two or by a tenth, intervals by half, and only if there are enough of them.

The number of repeated requests grows with the time that a recording lasts. Where their rate is the same, their number
says nothing; where the recordings last differently long, the rate is what differs. Other intervals explain another
number: they are one difference.
"""

import math
from array import array
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from dissector.analysis.diff.captured_span import BOTH_WHOLE, Sights
from dissector.analysis.diff.compared_values import ComparedValue
from dissector.analysis.diff.formatting import describe_key, format_interval, format_rate
from dissector.analysis.diff.kept_numbers import as_column, median_of
from dissector.analysis.diff.key_differences import KeyDifference
from dissector.analysis.diff.key_profile import KeyProfile
from dissector.analysis.diff.matching_keys import REPEATED_APIS, MatchingKey
from dissector.analysis.diff.message_leaves import LeafPath
from dissector.analysis.diff.name_uses import holds_partitions
from dissector.analysis.diff.result import DiffReason
from dissector.core.text import counted, duration

COUNT_TOLERANCE: Final = 2
COUNT_TOLERANCE_RATIO: Final = 0.1
SIZE_TOLERANCE_RATIO: Final = 1.5
RETRY_TOLERANCE: Final = 3
DURATION_RATIO: Final = 1.5
"""Recordings whose durations differ by more last differently long."""
MEDIAN: Final = "median, on a connection"
UNKNOWN_DURATIONS: Final = (0, 0)
MIN_INTERVALS: Final = 4
"""Fewer intervals have no median to speak of."""
MIN_BACKOFFS: Final = 3
MIN_RATE_NS: Final = 10_000_000_000
"""In less time a rate says no more than a number."""
REGULAR: Final = 0.7
"""So many of a period's intervals are about as long as the median: other requests follow from what happens."""
MIN_RANDOM_NS: Final = 250_000_000
"""Requests that follow each other faster have no random pauses between them."""
CHANCE: Final = 2
"""So many standard deviations: beyond, counts differ."""
MIN_PRODUCE_REQUESTS: Final = 50
"""Below, how many requests a producer needs depends on how fast its program makes the records: librdkafka sent the same
100 records in 6 requests and in 20."""
MIN_INTERVAL_DIFFERENCE_NS: Final = 20_000_000
"""Smaller differences between intervals are noise of the machine."""


PER_WORK: Final = frozenset(
    ("Produce", "ApiVersions", "FindCoordinator", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit")
)
"""Repeated requests whose number depends on records, connections and transactions, and on no time."""


TIMED: Final = frozenset(("Metadata", "Heartbeat", "OffsetCommit"))
"""Requests that clients repeat at an interval that they are set to, besides others."""
LOOKUPS: Final = frozenset(("ListOffsets", "OffsetFetch", "OffsetForLeaderEpoch"))
"""Steps that are taken for the partitions that are known by then: Streams looks its own up in 5 requests or in 6."""
SEVERAL: Final = 3
CONNECT: Final = "connect"
"""The protocol type of groups of workers."""


def is_same_count(a: int, b: int) -> bool:
    """Return whether two counts of repeated requests are about equal."""
    return abs(a - b) <= max(COUNT_TOLERANCE, COUNT_TOLERANCE_RATIO * max(a, b))


def is_same_size(a: float, b: float, ratio: float = SIZE_TOLERANCE_RATIO) -> bool:
    """Return whether two measures differ by at most a factor."""
    return max(a, b) <= ratio * min(a, b) if min(a, b) > 0 else max(a, b) <= 0


def compare_frequency(
    key: MatchingKey, a: KeyProfile, b: KeyProfile, durations_ns: tuple[int, int] = UNKNOWN_DURATIONS, *,
    is_partial: bool = False,
) -> Iterator[KeyDifference]:  # fmt: skip
    """Compare how often, and at which intervals, both sides send the requests of one key; `durations_ns` are those of
    both recordings. Of partial ones (`captured_span`) numbers say nothing, but rates do."""
    counts = [len(profile.rows) - profile.retry_count for profile in (a, b)]
    intervals = list(_compare_intervals(a, b)) if key.api in REPEATED_APIS - PER_WORK else []
    yield from intervals
    is_other = not intervals and _counts_differ(key, *counts) and not _is_of_worker(key, a, *counts)
    if is_other and not _is_chance(key, a, b) and not _is_by_partition(key, a, b):
        if is_partial:
            yield from _compare_rates_while_sent(key, a, b)
        else:
            yield from _compare_rates(key, counts, a, b, durations_ns)
    yield from _compare_retries(key, a, b, is_partial=is_partial)


def compare_lost(key: MatchingKey, a: KeyProfile, b: KeyProfile, both: Sights = BOTH_WHOLE) -> Iterator[KeyDifference]:
    """Compare how many requests of a key lost their response. A side that may have missed requests has some of those
    that are never answered, or none at all; where both lose all, in the same versions, only how
    often they try may differ."""
    counts = [len(profile.lost) for profile in (a, b)]
    if all(counts) and counts == [len(each.rows) for each in (a, b)] and a.versions.keys() == b.versions.keys():
        return
    if bool(counts[0]) == bool(counts[1]) and (
        is_same_count(*counts) or (counts[0] and any(each.is_partial for each in both))
    ):
        return
    for mine, other, sight in ((a, b, both[0]), (b, a, both[1])):
        if sight.is_partial and not mine.lost and not (mine.rows and len(other.lost) == len(other.rows)):
            return
    versions = sorted({version for profile in (a, b) if profile.lost for version in profile.versions})
    texts = [f"{len(profile.lost):,} of {len(profile.rows):,}" for profile in (a, b)]
    rows = [profile.lost[0] if profile.lost else None for profile in (a, b)]
    words = f"v{', v'.join(map(str, versions))}: the connection was closed before the response came"
    subject = describe_key(key) if key.subject else ""
    yield KeyDifference(
        "", (), DiffReason.UNANSWERED, texts[0], texts[1], counts[0], counts[1], words, rows[0], rows[1], subject
    )


def _compare_rates(
    key: MatchingKey, counts: Sequence[int], a: KeyProfile, b: KeyProfile, durations_ns: tuple[int, int]
) -> Iterator[KeyDifference]:
    """Compare numbers of requests that differ: as rates, if the recordings last differently long."""
    is_timed = key.api in REPEATED_APIS - PER_WORK and min(durations_ns) > 0
    intervals = [profile.intervals_ns for profile in (a, b)]
    is_repeated = is_timed and all(len(each) >= MIN_INTERVALS for each in intervals)
    has_same_rate = is_repeated and is_same_size(*(sum(each) / len(each) for each in intervals))
    if not is_timed or is_same_size(*durations_ns, ratio=DURATION_RATIO):
        in_time = [n / (each or 1) for n, each in zip(counts, durations_ns, strict=True)]
        if not has_same_rate or not (is_same_size(*counts) or is_same_size(*in_time)):
            yield _rhythm_of_one(key, a, b) or _count_difference(counts, a, b)
        return
    if has_same_rate:
        return
    shorter = min(durations_ns)
    if is_same_count(*(round(n * shorter / each) for n, each in zip(counts, durations_ns, strict=True))):
        return
    spans = [f"{n:,} in {duration(each)}" for n, each in zip(counts, durations_ns, strict=True)]
    found = _count_difference(counts, a, b)
    if not is_repeated or shorter < MIN_RATE_NS:
        yield found._replace(a=spans[0], b=spans[1])
        return
    texts = [format_rate(n, each) for n, each in zip(counts, durations_ns, strict=True)]
    yield found._replace(reason=DiffReason.RATE, a=texts[0], b=texts[1], explanation=" vs ".join(spans))


def _compare_rates_while_sent(key: MatchingKey, a: KeyProfile, b: KeyProfile) -> Iterator[KeyDifference]:
    """Compare how often both sides send repeated requests, in the time from their first one to their last one."""
    times_ns = [as_column(profile.intervals_ns) for profile in (a, b)]
    if key.api not in REPEATED_APIS - PER_WORK or min(map(len, times_ns)) < MIN_INTERVALS:
        return
    sums_ns = [int(each.sum()) for each in times_ns]
    if min(sums_ns) < MIN_RATE_NS or is_same_size(*(n / len(each) for n, each in zip(sums_ns, times_ns, strict=True))):
        return
    counts = [len(each) for each in times_ns]
    texts = [format_rate(n, each) for n, each in zip(counts, sums_ns, strict=True)]
    found = _count_difference([len(a.rows), len(b.rows)], a, b, "while they are sent, on a connection")
    yield found._replace(reason=DiffReason.RATE, a=texts[0], b=texts[1])


def _counts_differ(key: MatchingKey, a: int, b: int) -> bool:
    """A producer sends as many requests as its batches need; a repeated request is sent as long as there is time."""
    if key.api == "Produce":
        return max(a, b) >= MIN_PRODUCE_REQUESTS and not is_same_size(a, b)
    if key.api in LOOKUPS and min(a, b) >= SEVERAL:
        return abs(a - b) > 1
    return not is_same_count(a, b) if key.api in REPEATED_APIS else a != b


def _is_of_worker(key: MatchingKey, a: KeyProfile, count_a: int, count_b: int) -> bool:
    """Return whether a worker of Connect may join once more: it does when a connector changes, and several changes may
    come together."""
    kinds = a.fields.get(("request", ("protocol_type",)), ())
    is_join = key.api in ("JoinGroup", "SyncGroup") and CONNECT in kinds
    return is_join and min(count_a, count_b) >= SEVERAL and abs(count_a - count_b) <= 1


def _is_by_partition(key: MatchingKey, a: KeyProfile, b: KeyProfile) -> bool:
    """Return whether both sides look up as many partitions with each request: topics have as many as they have."""
    partitions = [len(_partitions_asked(each)) for each in (a, b)]
    if key.api not in LOOKUPS or not all(partitions) or partitions[0] == partitions[1]:
        return False
    return len(a.rows) * partitions[1] == len(b.rows) * partitions[0]


def _partitions_asked(profile: KeyProfile) -> set[tuple[LeafPath, ComparedValue]]:
    """Return the partitions that requests name, each with where it is in its request."""
    return {
        (path[:-1], value)
        for (part, path), values in profile.fields.items()
        if part == "request" and holds_partitions(path)
        for value in values
        if isinstance(value, int)
    }


def _is_chance(key: MatchingKey, a: KeyProfile, b: KeyProfile) -> bool:
    """Return whether counts may differ by chance: a client asks again after a random time (kafka-go for metadata), or
    fetches once or twice on each of several connections, before they are closed. Such counts vary by their square root;
    requests of one burst have causes, which one can tell."""
    counts = [len(each.rows) for each in (a, b)]
    if key.api in PER_WORK or abs(counts[0] - counts[1]) > CHANCE * math.sqrt(sum(counts)):
        return False
    intervals = max((each.intervals_ns for each in (a, b)), key=len)
    if len(intervals) < MIN_INTERVALS:
        return min(a.connections, b.connections) >= SEVERAL
    return not _is_period(intervals) and median_of(intervals) >= MIN_RANDOM_NS


def _compare_intervals(a: KeyProfile, b: KeyProfile) -> Iterator[KeyDifference]:
    """Compare the median intervals of repeated requests, if both sides have enough of them, and not mostly one on each
    connection: what follows that on a few is no rhythm."""
    intervals = [profile.intervals_ns for profile in (a, b)]
    are_repeated = all(len(each.rows) >= 2 * each.connections for each in (a, b))
    if are_repeated and all(len(each) >= MIN_INTERVALS for each in intervals) and all(map(_is_period, intervals)):
        medians = [median_of(each) for each in intervals]
        if intervals_differ(*medians):
            counts = [len(each) for each in intervals]
            texts = [format_interval(each) for each in medians]
            yield _timing_difference(texts, counts, a, b, ("interval",))._replace(explanation=_each_connection(a, b))


def _rhythm_of_one(key: MatchingKey, a: KeyProfile, b: KeyProfile) -> KeyDifference | None:
    """Return the interval at which one side repeats a request of which the other side has too few for one, most of them
    not as soon after another."""
    if key.api not in TIMED or key.step:
        return None
    regular, other = sorted((a, b), key=lambda each: len(each.intervals_ns), reverse=True)
    interval_ns = median_of(regular.intervals_ns) if len(regular.intervals_ns) >= MIN_INTERVALS else 0
    if interval_ns < MIN_RANDOM_NS or not _is_period(regular.intervals_ns):
        return None
    near = sum(is_same_size(each, interval_ns) for each in other.intervals_ns)
    if len(other.intervals_ns) >= MIN_INTERVALS or 2 * near > len(other.intervals_ns):
        return None
    texts = [format_interval(interval_ns) if side is regular else counted(len(side.rows), "request") for side in (a, b)]
    return _timing_difference(texts, [len(each.rows) for each in (a, b)], a, b, ("interval",))


def _is_period(intervals_ns: "array[int]") -> bool:
    """Return whether requests come at regular intervals."""
    middle, all_ns = median_of(intervals_ns), as_column(intervals_ns)
    shorter, longer = np.minimum(all_ns, middle), np.maximum(all_ns, middle)
    is_near = np.where(shorter > 0, longer <= SIZE_TOLERANCE_RATIO * shorter, longer <= 0)
    return bool(is_near.sum() >= REGULAR * len(intervals_ns))


def _each_connection(a: KeyProfile, b: KeyProfile) -> str:
    """Say on how many connections the requests are sent, if the sides differ: they may send as many in all."""
    (few, one), (many, other) = sorted((side.connections, name) for side, name in ((a, "{a}"), (b, "{b}")))
    return MEDIAN if few == many else f"{MEDIAN}; {one} sends them on {few:,}, {other} on {many:,}"


def _compare_retries(key: MatchingKey, a: KeyProfile, b: KeyProfile, *, is_partial: bool) -> Iterator[KeyDifference]:
    """Compare the pauses of both sides before they try again, if they are regular: their number then depends on how
    long the cluster takes. Other pauses end with what happens, as those of lookups do, which wait for metadata; and
    numbers vary by their square root."""
    counts = [profile.retry_count for profile in (a, b)]
    backoffs = [profile.retries.backoffs_ns for profile in (a, b)]
    is_lookup, are_many = key.api in LOOKUPS, all(len(each) >= MIN_BACKOFFS for each in backoffs)
    if are_many and not is_lookup and all(map(_is_period, backoffs)):
        yield from _compare_backoffs(backoffs, a, b)
        return
    is_chance = (are_many or is_lookup) and abs(counts[0] - counts[1]) <= CHANCE * math.sqrt(sum(counts))
    if key.api == "Metadata" and all(backoffs):  # a topic is there when the cluster has it
        is_chance |= is_same_size(*map(min, backoffs))
    if not is_partial and not is_chance and abs(counts[0] - counts[1]) > RETRY_TOLERANCE:
        errors = ", ".join(sorted({*a.retries.counts, *b.retries.counts}))
        yield _count_difference(counts, a, b, f"retries after {errors}")


def are_backoffs(pauses_ns: "array[int]") -> bool:
    """Return whether pauses before retries may be a setting's: there are few of them, or they are regular."""
    return len(pauses_ns) < MIN_BACKOFFS or _is_period(pauses_ns)


def _compare_backoffs(backoffs: "Sequence[array[int]]", a: KeyProfile, b: KeyProfile) -> Iterator[KeyDifference]:
    medians = [median_of(each) for each in backoffs]
    if intervals_differ(*medians):
        texts = [duration(round(each)) for each in medians]
        yield _timing_difference(texts, [len(each) for each in backoffs], a, b, ("retry_backoff",))


def intervals_differ(a: float, b: float) -> bool:
    """Return whether two times, in nanoseconds, differ by more than a factor, and by more than noise."""
    return abs(a - b) > MIN_INTERVAL_DIFFERENCE_NS and not is_same_size(a, b)


def _count_difference(counts: Sequence[int], a: KeyProfile, b: KeyProfile, explanation: str = "") -> KeyDifference:
    texts = [f"{count:,}" for count in counts]
    return KeyDifference("", (), DiffReason.COUNT, texts[0], texts[1], counts[0], counts[1], explanation,
                         a.rows[0], b.rows[0])  # fmt: skip


def _timing_difference(
    texts: Sequence[str], counts: Sequence[int], a: KeyProfile, b: KeyProfile, path: LeafPath
) -> KeyDifference:
    return KeyDifference("", path, DiffReason.TIMING, texts[0], texts[1], counts[0], counts[1], MEDIAN,
                         a.rows[0], b.rows[0])  # fmt: skip
