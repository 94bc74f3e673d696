"""Each reason for a difference, provoked once by a change that our encoder wrote into a real capture."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.analysis.diff import DiffReason, PairVerdict
from dissector.analysis.diff.batching import ProducedBatches
from dissector.analysis.diff.matching_keys import MatchingKey
from dissector.analysis.diff.name_matching import NameMatching
from dissector.analysis.diff.side_profile import KeyProfile
from dissector.analysis.diff.statistical_comparison import compare_batching, compare_frequency
from tests.analysis.diff.editing import Lines, bundled, compared, edited, lines_of, of, only, told

JAVA = bundled("compare-java-1")
LIBRDKAFKA = bundled("compare-librdkafka-1")


def test_what_the_encoder_writes_without_a_change_does_not_differ(tmp_path: Path) -> None:
    assert compared(JAVA, edited(JAVA, tmp_path, lambda lines: None)).is_same


def test_a_setting_is_one_entry_however_often_it_is_said(tmp_path: Path) -> None:
    def wait_less(lines: Lines) -> None:
        for line in of(lines, "Fetch"):
            line["request"]["body"]["max_wait_ms"] = 100

    entry = only(compared(JAVA, edited(JAVA, tmp_path, wait_less)))
    assert (entry.api, entry.part, entry.path, entry.reason) == ("Fetch", "request", "max_wait_ms", DiffReason.VALUE)
    assert (entry.a, entry.b, entry.count_a, entry.count_b) == ("500", "100", 16, 16)
    assert entry.settings == (("Java", "fetch.max.wait.ms"),)


def test_what_one_side_alone_sends_is_told_apart_where_it_is_several_things(tmp_path: Path) -> None:
    def leave_out(lines: Lines) -> None:
        lines[:] = [line for line in lines if line["api"] != "Metadata"]

    alone = [entry for entry in compared(LIBRDKAFKA, edited(LIBRDKAFKA, tmp_path, leave_out)).entries
             if entry.api == "Metadata" and entry.reason is DiffReason.ONLY_HERE]  # fmt: skip
    assert sorted(entry.words for entry in alone) == ["for no topics", "for topics"]


def test_one_frame_that_differs_is_one_difference_in_one_pair(tmp_path: Path) -> None:
    def wait_less_once(lines: Lines) -> None:
        of(lines, "Fetch")[7]["request"]["body"]["max_wait_ms"] = 123

    comparison = compared(JAVA, edited(JAVA, tmp_path, wait_less_once))
    assert told(comparison) == [("Fetch", "request.max_wait_ms", "value", "500", "500, 123")]
    differing = [(pair, found) for pair in comparison.pairs if (found := comparison.differences(pair))]
    [(pair, [difference])] = differing
    assert pair.a == of(lines_of(JAVA), "Fetch")[7]["number"] - 1
    assert (difference.part, difference.path_a, difference.path_b) == ("request", "max_wait_ms", "max_wait_ms")
    assert (difference.value_a, difference.value_b, difference.reason) == ("500", "123", DiffReason.VALUE)


PLAIN = (
    ("JoinGroup", "session_timeout_ms"), ("JoinGroup", "rebalance_timeout_ms"), ("Produce", "timeout_ms"),
    ("Fetch", "min_bytes"), ("Fetch", "max_bytes"), ("ListOffsets", "timeout_ms"), ("InitProducerId",
    "transaction_timeout_ms"), ("ApiVersions", "client_software_version"), ("LeaveGroup", "group_id"),
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=20)
@given(st.sampled_from(PLAIN), st.integers(100_000_000, 1 << 30), st.data())
def test_any_field_that_was_changed_in_any_frame_is_the_one_difference(
    tmp_path_factory: object, field: tuple[str, str], number: int, data: st.DataObject
) -> None:
    api, name = field

    def change(lines: Lines) -> None:
        line = data.draw(st.sampled_from(of(lines, api)))
        body = line["request"]["body"]
        body[name] = f"made up {number}" if isinstance(body[name], str) else number

    folder = tmp_path_factory.mktemp("edited")
    comparison = compared(JAVA, edited(JAVA, folder, change))
    if name == "group_id":  # another group: what was said about the one is not said about the other
        assert {entry.reason for entry in comparison.entries} == {DiffReason.ONLY_HERE}
    else:
        entry = only(comparison)
        assert (entry.api, entry.path, entry.reason) == (api, name, DiffReason.VALUE)


def test_a_default_against_what_was_set(tmp_path: Path) -> None:
    def committed_only(lines: Lines) -> None:
        for line in of(lines, "Fetch"):
            line["request"]["body"]["isolation_level"] = 1

    entry = only(compared(JAVA, edited(JAVA, tmp_path, committed_only)))
    assert (entry.path, entry.reason, entry.words) == (
        "isolation_level", DiffReason.DEFAULT, "{a} leaves the schema's default")  # fmt: skip
    assert (entry.a, entry.b) == ("0 READ_UNCOMMITTED", "1 READ_COMMITTED")


def test_a_version_and_the_fields_that_it_has() -> None:
    comparison = compared(JAVA, LIBRDKAFKA)
    assert ("Produce", "version", "version", "v13", "v10") in told(comparison)
    produce, leave = (next(e for e in comparison.entries if e.api == api and e.path == "version")
                      for api in ("Produce", "LeaveGroup"))  # fmt: skip
    assert "request.topic_data.topic_id (from v13 on, name up to v12)" in produce.words
    assert leave.words == "and with it request.reason (from v5 on), response.members (from v3 on)"
    assert not [e for e in comparison.entries if e.reason is DiffReason.VERSION and e.path != "version"]
    shown = [each for pair in comparison.pairs for each in comparison.differences(pair)]
    replaced = next(each for each in shown if each.path == "topic_data.topic_id" and each.part == "request")
    assert replaced.words == "topic_id is there from v13 on; name is there up to v12"
    assert (replaced.path_a, replaced.path_b) == ("topic_data[java-orders-1].topic_id", None)
    new = next(each for each in shown if each.path == "reason" and each.value_a == "the consumer is being closed")
    assert (new.value_b, new.reason) == ("", DiffReason.VERSION)


def test_what_follows_from_something_else_is_told_with_it() -> None:
    comparison = compared(JAVA, bundled("compare-aiokafka-1"))
    words = {(e.api, e.part, e.path): e.words for e in comparison.entries}
    assert "response.responses" in words["Fetch", "request", "session_id"]
    subscription = words["JoinGroup", "request", "protocols.metadata.version"]
    assert subscription == "and with it " + ", ".join(
        [f"request.protocols.metadata.{name}" for name in ("generation_id", "owned_partitions", "rack_id")]
        + ["response.members.metadata"]
    )
    assert words["JoinGroup", "request", "protocols"].endswith("response.protocol_name")
    assert not [e for e in comparison.entries if e.part == "response"]


def test_what_no_session_means_and_what_a_session_that_is_closed() -> None:
    fields = {(e.api, e.path): (e.a, e.b) for e in compared(JAVA, LIBRDKAFKA).entries}
    assert fields["Fetch", "session_id"] == ("fetch session #1, a new session", "no session")
    assert ("Fetch", "session_epoch") not in fields
    closing = {(e.api, e.path): e for e in compared(JAVA, bundled("compare-kafka-python-1")).entries}
    assert closing["Fetch", "session_epoch"].a == "a position, -1 FINAL_EPOCH (the session is closed)"
    assert closing["Fetch", "session_epoch"].settings == ()


def test_the_most_telling_comes_first() -> None:
    comparison = compared(JAVA, LIBRDKAFKA)
    assert [bool(e.settings) for e in comparison.entries[:1]] == [True]
    apis = list(dict.fromkeys(e.api for e in comparison.entries))
    alone = [api for api in apis if all(e.reason is DiffReason.VERSION for e in comparison.entries if e.api == api)]
    assert apis[-len(alone) :] == alone


def test_what_one_side_alone_says(tmp_path: Path) -> None:
    path = edited(JAVA, tmp_path, lambda lines: [line for line in lines if line["api"] != "LeaveGroup"])
    comparison = compared(JAVA, path)
    assert told(comparison) == [("LeaveGroup", "", "only here", "once", "never")]
    [pair] = [pair for pair in comparison.pairs if pair.b is None]
    assert pair.verdict is PairVerdict.ONLY_A


def test_steps_in_another_order(tmp_path: Path) -> None:
    def leave_first(lines: Lines) -> Lines:
        join, sync = (
            next(n for n, line in enumerate(lines) if line["api"] == api) for api in ("JoinGroup", "SyncGroup")
        )
        for side in ("request", "response"):
            one, other = lines[join][side], lines[sync][side]
            one["time_ns"], other["time_ns"] = other["time_ns"], one["time_ns"]
        lines[join], lines[sync] = lines[sync], lines[join]
        return lines

    comparison = compared(JAVA, edited(JAVA, tmp_path, leave_first))
    assert [entry.reason for entry in comparison.entries] == [DiffReason.ORDER]
    assert PairVerdict.ORDER in {pair.verdict for pair in comparison.pairs}


def test_a_loop_that_turns_far_less_often(tmp_path: Path) -> None:
    def fewer(lines: Lines) -> Lines:
        gone = {line["number"] for line in of(lines, "Fetch")[5:12]}
        return [line for line in lines if line["number"] not in gone]

    assert told(compared(JAVA, edited(JAVA, tmp_path, fewer))) == [("Fetch", "", "count", "16 times", "9 times")]


def test_a_loop_that_turns_a_little_less_often_does_not_differ(tmp_path: Path) -> None:
    def one_fewer(lines: Lines) -> Lines:
        gone = of(lines, "Fetch")[8]["number"]
        return [line for line in lines if line["number"] != gone]

    comparison = compared(JAVA, edited(JAVA, tmp_path, one_fewer))
    assert comparison.is_same
    assert [pair.verdict for pair in comparison.pairs if pair.b is None] == [PairVerdict.MORE]


def test_loops_at_another_pace(tmp_path: Path) -> None:
    def slower(lines: Lines) -> None:
        start = lines[0]["request"]["time_ns"]
        for line in lines:
            for side in ("request", "response"):
                line[side]["time_ns"] = start + 3 * (line[side]["time_ns"] - start)

    found = told(compared(JAVA, edited(JAVA, tmp_path, slower)))
    assert [(api, path, reason) for api, path, reason, _, _ in found] == [("Fetch", "interval", "timing")]


def said_so_often(count: int, pauses: list[int]) -> KeyProfile:
    """Exchanges of one key, and the pauses behind those that were tried again."""
    facts = KeyProfile()
    facts.rows.extend(range(count + len(pauses)))
    facts.retries.pauses.extend(pauses)
    if pauses:
        facts.retries.times["NOT_COORDINATOR"] = len(pauses)
    return facts


def shapes(api: str, a: KeyProfile, b: KeyProfile) -> list[tuple[str, str, str]]:
    return [(str(each.reason), each.a, each.b) for each in compare_frequency(MatchingKey(0, api, (), ""), a, b)]


def test_pauses_before_the_next_try_have_a_shape_where_there_are_three() -> None:
    quick, slow = [100_000_000] * 3, [300_000_000] * 3
    assert shapes("JoinGroup", said_so_often(1, quick), said_so_often(1, slow)) == [("timing", "100.0 ms", "300.0 ms")]
    assert shapes("JoinGroup", said_so_often(1, quick[:1]), said_so_often(1, slow[:1])) == []


def test_how_many_produce_requests_there_are_tells_something_where_there_are_many() -> None:
    assert shapes("Produce", said_so_often(2, []), said_so_often(4, [])) == []
    assert shapes("Produce", said_so_often(2, []), said_so_often(100, [])) == [("count", "2 times", "100 times")]
    assert shapes("Produce", said_so_often(100, []), said_so_often(130, [])) == []


def test_a_coordinator_that_is_asked_for_once_more_is_no_difference() -> None:
    assert shapes("FindCoordinator", said_so_often(2, []), said_so_often(3, [])) == []
    assert shapes("FindCoordinator", said_so_often(1, []), said_so_often(5, [])) == [("count", "once", "5 times")]


def test_a_leader_that_knew_the_topic_from_the_start_does_not_differ(tmp_path: Path) -> None:
    def known_at_once(lines: Lines) -> None:
        first, second = of(lines, "SyncGroup")
        first["request"]["body"]["assignments"] = second["request"]["body"]["assignments"]
        first["response"]["body"] = second["response"]["body"]

    twice = bundled("compare-kafka-python-1")
    assert compared(twice, edited(twice, tmp_path, known_at_once)).is_same


def test_other_records(tmp_path: Path) -> None:
    def spoil(lines: Lines) -> None:
        partition = of(lines, "Produce")[0]["request"]["body"]["topic_data"][0]["partition_data"][0]
        partition["records"]["batches"][0]["records"][3]["value"] = b"another order".hex()

    entry = only(compared(JAVA, edited(JAVA, tmp_path, spoil)))
    assert (entry.reason, entry.words) == (DiffReason.CONTENT, "keys, values or headers differ in java-orders-1")


def test_the_same_records_in_other_partitions() -> None:
    [entry] = [e for e in compared(JAVA, LIBRDKAFKA).entries if e.reason is DiffReason.CONTENT]
    assert entry.words == "the same records, and as many in each partition, but keys go to other partitions"
    assert entry.settings == (("Java", "partitioner.class"), ("librdkafka", "partitioner"))


def test_another_codec(tmp_path: Path) -> None:
    def pack(lines: Lines) -> None:
        for line in of(lines, "Produce"):
            for partition in line["request"]["body"]["topic_data"][0]["partition_data"]:
                for batch in partition["records"]["batches"]:
                    batch["attributes"] = 1
                    batch["compression"] = "gzip"

    entry = only(compared(JAVA, edited(JAVA, tmp_path, pack)))
    assert (entry.reason, entry.a, entry.b) == (DiffReason.CODEC, "none", "gzip")
    assert entry.settings == (("Java", "compression.type"),)


def test_batches_of_another_size() -> None:
    a, b = ProducedBatches(), ProducedBatches()
    for batching, records in ((a, 10), (b, 40)):
        for _ in range(30):
            batching.records.append(records)
            batching.sizes.append(records * 100)
    found = list(compare_batching(a, b, NameMatching({}, {})))
    assert [(each.reason, each.a, each.b, each.words) for each in found] == [
        (DiffReason.BATCHING, "10", "40", "median records a batch"),
        (DiffReason.BATCHING, "1.0k", "4.0k", "median bytes a batch"),
    ]
