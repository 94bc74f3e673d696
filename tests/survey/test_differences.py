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
