"""What varies from run to run is no difference, and what is close to it is one."""

import base64
import struct
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dissector.analysis.diff.compared_values import POSITION, ComparedValue, EntityName, Placeholder, compared_value
from dissector.analysis.diff.frequency_comparison import compare_frequency
from dissector.analysis.diff.key_differences import KeyDifference
from dissector.analysis.diff.key_profile import KeyProfile, Retries
from dissector.analysis.diff.matching_keys import MatchingKey
from dissector.analysis.diff.message_leaves import EMPTY, NOT_EMPTY
from dissector.analysis.diff.rebalances import REBALANCE, Keys, is_of_early_join, is_of_last_rebalance
from dissector.analysis.diff.result import DiffReason
from tests.analysis.diff.editing import Lines, bundled, compared, edited, of, side
from tests.cases import cases
from tools.lab.survey.recording_files import recording_path

MS = 1_000_000
IRREGULAR = (2900, 500, 700, 2300, 280, 420, 1030, 900, 3100, 350, 1500)
BURST = (20, 60, 5, 90, 40, 7, 130, 12, 55)


def profile(count: int, intervals_ms: Sequence[int]) -> KeyProfile:
    return KeyProfile(rows=array("q", range(count)), intervals_ns=array("q", [each * MS for each in intervals_ms]))


def counts(api: str, a: KeyProfile, b: KeyProfile) -> list[tuple[str, str]]:
    """What differs, in both directions."""
    key, durations = MatchingKey(0, api, (), ""), (20_000 * MS, 20_000 * MS)
    found = [(each.a, each.b) for each in compare_frequency(key, a, b, durations)]
    assert [(y, x) for x, y in found] == [(each.a, each.b) for each in compare_frequency(key, b, a, durations)]
    return found


@pytest.mark.parametrize(
    ("few", "many", "intervals_ms", "differs"),
    [
        (3, 8, IRREGULAR[:7], False),
        (3, 11, IRREGULAR[:10], True),  # 8 is more than twice the root of 14
        (3, 8, BURST[:7], True),
    ],
)
def test_random_pauses_make_counts_vary(few: int, many: int, intervals_ms: Sequence[int], *, differs: bool) -> None:
    found = counts("Metadata", profile(few, ()), profile(many, intervals_ms))
    assert found == ([(str(few), str(many))] if differs else [])


REGULAR = (1_000,) * 5


@cases(
    ("api", "few_ms", "many_ms", "expected"),
    [
        ("Heartbeat", (3_000, 3_000), REGULAR, [("3", "every 1.000 s")]),
        ("Metadata", (), REGULAR, [("1", "every 1.000 s")]),
        ("OffsetCommit", (4_900, 1_100), REGULAR, [("3", "every 1.000 s")]),  # one more as it leaves
        # near misses, of which no interval differs: as soon, a burst, random pauses, and no setting of that kind
        ("Heartbeat", (1_100,), REGULAR, [("2", "6")]),
        ("Metadata", (), (20, 21, 22, 20, 21), [("1", "6")]),
        ("Metadata", (), (300, 4_000, 900, 2_000, 1_200), []),
        ("Fetch", (), REGULAR, [("1", "6")]),
    ],
)
def test_a_rhythm_of_one_side_alone(
    api: str, few_ms: Sequence[int], many_ms: Sequence[int], expected: list[tuple[str, str]]
) -> None:
    found = counts(api, profile(len(few_ms) + 1, few_ms), profile(len(many_ms) + 1, many_ms))
    assert [(a.partition(" request")[0], b) for a, b in found] == expected


@pytest.mark.parametrize("differs", [False, True])
def test_requests_at_one_rate_may_go_on_for_longer(differs: bool) -> None:
    """As long as half as much again."""
    many = 46 if differs else 45
    found = counts("Fetch", profile(30, (500,) * 29), profile(many, (500,) * (many - 1)))
    assert bool(found) is differs


@pytest.mark.parametrize(
    ("api", "a", "b", "differs"),
    [
        ("ListOffsets", 3, 4, False),
        ("OffsetFetch", 5, 6, False),
        ("ListOffsets", 2, 3, True),
        ("ListOffsets", 3, 5, True),
        ("SyncGroup", 3, 4, True),
    ],
)
def test_lookups_may_be_one_more(api: str, a: int, b: int, *, differs: bool) -> None:
    assert bool(counts(api, profile(a, ()), profile(b, ()))) is differs


@pytest.mark.parametrize(("connections", "differs"), [(26, False), (15, True), (1, True)])
def test_what_follows_on_a_few_of_many_connections_is_no_rhythm(connections: int, *, differs: bool) -> None:
    """MirrorMaker asks for metadata once on most of 26 connections, and again on a few when it creates topics."""
    slow, fast = ((366, 660, 712, 896, 934), (243, 264, 395, 407, 454))
    a, b = (replace(profile(31, each), connections=connections) for each in (slow, fast))
    assert counts("Metadata", a, b) == ([("every 712.0 ms", "every 395.0 ms")] if differs else [])


def refused(pauses_ms: Sequence[int]) -> KeyProfile:
    """Five requests, and more that were refused, with a pause behind each."""
    retries = Retries({"NOT_LEADER_OR_FOLLOWER": len(pauses_ms)}, array("q", [each * MS for each in pauses_ms]))
    return replace(profile(5 + len(pauses_ms), ()), retries=retries)


@pytest.mark.parametrize(
    ("api", "a", "b", "differs"),
    [
        ("ListOffsets", (40,), (56, 35, 43, 69, 30), False),  # of MirrorMaker, while leaders are elected
        ("ListOffsets", (40,), (56, 35, 43, 69, 30, 40, 40, 40), True),
        ("OffsetCommit", (40,), (56, 35, 43, 69, 30), True),
        ("ListOffsets", (74, 70, 80), (28, 27, 30), False),
        ("OffsetCommit", (74, 70, 80), (28, 27, 30), True),
        ("Metadata", (141,), (206, 238, 245, 452, 809, 190), False),  # of MirrorMaker, for a topic that it has made
        ("Metadata", (95,), (206, 238, 245, 452, 809, 190), True),
        ("Metadata", (), (206, 238, 245, 452, 809, 190), True),
    ],
)
def test_lookups_wait_for_leaders_and_metadata_for_topics(
    api: str, a: Sequence[int], b: Sequence[int], *, differs: bool
) -> None:
    assert bool(counts(api, refused(a), refused(b))) is differs


def committed(version: int, time_ms: int, more: bytes = b"") -> str:
    return base64.b64encode(struct.pack(">bq", version, time_ms) + more).decode()


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (committed(1, 1_795_723_222_528), 1),
        (committed(2, 1_795_723_222_528), 2),
        (committed(2, -1, b"\0\0\0\1"), 2),
        (committed(2, (1 << 42) - 1), 2),
        (committed(2, 1 << 42), 0),
        (committed(2, -2), 0),
        (committed(3, 1_795_723_222_528), 0),
        (committed(0, 1_795_723_222_528), 0),
        (committed(2, 1_795_723_222_528)[:11], 0),
        ("Alexandria12", 0),
        ("kgo-2737fdaf-250a-4747-a5c2-84bd04a6b134", 0),
    ],
)
def test_times_that_streams_commits(text: str, version: int) -> None:
    for name in ("committed_metadata", "metadata"):
        value = compared_value(None, name, text)
        assert value == (Placeholder(f"a time of Streams, version {version}") if version else text)
    assert compared_value(None, "reason", text) == text


def test_what_a_group_does_at_the_moment_is_chance() -> None:
    found = {compared_value(None, "group_state", state) for state in ("Stable", "CompletingRebalance", "Dead")}
    assert len(found) == 1
    assert compared_value(None, "group_state", "") == ""  # a version or an answer without one
    assert compared_value(None, "group_type", "consumer") == "consumer"


def test_what_a_member_of_streams_says_of_its_state_depends_on_when_it_joins() -> None:
    """How much of its state a task has, and a number that is another one each time; not that a task runs (-2)."""
    for name in ("offset_sum", "unique_field"):
        assert {compared_value(None, name, value) for value in (2, 3)} == {POSITION}
    assert compared_value(None, "offset_sum", -2) == -2


def limited(limit: int) -> Callable[[Lines], None]:
    def edit(lines: Lines) -> None:
        for line in of(lines, "Fetch"):
            line["request"]["body"]["max_bytes"] = limit

    return edit


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (1_000_081, None),
        (1_000_000, None),
        (1_000_082, "1000082"),
        (2_000_081, "about 2000000"),
        (1_048_576 + 81, "about 1048576"),
        (81, "81"),
    ],
)
def test_a_limit_that_has_the_topics_name_in_it(limit: int, text: str | None, tmp_path: Path) -> None:
    """kafka-go adds 58 bytes and the 23 of the name to what is set, which is 1,000,000."""
    path = str(recording_path("kafka-go", "plain"))
    found = compared(path, edited(path, tmp_path, limited(limit))).entries
    assert [(each.path, each.a, each.b) for each in found] == ([("max_bytes", "about 1000000", text)] if text else [])


def elects_another(lines: Lines) -> None:
    [line] = of(lines, "ElectLeaders")
    line["request"]["body"]["topic_partitions"][0]["partitions"] = [3]


@pytest.mark.long
@pytest.mark.slow
def test_partitions_that_a_person_names_are_compared(tmp_path: Path) -> None:
    """Unlike those that a member of a group gets, whose field has the same name."""
    path = bundled("java-admin")
    found = [each for each in compared(path, edited(path, tmp_path, elects_another)).entries if each.part == "request"]
    assert [(each.api, each.path, each.a, each.b) for each in found] == [
        ("ElectLeaders", "topic_partitions.partitions", "0", "3")
    ]


def test_what_another_client_requests_is_no_retry() -> None:
    """Two consumers of a program, each with a client id of its own: a request of the first one fails, the second one
    requests something, then the first one tries again."""
    capture = side(str(recording_path("java-4.3", "group-classic"))).capture
    found = capture.index.numbers(np.arange(len(capture)))
    *_, one, other = dict.fromkeys(found.client_id.tolist())
    requested = int(np.flatnonzero(found.client_id == other)[5])
    of_one = np.flatnonzero(found.client_id == one)
    failed, again = int(of_one[of_one < requested][-1]), int(of_one[of_one > requested][0])
    retries = Retries()
    rows = capture.index.numbers(np.array([failed, requested, again]))
    retries.add(["COORDINATOR_LOAD_IN_PROGRESS", "", ""], rows)
    failed_ns = found.request_time_ns[failed] + found.latency_ns[failed]
    assert found.request_time_ns[requested] > failed_ns
    assert list(retries.backoffs_ns) == [int(found.request_time_ns[again] - failed_ns)]
    assert retries.counts == {"COORDINATOR_LOAD_IN_PROGRESS": 1}


def joined(
    joins: Sequence[int], lookups: Sequence[int], metadata: int = 7, *, assignments: ComparedValue = NOT_EMPTY
) -> Keys:
    """The rows of a member's joins, of its lookups of offsets, and of a request for metadata."""
    group = (EntityName("group", "billing"),)
    sync = KeyProfile(
        array("q", [each + 1 for each in joins]),
        fields={("request", ("assignments",)): Counter([assignments] * len(joins))},
    )
    profiles = {"JoinGroup": KeyProfile(array("q", joins)), "SyncGroup": sync}
    if lookups:
        profiles["OffsetFetch"] = KeyProfile(array("q", lookups))
    keys = {MatchingKey(0, api, group, ""): profile for api, profile in profiles.items()}
    return keys | {MatchingKey(0, "Metadata", ("topics",), ""): KeyProfile(array("q", [metadata]))}


@cases(
    ("a", "b", "is_chance"),
    [
        (joined([5], [9]), joined([5, 8], [9]), True),  # kafka-python, whose first metadata came between
        (joined([5], [9]), joined([5, 8], [9], metadata=5), False),  # it knew nothing more
        (joined([5], [9]), joined([5, 12], [9]), False),
        (joined([5], [9]), joined([5, 8, 12], [9]), False),
        (joined([5], [9]), joined([5, 8], [9], assignments=EMPTY), False),  # it leads no group: another member
        (joined([5, 12], [9]), joined([5, 8, 12], [9]), True),
    ],
)
def test_a_leader_may_join_again_before_it_reads(a: Keys, b: Keys, *, is_chance: bool) -> None:
    key = MatchingKey(0, "JoinGroup", (EntityName("group", "billing"),), "")
    rows = [len(keys[key].rows) for keys in (a, b)]
    found = KeyDifference("", (), DiffReason.COUNT, str(rows[0]), str(rows[1]), rows[0], rows[1], "", 5, 5)
    assert is_of_early_join(key, found, (a, b)) is is_chance


def leaving(joins: Sequence[int], told: Sequence[int], beats: Sequence[int], leave: int = 99) -> Keys:
    """The rows of a member's joins, of heartbeats that tell it to join again, and of others, and of its leaving."""
    rows = {
        ("JoinGroup", ""): joins,
        ("Heartbeat", REBALANCE): told,
        ("Heartbeat", ""): beats,
        ("LeaveGroup", ""): [leave],
    }
    return {
        MatchingKey(0, api, (EntityName("group", "billing"),), step): KeyProfile(array("q", of))
        for (api, step), of in rows.items()
        if of
    }


@cases(
    ("a", "b", "is_chance"),
    [
        (leaving([5, 20], [18, 40], [7, 22]), leaving([5, 20, 41], [18, 40], [7, 22, 43]), True),  # sarama
        (leaving([5, 20], [18, 40], [7, 22, 43]), leaving([5, 20, 41], [18, 40], [7, 22, 43]), False),  # it stayed
        (leaving([5, 20], [18, 40], [7, 22]), leaving([5, 20, 41], [18, 40], [7, 22, 43, 60]), False),  # it had time
        (leaving([5, 20], [18], [7, 22]), leaving([5, 20, 41], [18, 40], [7, 22, 43]), False),
        (leaving([5], [4, 40], [7]), leaving([5, 20, 41], [4, 40], [7, 43]), False),
    ],
)
def test_a_member_that_leaves_may_be_told_to_join_in_time(a: Keys, b: Keys, *, is_chance: bool) -> None:
    key = MatchingKey(0, "JoinGroup", (EntityName("group", "billing"),), "")
    rows = [len(keys[key].rows) for keys in (a, b)]
    found = KeyDifference("", (), DiffReason.COUNT, str(rows[0]), str(rows[1]), rows[0], rows[1], "", 5, 5)
    assert is_of_last_rebalance(key, found, (a, b)) is is_of_last_rebalance(key, found, (b, a)) is is_chance
