"""Each reason for a difference, caused by a change that our encoder wrote into a real capture."""

import copy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.analysis.diff import DiffEntry, DiffReason, PairVerdict
from dissector.analysis.diff.batch_comparison import compare_batching
from dissector.analysis.diff.batching import ProducedBatches
from dissector.analysis.diff.matching_keys import retried_step
from dissector.analysis.diff.name_matching import NameMatching
from dissector.analysis.diff.name_uses import NameUses
from tests.analysis.diff.cutting import recording
from tests.analysis.diff.editing import Lines, bundled, compared, edited, entry_texts, lines_of, of, only
from tests.analysis.diff.elsewhere import FURTHER_ID
from tests.conftest import PCAPS, costly

COORDINATOR_LOAD_IN_PROGRESS = 14

JAVA = bundled("compare-java-1")
LIBRDKAFKA = bundled("compare-librdkafka-1")


@pytest.mark.long
def test_a_capture_encoded_without_a_change_does_not_differ(tmp_path: Path) -> None:
    assert compared(JAVA, edited(JAVA, tmp_path, lambda lines: None)).is_same


def test_a_setting_is_one_entry_however_often_it_is_sent(tmp_path: Path) -> None:
    def wait_less(lines: Lines) -> None:
        for line in of(lines, "Fetch"):
            line["request"]["body"]["max_wait_ms"] = 100

    entry = only(compared(JAVA, edited(JAVA, tmp_path, wait_less)))
    assert (entry.api, entry.part, entry.path, entry.reason) == ("Fetch", "request", "max_wait_ms", DiffReason.VALUE)
    assert (entry.a, entry.b, entry.count_a, entry.count_b) == ("500", "100", 15, 15)
    assert entry.settings == (("Java", "fetch.max.wait.ms"),)


@pytest.mark.long
def test_requests_of_one_side_alone_are_listed_by_subject(tmp_path: Path) -> None:
    def leave_out(lines: Lines) -> None:
        lines[:] = [line for line in lines if line["api"] != "Metadata"]

    alone = [entry for entry in compared(LIBRDKAFKA, edited(LIBRDKAFKA, tmp_path, leave_out)).entries
             if entry.api == "Metadata" and entry.reason is DiffReason.ONE_SIDE]  # fmt: skip
    assert sorted(entry.subject for entry in alone) == ["for no topics", "for topics"]


@pytest.mark.long
def test_one_differing_frame_is_one_difference_in_one_pair(tmp_path: Path) -> None:
    def wait_less_once(lines: Lines) -> None:
        of(lines, "Fetch")[7]["request"]["body"]["max_wait_ms"] = 123

    comparison = compared(JAVA, edited(JAVA, tmp_path, wait_less_once))
    assert entry_texts(comparison) == [("Fetch", "request.max_wait_ms", "value", "500", "500, 123")]
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


@pytest.mark.long
@pytest.mark.slow
@costly(3)
@given(st.sampled_from(PLAIN), st.integers(100_000_000, 1 << 30), st.data())
def test_any_changed_field_of_any_frame_is_the_only_difference(
    tmp_path_factory: pytest.TempPathFactory, field: tuple[str, str], number: int, data: st.DataObject
) -> None:
    api, name = field

    def change(lines: Lines) -> None:
        # What closes a fetch session fetches nothing: its limits are no settings.
        line = data.draw(
            st.sampled_from([line for line in of(lines, api) if line["request"]["body"].get("session_epoch") != -1])
        )
        body = line["request"]["body"]
        body[name] = f"made up {number}" if isinstance(body[name], str) else number

    folder = tmp_path_factory.mktemp("edited")
    comparison = compared(JAVA, edited(JAVA, folder, change))
    if name == "group_id":  # another group: neither side has requests for the other's
        assert {entry.reason for entry in comparison.entries} == {DiffReason.ONE_SIDE}
    else:
        entry = only(comparison)
        assert (entry.api, entry.path, entry.reason) == (api, name, DiffReason.VALUE)


def test_a_default_differs_from_a_set_value(tmp_path: Path) -> None:
    def committed_only(lines: Lines) -> None:
        for line in of(lines, "Fetch"):
            line["request"]["body"]["isolation_level"] = 1

    entry = only(compared(JAVA, edited(JAVA, tmp_path, committed_only)))
    assert (entry.path, entry.reason, entry.explanation) == (
        "isolation_level", DiffReason.DEFAULT, "{a} has the schema's default")  # fmt: skip
    assert (entry.a, entry.b) == ("0 READ_UNCOMMITTED", "1 READ_COMMITTED")


@pytest.mark.long
def test_a_version_lists_the_fields_that_only_it_has() -> None:
    comparison = compared(JAVA, LIBRDKAFKA)
    assert ("Produce", "version", "version", "v13", "v10") in entry_texts(comparison)
    produce, leave = (next(e for e in comparison.entries if e.api == api and e.path == "version")
                      for api in ("Produce", "LeaveGroup"))  # fmt: skip
    assert "request.topic_data.topic_id (since v13, name up to v12)" in produce.explanation
    assert leave.explanation == "also changes request.reason (since v5), response.members (since v3)"
    assert not [e for e in comparison.entries if e.reason is DiffReason.VERSION and e.path != "version"]
    shown = [each for pair in comparison.pairs for each in comparison.differences(pair)]
    replaced = next(each for each in shown if each.path == "topic_data.topic_id" and each.part == "request")
    assert replaced.explanation == "topic_id since v13; name up to v12"
    assert (replaced.path_a, replaced.path_b) == ("topic_data[java-orders-1].topic_id", None)
    new = next(each for each in shown if each.path == "reason" and each.value_a == "the consumer is being closed")
    assert (new.value_b, new.reason) == ("", DiffReason.VERSION)


@pytest.mark.long
def test_a_switch_for_sessions_is_named_only_if_a_side_has_none() -> None:
    found = {}
    for name in ("aiokafka", "platformatic"):
        franz, other = (bundled(f"clients/{each}/plain-1") + ".zst" for each in ("franz-go", name))
        entries = compared(franz, other).entries
        [found[name]] = [e.settings for e in entries if (e.api, e.path) == ("Fetch", "session_id")]
    assert found == {"aiokafka": (("franz-go", "DisableFetchSessions"),), "platformatic": ()}


def test_a_field_that_later_versions_have_elsewhere_has_all_its_versions() -> None:
    aiokafka, franz = (bundled(f"clients/{name}/plain-1") + ".zst" for name in ("aiokafka", "franz-go"))
    versions = {e.api: e.explanation for e in compared(aiokafka, franz).entries if e.path == "version"}
    assert "request.topics.topic_id (since v10, name up to v9)" in versions["OffsetFetch"]
    assert "response.topics.topic_id (since v10, name up to v9)" in versions["OffsetFetch"]


def test_a_version_without_fields_lacks_those_of_a_later_one() -> None:
    comparison = compared(JAVA, bundled("compare-aiokafka-1"))
    [entry] = [e for e in comparison.entries if (e.api, e.path) == ("ApiVersions", "version")]
    assert {"0", "4"} == {text.removeprefix("v") for text in (entry.a, entry.b)}
    for name in ("client_software_name", "client_software_version"):
        assert f"request.{name} (since v3)" in entry.explanation


def test_consequences_are_listed_with_their_cause() -> None:
    comparison = compared(JAVA, bundled("compare-aiokafka-1"))
    explanations = {(e.api, e.part, e.path): e.explanation for e in comparison.entries}
    assert "response.responses" in explanations["Fetch", "request", "session_id"]
    subscription = explanations["JoinGroup", "request", "protocols.metadata.version"]
    assert subscription == "also changes " + ", ".join(
        [f"request.protocols.metadata.{name}" for name in ("generation_id", "owned_partitions", "rack_id")]
        + ["response.members.metadata"]
    )
    assert explanations["JoinGroup", "request", "protocols"].endswith("response.protocol_name")
    assert not [e for e in comparison.entries if e.part == "response"]


@pytest.mark.long
def test_fetches_without_a_session_and_fetches_that_close_one_are_named() -> None:
    fields = {(e.api, e.path): (e.a, e.b) for e in compared(JAVA, LIBRDKAFKA).entries}
    assert fields["Fetch", "session_id"] == ("fetch session #1, new session", "no session")
    assert ("Fetch", "session_epoch") not in fields
    closing = [(e.a, e.b) for e in compared(JAVA, bundled("compare-kafka-python-1")).entries
               if e.subject == "for closing a session"]  # fmt: skip
    assert closing == [("1", "0")]


def test_a_group_of_one_side_is_one_difference(tmp_path: Path) -> None:
    grouped = ("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch", "FindCoordinator")

    def alone(lines: Lines) -> Lines:
        return [line for line in lines if line["api"] not in grouped]

    [entry] = [e for e in compared(JAVA, edited(JAVA, tmp_path, alone)).entries if e.api in grouped]
    assert (entry.api, entry.subject, entry.b) == ("JoinGroup", "for java-billing-1", "0")
    assert all(api in entry.explanation for api in grouped[1:])


def test_connections_are_counted_and_the_roles_that_differ_named(tmp_path: Path) -> None:
    def without_fetch(lines: Lines) -> Lines:
        gone = of(lines, "Fetch")[0]["connection"]
        return [line for line in lines if line["connection"] != gone]

    entries = compared(JAVA, edited(JAVA, tmp_path, without_fetch)).entries
    [entry] = [e for e in entries if e.path == "connections"]
    assert (entry.a, entry.b) == ("5 with 1 fetch", "4 with no fetch")


def test_the_most_significant_entries_come_first() -> None:
    comparison = compared(JAVA, LIBRDKAFKA)
    assert [bool(e.settings) for e in comparison.entries[:1]] == [True]
    apis = list(dict.fromkeys(e.api for e in comparison.entries))
    alone = [api for api in apis if all(e.reason is DiffReason.VERSION for e in comparison.entries if e.api == api)]
    assert apis[-len(alone) :] == alone


@pytest.mark.long
def test_requests_of_one_side_alone_are_a_difference(tmp_path: Path) -> None:
    path = edited(JAVA, tmp_path, lambda lines: [line for line in lines if line["api"] != "LeaveGroup"])
    comparison = compared(JAVA, path)
    assert entry_texts(comparison) == [("LeaveGroup", "", "only on one side", "1", "0")]
    [pair] = [pair for pair in comparison.pairs if pair.b is None]
    assert pair.verdict is PairVerdict.ONLY_A


def test_steps_in_another_order_are_a_difference(tmp_path: Path) -> None:
    def leave_first(lines: Lines) -> Lines:
        join, sync = (
            next(n for n, line in enumerate(lines) if line["api"] == api) for api in ("JoinGroup", "SyncGroup")
        )
        for part in ("request", "response"):
            one, other = lines[join][part], lines[sync][part]
            one["time_ns"], other["time_ns"] = other["time_ns"], one["time_ns"]
        lines[join], lines[sync] = lines[sync], lines[join]
        return lines

    comparison = compared(JAVA, edited(JAVA, tmp_path, leave_first))
    assert [entry.reason for entry in comparison.entries] == [DiffReason.ORDER]
    assert PairVerdict.ORDER in {pair.verdict for pair in comparison.pairs}


def test_a_leader_that_knows_the_topic_from_the_start_does_not_differ(tmp_path: Path) -> None:
    def known_at_once(lines: Lines) -> None:
        first, second = of(lines, "SyncGroup")
        first["request"]["body"]["assignments"] = second["request"]["body"]["assignments"]
        first["response"]["body"] = second["response"]["body"]

    twice = bundled("compare-kafka-python-1")
    assert compared(twice, edited(twice, tmp_path, known_at_once)).is_same


@pytest.mark.long
def test_other_record_contents_are_a_difference(tmp_path: Path) -> None:
    def spoil(lines: Lines) -> None:
        partition = of(lines, "Produce")[0]["request"]["body"]["topic_data"][0]["partition_data"][0]
        partition["records"]["batches"][0]["records"][3]["value"] = b"another order".hex()

    entry = only(compared(JAVA, edited(JAVA, tmp_path, spoil)))
    assert (entry.reason, entry.explanation) == (DiffReason.CONTENT, "keys, values or headers differ in java-orders-1")


def test_the_same_records_in_other_partitions_are_a_difference() -> None:
    [entry] = [e for e in compared(JAVA, LIBRDKAFKA).entries if e.reason is DiffReason.CONTENT]
    assert entry.explanation == "same records, same count in each partition, but keys in other partitions"
    assert entry.settings == (("Java", "partitioner.class"), ("librdkafka", "partitioner"))


def test_another_compression_codec_is_a_difference(tmp_path: Path) -> None:
    def pack(lines: Lines) -> None:
        for line in of(lines, "Produce"):
            for partition in line["request"]["body"]["topic_data"][0]["partition_data"]:
                for batch in partition["records"]["batches"]:
                    batch["attributes"] = 1
                    batch["compression"] = "gzip"

    entry = only(compared(JAVA, edited(JAVA, tmp_path, pack)))
    assert (entry.reason, entry.a, entry.b) == (DiffReason.CODEC, "none", "gzip")
    assert entry.settings == (("Java", "compression.type"),)


@pytest.mark.long
def test_partitions_with_the_same_values_are_one_difference_however_frequent_each_is(tmp_path: Path) -> None:
    """kafka-python sent most codecs to both partitions, and each in another order of frequency."""
    plain, packed = (str(recording("kafka-python", f"{scenario}-1")) for scenario in ("plain", "compression"))
    [entry] = [each for each in compared(plain, packed).entries if each.reason is DiffReason.CODEC]
    assert (entry.count_a, entry.count_b) == (17, 23)

    def pack(lines: Lines) -> None:
        for line in of(lines, "Produce"):
            for partition in line["request"]["body"]["topic_data"][0]["partition_data"]:
                for batch in partition["records"]["batches"]:
                    batch["attributes"], batch["compression"] = ((1, "gzip"), (2, "snappy"))[partition["index"] % 2]

    found = compared(JAVA, edited(JAVA, tmp_path, pack)).entries
    assert sorted(each.b for each in found if each.reason is DiffReason.CODEC) == ["gzip", "snappy"]


def test_another_batch_size_is_a_difference() -> None:
    a, b = ProducedBatches(), ProducedBatches()
    for batching, records in ((a, 10), (b, 40)):
        for _ in range(30):
            batching.records.append(records)
            batching.sizes.append(records * 100)
    found = list(compare_batching(a, b, NameMatching({}, {}, (NameUses({}), NameUses({})))))
    assert [(each.reason, each.a, each.b, each.explanation) for each in found] == [
        (DiffReason.BATCHING, "1.0k", "4.0k", "median bytes per batch; median records per batch: 10 vs 40"),
    ]


def _of_clients(a: str, b: str) -> list[DiffEntry]:
    return compared(*(bundled(f"clients/{each}/plain-1") + ".zst" for each in (a, b))).entries


def test_a_connection_that_is_for_a_producer_id_is_not_for_the_bootstrap() -> None:
    [entry] = [each for each in _of_clients("franz-go", "java-4.3") if each.path == "connections"]
    assert entry.a == "8 with 2 fetch, 2 group coordinator, 1 producer id"
    assert entry.b == "5 with 1 fetch, 1 group coordinator"


def test_user_data_of_an_assignor_of_both_sides_follows_from_no_other_assignor() -> None:
    found = {each.path: (each.a, each.b) for each in _of_clients("franz-go", "java-4.3") if each.api == "JoinGroup"}
    assert found["protocols.metadata.user_data.generation"] == ("0", "-1")


def test_an_epoch_without_a_producer_id_is_a_difference_and_the_sequence_follows_from_it() -> None:
    [entry] = [each for each in _of_clients("kafkajs", "rskafka") if each.path.endswith("producer_epoch")]
    assert (entry.a, entry.b) == ("an epoch", "-1 NO_PRODUCER_EPOCH")
    assert "base_sequence" in entry.explanation


@pytest.mark.long
def test_what_follows_from_static_membership_is_part_of_it() -> None:
    """Three consumers are restarted one after the other: static ones join without an id, and do not leave (KIP-345)."""
    dynamic, static = (str(PCAPS / "groups" / f"rolling-restart{name}.pcapng.gz") for name in ("", "-static"))
    for sides in ((dynamic, static), (static, dynamic)):
        found = compared(*sides).entries
        [named] = [each for each in found if (each.api, each.path) == ("JoinGroup", "group_instance_id")]
        assert "LeaveGroup requests" in named.explanation
        assert not [each for each in found if each.api == "LeaveGroup" or each.path == "member_id"]
        assert not [each for each in found if each.subject.endswith("with MEMBER_ID_REQUIRED")]


@pytest.mark.long
def test_how_many_members_a_leader_sees_is_no_difference() -> None:
    """Six of them, with those before the restart, and three that keep their names."""
    paths = (str(PCAPS / "groups" / f"rolling-restart{name}.pcapng.gz") for name in ("", "-static"))
    found = {(each.api, each.path) for each in compared(*paths).entries}
    assert not {("JoinGroup", "members"), ("SyncGroup", "assignments")} & found


def test_a_join_without_a_member_id_is_tried_again_for_one(tmp_path: Path) -> None:
    """The coordinator loads at first: the join after that is answered with MEMBER_ID_REQUIRED, as without the load."""

    def refused(lines: Lines) -> Lines:
        before = copy.deepcopy(of(lines, "JoinGroup")[0])
        before["correlation_id"] += FURTHER_ID
        for part in ("request", "response"):
            before[part]["header"]["correlation_id"] += FURTHER_ID
        before["response"]["body"] |= {"error_code": COORDINATOR_LOAD_IN_PROGRESS, "member_id": ""}
        before["request"]["time_ns"] -= 200_000
        before["response"]["time_ns"] = before["request"]["time_ns"] + 100_000
        at = lines.index(of(lines, "JoinGroup")[0])
        return [*lines[:at], before, *lines[at:]]

    comparison = compared(JAVA, edited(JAVA, tmp_path, refused))
    assert entry_texts(comparison) == []
    assert [pair.verdict for pair in comparison.pairs if pair.a is None] == [PairVerdict.MORE]


@pytest.mark.parametrize(
    ("version", "body", "step"),
    [
        (4, {"member_id": "", "group_instance_id": None}, "MEMBER_ID_REQUIRED"),
        (3, {"member_id": ""}, ""),
        (5, {"member_id": "", "group_instance_id": "worker-1"}, ""),
        (5, {"member_id": "java-1", "group_instance_id": None}, ""),
    ],
)
def test_who_is_asked_for_a_member_id(version: int, body: dict[str, object], step: str) -> None:
    assert retried_step("JoinGroup", version, body) == step
    assert retried_step("Heartbeat", version, body) == ""


@pytest.mark.long
def test_a_program_in_transactions_and_in_a_new_group_differs_in_just_that() -> None:
    """librdkafka produces with and without a transaction, and joins by KIP-848 and without."""
    folder = PCAPS / "clients" / "librdkafka-2.16"
    paths = [str(folder / f"{name}-1.pcapng.zst") for name in ("group-classic", "group-kip848")]
    for sides in (paths, paths[::-1]):
        found = {(each.api, each.path): each.explanation for each in compared(*sides).entries}
        assert "ConsumerGroupHeartbeat" in {api for api, _ in found}
        assert not {("Metadata", "topics.name"), ("Metadata", "topics.topic_id")} & set(found)
    paths = [str(folder / f"{name}-1.pcapng.zst") for name in ("plain", "transactional")]
    for sides in (paths, paths[::-1]):
        found = {(each.api, each.path): each.explanation for each in compared(*sides).entries}
        assert ("Produce", "") not in found
        assert found["InitProducerId", ""].count("Produce requests") == 1
