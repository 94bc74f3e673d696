"""How often requests are sent, in which intervals, and how soon again after errors."""

from collections import Counter
from pathlib import Path

import pytest

from dissector.analysis.diff import DiffReason, DiffSide, PairVerdict, diff
from dissector.analysis.diff.compared_values import EntityName
from dissector.analysis.diff.frequency_comparison import compare_frequency
from dissector.analysis.diff.key_profile import KeyProfile
from dissector.analysis.diff.matching_keys import MatchingKey
from dissector.analysis.diff.message_leaves import UNLABELED, ElementLabel
from dissector.filter import parse
from tests.analysis.diff.editing import Lines, bundled, compared, edited, entry_texts, of, side

JAVA = bundled("compare-java-1")


def test_far_fewer_repetitions_are_a_difference(tmp_path: Path) -> None:
    def fewer(lines: Lines) -> Lines:
        gone = {line["number"] for line in of(lines, "Fetch")[5:12]}
        return [line for line in lines if line["number"] not in gone]

    assert entry_texts(compared(JAVA, edited(JAVA, tmp_path, fewer))) == [("Fetch", "", "count", "15", "8")]


def test_one_repetition_less_is_no_difference(tmp_path: Path) -> None:
    def one_fewer(lines: Lines) -> Lines:
        gone = of(lines, "Fetch")[8]["number"]
        return [line for line in lines if line["number"] != gone]

    comparison = compared(JAVA, edited(JAVA, tmp_path, one_fewer))
    assert comparison.is_same
    assert [pair.verdict for pair in comparison.pairs if pair.b is None] == [PairVerdict.MORE]


def test_another_interval_of_repeated_requests_is_a_difference(tmp_path: Path) -> None:
    def slower(lines: Lines) -> None:
        start = lines[0]["request"]["time_ns"]
        for line in lines:
            for part in ("request", "response"):
                line[part]["time_ns"] = start + 3 * (line[part]["time_ns"] - start)

    found = entry_texts(compared(JAVA, edited(JAVA, tmp_path, slower)))
    assert [(api, path, reason) for api, path, reason, _, _ in found] == [("Fetch", "interval", "timing")]


def profile_with(count: int, backoffs_ns: list[int]) -> KeyProfile:
    """A profile with that many exchanges, and one retry for each backoff."""
    profile = KeyProfile()
    profile.rows.extend(range(count + len(backoffs_ns)))
    profile.retries.backoffs_ns.extend(backoffs_ns)
    if backoffs_ns:
        profile.retries.counts["NOT_COORDINATOR"] = len(backoffs_ns)
    return profile


def frequency(api: str, a: KeyProfile, b: KeyProfile) -> list[tuple[str, str, str]]:
    return [(str(each.reason), each.a, each.b) for each in compare_frequency(MatchingKey(0, api, (), ""), a, b)]


def lookups(requests: int, partitions: int) -> KeyProfile:
    """A profile with requests that look up the offsets of partitions of a topic."""
    profile = profile_with(requests, [])
    place = "request", ("topics", ElementLabel(EntityName("topic", "orders")), "partition_indexes", UNLABELED)
    profile.fields[place] = Counter(range(partitions))
    return profile


@pytest.mark.parametrize(
    ("a", "b", "differs"),
    [
        ((2, 2), (6, 6), False),  # one for each partition
        ((1, 1), (2, 4), True),
        ((1, 4), (2, 8), False),
        ((1, 4), (2, 4), True),  # as many partitions: one side asks twice
        ((2, 0), (6, 0), True),
    ],
)
def test_lookups_of_more_partitions_are_no_difference(a: tuple[int, int], b: tuple[int, int], differs: bool) -> None:
    for one, other in ((a, b), (b, a)):
        assert bool(frequency("OffsetFetch", lookups(*one), lookups(*other))) == differs
    assert frequency("CreateTopics", lookups(*a), lookups(*b))


def test_retry_backoffs_are_compared_from_three_on() -> None:
    quick, slow = [100_000_000] * 3, [300_000_000] * 3
    assert frequency("JoinGroup", profile_with(1, quick), profile_with(1, slow)) == [("timing", "100.0 ms", "300.0 ms")]
    assert frequency("JoinGroup", profile_with(1, quick[:1]), profile_with(1, slow[:1])) == []


@pytest.mark.parametrize(
    ("pauses_ms", "others_ms", "found"),
    [
        ((100, 100, 100), (100,) * 9, []),  # for as long as it takes
        ((152, 85, 230, 70, 156), (26, 10, 122, 45, 5, 6, 35, 6, 14, 7, 6), []),  # they end with what happens
        ((152, 85, 230, 70, 156), (26, 10, 122, 45, 5) * 4, [("count", "5", "20")]),
        ((100, 100, 100), (26, 10, 122, 45, 5) * 4, [("count", "3", "20")]),
        ((100, 100, 100), (26, 10, 122, 45, 5), []),
        ((100, 100), (100,) * 9, [("count", "2", "9")]),
        ((), (100,) * 4, [("count", "0", "4")]),
        ((), (100,) * 3, []),
    ],
)
def test_retries_are_compared_by_their_pauses_or_by_their_number(
    pauses_ms: tuple[int, ...], others_ms: tuple[int, ...], found: list[tuple[str, str, str]]
) -> None:
    a, b = (profile_with(1, [each * 1_000_000 for each in pauses]) for pauses in (pauses_ms, others_ms))
    assert frequency("JoinGroup", a, b) == found
    assert frequency("JoinGroup", b, a) == [(reason, more, less) for reason, less, more in found]


@pytest.mark.parametrize(
    ("kind", "a", "b", "differs"),
    [
        ("connect", 3, 4, False),
        ("connect", 3, 5, True),
        ("connect", 2, 3, True),
        ("consumer", 3, 4, True),
    ],
)
@pytest.mark.parametrize("api", ["JoinGroup", "SyncGroup"])
def test_a_worker_may_join_once_more(kind: str, a: int, b: int, differs: bool, api: str) -> None:
    profiles = [profile_with(each, []) for each in (a, b)]
    for profile in profiles:
        profile.fields["request", ("protocol_type",)] = Counter([kind])
    assert bool(frequency(api, *profiles)) == differs
    assert frequency("LeaveGroup", *profiles)


def test_the_number_of_produce_requests_is_compared_only_if_there_are_many() -> None:
    assert frequency("Produce", profile_with(2, []), profile_with(4, [])) == []
    assert frequency("Produce", profile_with(2, []), profile_with(100, [])) == [("count", "2", "100")]
    assert frequency("Produce", profile_with(100, []), profile_with(130, [])) == []


def test_more_requests_of_a_longer_recording_at_the_same_rate_are_no_difference() -> None:
    one, second = profile_with(20, []), 1_000_000_000
    for count, duration_s in ((80, 40), (20, 11), (21, 30)):
        other = profile_with(count, [])
        assert rates("Heartbeat", one, other, (10 * second, duration_s * second)) == []


def test_another_rate_of_recordings_of_other_durations_is_a_difference() -> None:
    second = 1_000_000_000
    often, seldom = profile_with(20, []), profile_with(40, [])
    often.intervals_ns.extend([second // 2] * 19)
    seldom.intervals_ns.extend([second // 2] * 29 + [5 * second] * 10)  # the median is the same
    [(reason, a, b)] = rates("Heartbeat", often, seldom, (10 * second, 80 * second))
    assert (reason, a, b) == ("rate", "2.0 a second", "30.0 a minute")
    short = rates("Heartbeat", often, seldom, (9 * second, 80 * second))  # too little time for a rate
    assert short == [("count", "20 in 9.000 s", "40 in 80.000 s")]
    seldom.intervals_ns = often.intervals_ns[:2]  # too few for a rate
    assert rates("Heartbeat", often, seldom, (10 * second, 80 * second)) == [
        ("count", "20 in 10.000 s", "40 in 80.000 s")
    ]


def test_requests_that_follow_from_others_have_no_period() -> None:
    """They come when there is something: the median of their intervals says nothing."""
    second = 1_000_000_000
    regular, by_chance = profile_with(20, []), profile_with(20, [])
    regular.intervals_ns.extend([second] * 19)
    by_chance.intervals_ns.extend([second // 20, second // 10, second, 9 * second] * 5)
    assert rates("OffsetCommit", regular, by_chance, (20 * second, 20 * second)) == []
    by_chance.intervals_ns = regular.intervals_ns[:0]
    by_chance.intervals_ns.extend([3 * second] * 19)
    assert [reason for reason, _, _ in rates("OffsetCommit", regular, by_chance, (20 * second, 60 * second))] == [
        "timing"
    ]
    assert rates("AddPartitionsToTxn", regular, by_chance, (20 * second, 60 * second)) == []


def test_a_program_that_ends_sooner_fetches_less() -> None:
    """As kafka-python did, whose other members came and went sooner: at the same pace for a part of nearly the same
    time."""
    a, b = profile_with(22, []), profile_with(13, [])
    a.intervals_ns.extend([500_000_000] * 21)
    b.intervals_ns.extend([500_000_000] * 12)
    assert rates("Fetch", a, b, (10_800_000_000, 9_100_000_000)) == []
    assert rates("Fetch", a, b, (10_800_000_000, 10_800_000_000)) == [("count", "22", "13")]
    assert rates("Fetch", a, b, (9_100_000_000, 10_800_000_000)) == [("count", "22", "13")]


def rates(api: str, a: KeyProfile, b: KeyProfile, durations_ns: tuple[int, int]) -> list[tuple[str, str, str]]:
    found = compare_frequency(MatchingKey(0, api, (), ""), a, b, durations_ns)
    return [(str(each.reason), each.a, each.b) for each in found]


@pytest.mark.parametrize("name", ["compare-java-1", "compare-kafka-python-1", "java-cooperative"])
def test_a_recording_and_its_first_half_do_not_differ_in_how_often_they_ask(name: str) -> None:
    whole = side(bundled(name))
    half = first_half(whole)
    found = [entry for entry in diff(whole, half).entries if entry.reason in (DiffReason.COUNT, DiffReason.RATE)]
    assert not {entry.api for entry in found} & {"Fetch", "Heartbeat", "Metadata", "OffsetCommit"}


def first_half(whole: DiffSide) -> DiffSide:
    """The exchanges up to the one in the middle of the fetches."""
    fetches = [n for n in range(len(whole.capture)) if whole.capture.exchange(n).row.api == "Fetch"]
    return DiffSide(whole.capture, "half", parse(f"number <= {fetches[len(fetches) // 2] + 1}"))


def test_another_rate_in_the_first_half_is_one_difference_with_an_interval(tmp_path: Path) -> None:
    def seldom(lines: Lines) -> Lines:
        kept = {line["number"] for line in of(lines, "Fetch")[::2]}
        return [line for line in lines if line["api"] != "Fetch" or line["number"] in kept]

    half = first_half(side(edited(JAVA, tmp_path, seldom)))
    [entry] = [e for e in diff(side(JAVA), half).entries if e.api == "Fetch" and not e.part and e.path != "version"
               and e.reason is not DiffReason.ONE_SIDE]  # fmt: skip
    assert (entry.path, entry.reason, entry.a, entry.b) == (
        "interval", DiffReason.TIMING, "every 508.9 ms", "every 1.014 s")  # fmt: skip


def test_one_more_coordinator_lookup_is_no_difference() -> None:
    assert frequency("FindCoordinator", profile_with(2, []), profile_with(3, [])) == []
    assert frequency("FindCoordinator", profile_with(1, []), profile_with(5, [])) == [("count", "1", "5")]
