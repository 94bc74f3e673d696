"""What reading the differences of each pair of clients showed to be wrong, and must not come back."""

import pytest

from dissector.analysis.diff.behavior import side_behavior
from dissector.analysis.diff.ranking import Area, area_of
from dissector.analysis.diff.side_profile import SideProfile
from dissector.analysis.diff.summary import summary_lines
from tests.analysis.diff.editing import compared, entry_texts, lines_of, of, side
from tools.lab.survey.recording_files import recording_path


def plain(client: str, number: int = 1) -> str:
    return str(recording_path(client, "plain", number))


def test_what_closes_a_session_has_no_limits_to_compare() -> None:
    """franz-go closes with 1 ms and 1 byte, Java with its usual limits."""
    found = entry_texts(compared(plain("java-4.3"), plain("franz-go")))
    assert [each[3:] for each in found if each[1].endswith(("max_wait_ms", "max_bytes"))] == [("500", "5000")]


@pytest.mark.long
def test_a_time_that_is_left_is_about_that_of_the_setting() -> None:
    """kafka-go sends what is left until its deadline: 8998 and 8999 ms."""
    waits = {
        line["request"]["body"]["max_wait_ms"]
        for n in (1, 2, 3)
        for line in of(lines_of(plain("kafka-go", n)), "Fetch")
    }
    assert len(waits) > 1
    texts = {side_behavior(SideProfile(side(plain("kafka-go", n)), {}, {}))["fetch max wait (ms)"] for n in (1, 2, 3)}
    assert texts == {"9000"}


def test_a_time_that_is_left_equals_the_setting_that_it_is_about() -> None:
    """kafka-go sends 4999 ms with its records, platformatic 5000."""
    found = entry_texts(compared(plain("kafka-go"), plain("platformatic")))
    assert [each for each in found if each[0] == "Produce" and "timeout_ms" in each[1]] == []


def test_the_brief_counts_every_entry() -> None:
    """Two entries of kafka-go and librdkafka say user_data null vs empty: of a subscription and of an assignment."""
    entries = compared(plain("kafka-go"), plain("librdkafka-2.16")).entries
    [line] = [line for line in summary_lines(entries) if line.startswith("Groups")]
    groups = [each for each in entries if area_of(each) is Area.GROUPS]
    assert line == f"Groups: rebalance_timeout_ms 30000 vs 300000; and {len(groups) - 1} more"


def test_how_many_requests_few_records_need_is_not_compared() -> None:
    """librdkafka 2.3 sent the same 100 records in 6 requests and in 20."""
    counts = [len(of(lines_of(plain("librdkafka-2.3", n)), "Produce")) for n in (1, 2)]
    assert max(counts) > 1.5 * min(counts)
    assert compared(plain("librdkafka-2.3"), plain("librdkafka-2.3", 2)).is_same


def test_a_subscription_that_ends_early_is_decoded_where_no_protocol_is_named() -> None:
    """kafka-go asks for JoinGroup v2, whose response has no protocol type, with a subscription of version 1 that has no
    owned partitions."""
    [join] = of(lines_of(plain("kafka-go")), "JoinGroup")
    asked = join["request"]["body"]["protocols"][0]["metadata_decoded"]
    assert asked["missing_fields"] == ["owned_partitions"]
    assert [each["metadata_decoded"] for each in join["response"]["body"]["members"]] == [asked]


@pytest.mark.long
def test_one_cause_stands_for_its_consequences() -> None:
    """Fewer requests by who waits longer; an assignor's name and user data; the member id of a coordinator that demands
    none."""
    for other in ("franz-go", "kafka-go", "platformatic"):
        comparison = compared(plain("java-4.3"), plain(other))
        found = {(each.api, each.part, each.path): each.explanation for each in comparison.entries}
        assert "also changes number of requests" in found["Fetch", "request", "max_wait_ms"]
        assert not {("Fetch", "", ""), ("Fetch", "", "interval"), ("SyncGroup", "request", "protocol_name")} & set(
            found
        )
        assert ("JoinGroup", "request", "member_id") not in found
        assert ("JoinGroup", "request", "protocols.metadata.owned_partitions") not in found
    assert ("Fetch", "interval") in [(e.api, e.path) for e in compared(plain("java-4.3"), plain("rskafka")).entries]


@pytest.mark.long
def test_user_data_of_another_assignor_is_no_difference_of_its_own() -> None:
    """franz-go offers cooperative-sticky alone, whose user data is decoded; the others have another assignor's, too."""
    for client in ("java-4.3", "sarama"):
        found = compared(plain(client), plain("franz-go")).entries
        assert not [each for each in found if each.path == "protocols.metadata.user_data" and not each.b]


@pytest.mark.long
def test_who_joins_once_more_is_one_difference() -> None:
    """Although another JoinGroup is there for another cause: a coordinator asks kafka-go for no second one."""
    comparison = compared(plain("kafka-python"), plain("kafka-go"))
    found = {entry[:2] + entry[3:]: each.explanation for entry, each in
             zip(entry_texts(comparison), comparison.entries, strict=True)}  # fmt: skip
    assert ("SyncGroup", "", "2", "1") not in found
    assert found["JoinGroup", "", "2", "1"].endswith("also changes SyncGroup number of requests")
    assert "SyncGroup" not in found["JoinGroup", "version", "v7", "v2"]


@pytest.mark.long
def test_a_connection_that_looks_up_offsets_besides_does_not_fetch() -> None:
    """kafkajs and platformatic ask the coordinator's connection for offsets and fetch on another, as librdkafka does;
    sarama does all on one."""
    for client in ("kafkajs", "platformatic"):
        assert not [each for each in compared(plain(client), plain("librdkafka-2.3")).entries if not each.api]
    [connections] = [each for each in compared(plain("sarama"), plain("kafkajs")).entries if not each.api]
    assert "fetch + group coordinator" in connections.a
    assert "fetch + group coordinator" not in connections.b


@pytest.mark.long
def test_a_group_of_one_side_has_all_of_its_joins() -> None:
    """Two of Java, as the coordinator refuses the first one for its member id; one of kafka-go, which none refuses."""
    for client, joins in (("java-4.3", "2"), ("kafka-go", "1"), ("kafka-python", "3")):
        [join] = [each for each in compared(plain(client), plain("rskafka")).entries if each.api == "JoinGroup"]
        assert (join.a, join.row_a) == (joins, of(lines_of(plain(client)), "JoinGroup")[0]["number"] - 1)


@pytest.mark.long
def test_a_field_that_differs_in_some_requests_says_in_which() -> None:
    """sarama forbids topic creation where it asks for all topics, and Java has a reason to join only the second time;
    kafkajs always allows it."""
    auto = "Metadata allow_auto_topic_creation"

    def subjects(a: str, b: str, field: str) -> list[tuple[str, str, str]]:
        entries = compared(plain(a), plain(b)).entries
        return [(e.subject, e.a, e.b) for e in entries if f"{e.api} {e.path}" == field]

    assert subjects("sarama", "platformatic", auto) == [("for topics", "true", "false")]
    assert subjects("kafkajs", "platformatic", auto) == [("", "true", "false")]
    [(_, second, _), (first, nothing, _)] = subjects("java-4.3", "franz-go", "JoinGroup reason")
    assert (first, nothing) == ("with MEMBER_ID_REQUIRED", "empty")
    assert second.startswith("need to re-join")


def test_fields_that_a_subscription_lacks_are_named() -> None:
    for client in ("kafka-go", "platformatic"):
        [missing] = [e for e in compared(plain("java-4.3"), plain(client)).entries if e.path.endswith("missing_fields")]
        assert (missing.a, missing.b) == ("", "owned_partitions")


def test_an_interval_on_more_connections_says_so() -> None:
    """rskafka fetches each partition on a connection of its own, in turn: half as often on each, as often in all."""
    [interval] = [each for each in compared(plain("java-4.3"), plain("rskafka")).entries if each.path == "interval"]
    assert interval.explanation.endswith("{a} sends them on 1, {b} on 2")


@pytest.mark.long
def test_a_member_id_with_its_epoch_is_one_difference() -> None:
    """franz-go commits offsets as a member of the new protocol does; platformatic has an id without an epoch."""
    for other, explanation in (("java-4.3", "also changes request.member_id"), ("platformatic", "schema's default")):
        found = compared(plain("franz-go"), plain(other)).entries
        [member] = [e for e in found if e.api == "OffsetFetch" and e.path.startswith("member")]
        assert member.path == "member_epoch"
        assert member.explanation.endswith(explanation)


def test_records_in_other_partitions_are_not_called_other_records() -> None:
    lines = list(summary_lines(compared(plain("sarama"), plain("rskafka")).entries))
    assert "keys in other partitions" in lines[0]
    assert "other records" not in lines[0]
