"""What reading the differences of each pair of clients showed to be wrong, and must not come back."""

from dissector.analysis.diff.behavior import side_behavior
from dissector.analysis.diff.side_profile import SideProfile
from tests.analysis.diff.editing import compared, entry_texts, lines_of, of, side
from tools.lab.survey.recording_files import recording_path


def plain(client: str, number: int = 1) -> str:
    return str(recording_path(client, "plain", number))


def test_what_closes_a_session_has_no_limits_to_compare() -> None:
    """franz-go closes with 1 ms and 1 byte, Java with its usual limits."""
    found = entry_texts(compared(plain("java-4.3"), plain("franz-go")))
    assert [each[3:] for each in found if each[1].endswith(("max_wait_ms", "max_bytes"))] == [("500", "5000")]


def test_a_time_that_is_left_is_about_that_of_the_setting() -> None:
    """kafka-go sends what is left until its deadline: 8998 and 8999 ms."""
    waits = {
        line["request"]["body"]["max_wait_ms"]
        for n in (1, 2, 3)
        for line in of(lines_of(plain("kafka-go", n)), "Fetch")
    }
    assert len(waits) > 1
    texts = {side_behavior(SideProfile(side(plain("kafka-go", n)), {}, {}))["fetch max wait (ms)"] for n in (1, 2, 3)}
    assert texts == {"about 9000"}


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


def test_one_cause_stands_for_its_consequences() -> None:
    """Fewer requests by who waits longer; an assignor's name and user data; the member id of a coordinator that demands
    none."""
    for other in ("franz-go", "kafka-go", "platformatic"):
        comparison = compared(plain("java-4.3"), plain(other))
        found = {(each.api, each.part, each.path): each.explanation for each in comparison.entries}
        assert "also changes requests" in found["Fetch", "request", "max_wait_ms"]
        assert not {("Fetch", "", ""), ("Fetch", "", "interval"), ("SyncGroup", "request", "protocol_name")} & set(
            found
        )
        assert ("JoinGroup", "request", "member_id") not in found
        assert ("JoinGroup", "request", "protocols.metadata.owned_partitions") not in found
    assert ("Fetch", "interval") in [(e.api, e.path) for e in compared(plain("java-4.3"), plain("rskafka")).entries]


def test_user_data_of_another_assignor_is_no_difference_of_its_own() -> None:
    """franz-go offers cooperative-sticky alone, whose user data is decoded; the others have another assignor's, too."""
    for client in ("java-4.3", "sarama"):
        found = compared(plain(client), plain("franz-go")).entries
        assert not [each for each in found if each.path == "protocols.metadata.user_data" and not each.b]


def test_who_joins_once_more_is_one_difference() -> None:
    found = entry_texts(compared(plain("kafka-python"), plain("kafka-go")))
    assert ("SyncGroup", "", "count", "2", "1") not in found
    assert ("JoinGroup", "", "count", "2", "1") in found
