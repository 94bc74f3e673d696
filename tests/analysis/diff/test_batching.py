"""What is known of produced batches, by columns and request by request."""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dissector.analysis.diff import DiffReason, batching
from dissector.analysis.diff.batch_comparison import (
    BATCH_RECORDS,
    BATCH_SIZE,
    LINGER,
    compare_batching,
    have_alike_batches,
)
from dissector.analysis.diff.batching import ProducedBatches, RecordSum
from dissector.analysis.diff.name_matching import NameMatching
from dissector.analysis.diff.name_uses import NameUses
from dissector.analysis.diff.side_profile import SideProfile
from dissector.bulk.record_columns import RecordsFields, RecordsOfRows
from tests.analysis.diff.editing import Lines, bundled, compared, edited, side
from tests.cases import cases
from tests.conftest import PCAPS

PRODUCERS = ["java", "java-0.10.2", "java-transactions", "sarama-2.3.0", "librdkafka-acks0"]


def produced(name: str) -> ProducedBatches:
    return SideProfile(side(str(PCAPS / f"{name}.pcapng")), {}, {}).batches


@pytest.mark.parametrize("name", PRODUCERS)
def test_columns_add_what_decoded_requests_add(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_is_plain(*_: object) -> Iterator[RecordsFields]:
        return iter(())

    by_columns = produced(name)
    assert by_columns.per_request
    monkeypatch.setattr(RecordsOfRows, "fields", none_is_plain)
    assert produced(name) == by_columns


def test_records_beyond_a_bound_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = produced("java")
    monkeypatch.setattr(batching, "MAX_RECORD_BYTES", sum(whole.sizes) // 2)
    monkeypatch.setattr(batching, "MAX_BATCHES", 2)
    bounded = produced("java")
    assert 0 < bounded.unread < len(whole.sizes)
    assert bounded.read_bytes <= sum(whole.sizes) // 2
    assert bounded.codecs == whole.codecs
    assert [len(numbers) for numbers in (bounded.sizes, bounded.records, bounded.waits_ms)] == [2, 2, 2]


def sent_before(error: int | None, *, drop_partitions: int = 0) -> Callable[[Lines], Lines]:
    """Have the first Produce request sent before, when the broker refused all of it, or all partitions but some;
    without an error, when there was no response."""

    def change(lines: Lines) -> Lines:
        at = next(n for n, line in enumerate(lines) if line.get("api") == "Produce")
        before = copy.deepcopy(lines[at])
        before["correlation_id"] = before["request"]["header"]["correlation_id"] = 1_000
        if error is None:
            before.pop("response")
        else:
            before["response"]["header"]["correlation_id"] = 1_000
            answers = [
                each for topic in before["response"]["body"]["responses"] for each in topic["partition_responses"]
            ]
            for each in answers[drop_partitions:]:
                each["error_code"] = error
        return [*lines[:at], before, *lines[at:]]

    return change


@pytest.mark.long
@cases("error", [6, 7, 46, None])
def test_records_sent_again_are_no_further_records(tmp_path: Path, error: int | None) -> None:
    """Refused (NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT, DUPLICATE_SEQUENCE_NUMBER), or without a response."""
    again = edited(bundled("compare-java-1"), tmp_path, sent_before(error))
    comparison = compared(bundled("compare-java-1"), again)
    assert [entry for entry in comparison.entries if entry.reason is DiffReason.CONTENT] == []


@pytest.mark.long
@cases("error", [0, 6])
def test_records_that_the_broker_has_twice_are_twice_as_many(tmp_path: Path, error: int) -> None:
    """All of the request, or the one partition that was not refused."""
    again = edited(bundled("compare-java-1"), tmp_path, sent_before(error, drop_partitions=1))
    [entry] = [
        entry for entry in compared(bundled("compare-java-1"), again).entries if entry.reason is DiffReason.CONTENT
    ]
    assert entry.count_a < entry.count_b


def test_the_setting_behind_batches_of_the_same_median_size_is_the_same_from_both_sides() -> None:
    full, with_a_large_one = ProducedBatches(), ProducedBatches()
    full.sizes.extend([5_000] * 20)
    with_a_large_one.sizes.extend([5_000] * 19 + [50_000])
    full.records.extend([10] * 20)
    with_a_large_one.records.extend([100] * 20)
    names = NameMatching({}, {}, (NameUses({}), NameUses({})))
    for a, b in ((full, with_a_large_one), (with_a_large_one, full)):
        assert [found.setting for found in compare_batching(a, b, names)] == [BATCH_SIZE]


@cases(
    ("records", "per_request", "is_alike"),
    [
        ([1] * 297 + [3], [1] * 298, True),
        ([1] * 130 + [95, 75], [1] * 132, True),  # what came before librdkafka had a connection
        ([2] * 150, [1] * 150, False),
        ([1] * 300, [2] * 150, False),  # Java sends the batches of several partitions together
        ([1] * 200, [1] * 200, False),
    ],
)
def test_a_few_large_batches_make_fewer_requests(records: list[int], per_request: list[int], *, is_alike: bool) -> None:
    plain, other = ProducedBatches(), ProducedBatches()
    for each, numbers, requests in ((plain, [1] * 300, [1] * 300), (other, records, per_request)):
        each.records.extend(numbers)
        each.per_request.extend(requests)
        each.topics["orders"] = RecordSum(sum(numbers), 7)
    assert have_alike_batches(plain, other) is have_alike_batches(other, plain) is is_alike
    other.unread = 1
    assert not have_alike_batches(plain, other)


IRREGULAR_MS = [23, 31, 38, 41, 43, 46, 57, 64, 25, 60] * 6
"""Of batches of three records of 2 kB, 10 ms after each other, to two partitions: `batch.size` is 8 kB."""


@cases(
    ("lingers_ms", "records", "expected"),
    [
        (IRREGULAR_MS, 3, [(BATCH_SIZE, "median bytes per batch")]),
        # near misses: a linger is regular, and a batch of one record is full of that
        ([43] * 60, 3, [(LINGER, "median, from a batch's first record to its request")]),
        (IRREGULAR_MS, 1, [(LINGER, "median, from a batch's first record to its request")]),
    ],
)
def test_a_full_batch_cuts_a_linger_short(lingers_ms: list[int], records: int, expected: list[tuple[str, str]]) -> None:
    short, full = ProducedBatches(), ProducedBatches()
    for each, of_each, size, waits_ms in ((short, records, 6_200, lingers_ms), (full, 8, 16_500, [98] * 60)):
        each.records.extend([of_each] * 60)
        each.sizes.extend([size] * 60 if each is short else [16_500] * 50 + [33_000] * 10)
        each.lingers_ms.extend(waits_ms)
        each.waits_ms.extend(waits_ms)
    names = NameMatching({}, {}, (NameUses({}), NameUses({})))
    for a, b in ((short, full), (full, short)):
        found = [(each.setting, each.explanation.split(";")[0]) for each in compare_batching(a, b, names)]
        assert found == expected


@cases(
    ("other_sizes", "overtaken", "records", "waits_ms", "expected"),
    [
        ([470] * 30 + [627, 745] * 15, [410, 515] * 25, 4, 50, [(BATCH_SIZE, "largest batch")]),
        # near misses: the other one's are no larger; a linger that ends while the next record comes, of any size;
        # records that come as fast as time is counted; a record that makes a batch; responses that are waited for
        ([516] * 60, [410, 515] * 25, 4, 50, []),
        ([470] * 30 + [627, 745] * 15, [200, 515] * 25, 4, 50, []),
        ([470] * 30 + [627, 745] * 15, [410, 515] * 25, 4, 5, []),
        ([470] * 30 + [627, 745] * 15, [410, 515] * 25, 1, 50, []),
        ([470] * 30 + [627, 745] * 15, [410, 515] * 10, 4, 50, []),
    ],
)
def test_a_limit_ends_batches_that_have_no_room_for_the_next_record(
    other_sizes: list[int], overtaken: list[int], records: int, waits_ms: int, expected: list[tuple[str, str]]
) -> None:
    limited, other = ProducedBatches(), ProducedBatches()
    for each, sizes in ((limited, [410, 515] * 30), (other, other_sizes)):
        each.sizes.extend(sizes)
        each.records.extend([records] * 60)
        each.per_request.extend([1] * 60)
        each.lingers_ms.extend([waits_ms] * 60)
        each.waits_ms.extend([waits_ms] * 60)
    limited.overtaken.extend(overtaken)
    names = NameMatching({}, {}, (NameUses({}), NameUses({})))
    for a, b in ((limited, other), (other, limited)):
        assert [(each.setting, each.explanation) for each in compare_batching(a, b, names)] == expected


@cases(
    ("size", "records", "lingers_ms", "expected"),
    [
        (403, [3] * 60, IRREGULAR_MS, [BATCH_RECORDS]),
        # near misses: as many records as come in a linger, other numbers of them, and a full batch
        (403, [3] * 60, [43] * 60, [LINGER]),
        (403, [2, 3, 4] * 20, IRREGULAR_MS, [LINGER]),
        (6_200, [3] * 60, IRREGULAR_MS, [BATCH_SIZE]),
    ],
)
def test_a_number_of_records_ends_batches(
    size: int, records: list[int], lingers_ms: list[int], expected: list[str]
) -> None:
    limited, other = ProducedBatches(), ProducedBatches()
    sides = ((limited, size, records, lingers_ms), (other, 2 * size, [6, 7, 8] * 20, [98] * 60))
    for each, bytes_of_each, numbers, waits_ms in sides:
        each.records.extend(numbers)
        each.sizes.extend([bytes_of_each] * 60)
        each.lingers_ms.extend(waits_ms)
        each.waits_ms.extend(waits_ms)
    names = NameMatching({}, {}, (NameUses({}), NameUses({})))
    for a, b in ((limited, other), (other, limited)):
        assert [each.setting for each in compare_batching(a, b, names)] == expected


def test_records_that_wait_differently_long_show_no_linger() -> None:
    """A program that gets no time on a busy machine; the sizes of its batches are the same."""
    idle, busy = ProducedBatches(), ProducedBatches()
    for each, lingers_ms in ((idle, [5] * 60), (busy, [5, 12, 30, 55, 95, 70] * 10)):
        each.records.extend([1] * 60)
        each.sizes.extend([175] * 60)
        each.lingers_ms.extend(lingers_ms)
        each.waits_ms.extend(lingers_ms)
    names = NameMatching({}, {}, (NameUses({}), NameUses({})))
    assert [*compare_batching(idle, busy, names), *compare_batching(busy, idle, names)] == []
