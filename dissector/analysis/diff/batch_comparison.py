"""Compare what was produced: the records, how they were batched, and how long they waited for more.

A program that runs again batches its records otherwise: sizes may differ by half, and count only if there are enough
batches.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from dissector.analysis.diff.batch_limits import (
    are_cut_short,
    are_often_full,
    have_other_limits,
    is_limited_by_number,
    regularity,
)
from dissector.analysis.diff.batching import MIN_BATCHES, NS_PER_MS, ProducedBatches, RecordSum
from dissector.analysis.diff.compared_values import ComparedValue, EntityName
from dissector.analysis.diff.formatting import format_value
from dissector.analysis.diff.frequency_comparison import intervals_differ, is_same_size
from dissector.analysis.diff.kept_numbers import median_of
from dissector.analysis.diff.key_differences import KeyDifference
from dissector.analysis.diff.name_matching import NameMatching
from dissector.analysis.diff.result import DiffReason
from dissector.core.text import counted, duration, size

RECORDS: Final = ("topic_data", "partition_data", "records")
SAME_RECORDS: Final = "same records"
"""How the explanation of the same records in other partitions begins."""
BATCH_SIZE: Final = "Produce.request.topic_data.partition_data.records:batching"
BATCH_RECORDS: Final = "Produce.records_per_batch"
LINGER: Final = "Produce.linger"
LINGER_PATH: Final = ("linger",)
NO_SETTING: Final = "no setting"
MOSTLY: Final = 0.5


def compare_batching(
    a: ProducedBatches, b: ProducedBatches, names: NameMatching, *, is_partial: bool = False
) -> Iterator[KeyDifference]:
    """Compare which records were produced, but of partial captures, and how they were batched."""
    if not is_partial:
        yield from _compare_records(a, b, names)
    yield from _compare_batches(a, b)


def is_about_batches(found: KeyDifference) -> bool:
    """Return whether a difference of Produce is how records were batched, or what follows from that."""
    is_number = found.reason is DiffReason.COUNT and not (found.part or found.path or found.explanation)
    return is_number or found.reason is DiffReason.BATCHING or found.path == LINGER_PATH


def have_alike_batches(a: ProducedBatches, b: ProducedBatches) -> bool:
    """Return whether most batches of both sides are alike, and they have as many records: who sends fewer has a few
    large ones, of what came before it had a connection."""
    records = [sum(of.records for of in side.topics.values()) for side in (a, b)]
    if records[0] != records[1] or a.unread or b.unread or not (a.records and b.records):
        return False
    kinds = ((a.records, b.records), (a.per_request, b.per_request))
    return all(is_same_size(*map(median_of, of_sides)) for of_sides in kinds)


def _compare_records(a: ProducedBatches, b: ProducedBatches, names: NameMatching) -> Iterator[KeyDifference]:
    topics, keyed = _by_matched_topic(a, b, names)
    for topic, sum_a in topics[0].items():  # in this order, as the first of equal entries is shown with what follows
        sum_b = topics[1].get(topic)
        if sum_b is None:
            continue
        if sum_a != sum_b:
            if not (a.unread or b.unread):
                texts = [counted(each.records, "record") for each in (sum_a, sum_b)]
                yield _content_difference(
                    texts, sum_a, sum_b, f"keys, values or headers differ in {format_value(topic)}"
                )
            continue
        partitions = [{number: each for (name, number), each in side.items() if name == topic} for side in keyed]
        if partitions[0] != partitions[1] and not names.compares_partitions_together:
            texts = [", ".join(f"{each.records} in partition {n}" for n, each in sorted(side.items()))
                     for side in partitions]  # fmt: skip
            counts = ", same count in each partition" if texts[0] == texts[1] else ""
            yield _content_difference(texts, sum_a, sum_b, f"{SAME_RECORDS}{counts}, but keys in other partitions")


def _compare_batches(a: ProducedBatches, b: ProducedBatches) -> Iterator[KeyDifference]:
    """Compare how large batches are, and how long records wait in them: all of it is one difference."""
    if min(len(a.records), len(b.records)) < MIN_BATCHES:
        return
    knob = _batching_setting(a, b)
    found = [
        *_compare_medians("bytes", a.sizes, b.sizes, size, knob),
        *_compare_medians("records", a.records, b.records, str, knob),
    ]
    linger = None if knob in (BATCH_SIZE, BATCH_RECORDS) else _compare_lingers(a, b)
    if have_other_limits(a, b):
        found.insert(0, _compare_largest(a, b))
    if linger is not None:
        found.insert(0, linger)
    if found:
        followed = [f"{each.explanation}: {each.a} vs {each.b}" for each in found[1:]]
        yield found[0]._replace(explanation="; ".join((found[0].explanation, *followed)))


def _batching_setting(a: ProducedBatches, b: ProducedBatches) -> str:
    """Return the place of the setting that fits how batches differ: the largest size, where a side keeps to one that
    the other one does not, many batches of the side that has larger ones are about as large as any, or lingers of the
    other one are cut short; the largest number of records; how long records wait, where that differs; or none."""
    if have_other_limits(a, b):
        return BATCH_SIZE
    medians = [median_of(side.sizes) for side in (a, b)]
    if is_limited_by_number(a if medians[0] < medians[1] else b):
        return BATCH_RECORDS
    for side, median in zip((a, b), medians, strict=True):
        if (median == max(medians) and are_often_full(side.sizes)) or (median == min(medians) and are_cut_short(side)):
            return BATCH_SIZE
    if min(len(a.waits_ms), len(b.waits_ms)) < MIN_BATCHES:
        return NO_SETTING
    waits_ns = [median_of(side.waits_ms) * NS_PER_MS for side in (a, b)]
    return LINGER if intervals_differ(waits_ns[0], waits_ns[1]) else NO_SETTING


def _compare_largest(a: ProducedBatches, b: ProducedBatches) -> KeyDifference:
    texts = [size(max(each.sizes)) for each in (a, b)]
    return KeyDifference("request", RECORDS, DiffReason.BATCHING, texts[0], texts[1], len(a.sizes), len(b.sizes),
                         "largest batch", None, None, setting=BATCH_SIZE)  # fmt: skip


def _compare_lingers(a: ProducedBatches, b: ProducedBatches) -> KeyDifference | None:
    """Compare how long producers let records wait for more, if both sides have enough batches that show it. A program
    that gets no time lets them wait differently long."""
    lingers_ms = [side.lingers_ms for side in (a, b)]
    if min(map(len, lingers_ms)) < MIN_BATCHES:
        return None
    medians_ns = [round(median_of(each) * NS_PER_MS) for each in lingers_ms]
    shorter, longer = (a, b) if medians_ns[0] < medians_ns[1] else (b, a)
    if not intervals_differ(*medians_ns) or are_cut_short(shorter) or regularity(longer.lingers_ms) < MOSTLY:
        return None
    texts = [duration(each) for each in medians_ns]
    words = "median, from a batch's first record to its request"
    return KeyDifference("", LINGER_PATH, DiffReason.TIMING, texts[0], texts[1], len(lingers_ms[0]), len(lingers_ms[1]),
                         words, None, None, setting=LINGER)  # fmt: skip


def _by_matched_topic(
    a: ProducedBatches, b: ProducedBatches, names: NameMatching
) -> tuple[list[dict[ComparedValue, RecordSum]], list[dict[tuple[ComparedValue, int], RecordSum]]]:
    """Return each side's records by the topic's matched name; those with keys by topic and partition."""
    topics: list[dict[ComparedValue, RecordSum]] = []
    keyed: list[dict[tuple[ComparedValue, int], RecordSum]] = []
    for n, side in enumerate((a, b)):
        matched = {name: names.value(n, EntityName("topic", name)) for name in side.topics}
        topics.append({matched[name]: each for name, each in side.topics.items()})
        keyed.append({(matched[name], number): each for (name, number), each in side.keyed.items()})
    return topics, keyed


def _compare_medians(
    name: str, a: "array[int]", b: "array[int]", show: Callable[[int], str], setting: str
) -> Iterator[KeyDifference]:
    medians = [round(median_of(each)) for each in (a, b)]
    if not is_same_size(*medians):
        texts = [show(each) for each in medians]
        yield KeyDifference("request", RECORDS, DiffReason.BATCHING, texts[0], texts[1], len(a), len(b),
                            f"median {name} per batch", None, None, setting=setting)  # fmt: skip


def _content_difference(texts: Sequence[str], a: RecordSum, b: RecordSum, explanation: str) -> KeyDifference:
    return KeyDifference("request", RECORDS, DiffReason.CONTENT, texts[0], texts[1], a.records, b.records,
                         explanation, None, None)  # fmt: skip
