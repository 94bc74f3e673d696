"""What is found of what comes again and again: errors, throttling, metadata, rebalances; and what is calm."""

from pathlib import Path

import pytest

from tests.findings.conversations import Talk, codes, fetch, found, heartbeat, produce


@pytest.mark.parametrize(("times", "expected"), [(9, []), (15, [(9, "error-storm")])])
def test_a_retriable_error_again_and_again(tmp_path: Path, times: int, expected: list[tuple[int, str]]) -> None:
    talk = Talk()
    for n in range(times):
        produce(talk, 100 * n, error=6)
    assert codes(tmp_path, talk) == expected


def test_a_storm_has_a_count_and_another_begins_after_a_quiet_time(tmp_path: Path) -> None:
    talk = Talk()
    for n in range(12):
        produce(talk, 100 * n, error=6)
    for n in range(12):
        produce(talk, 60_000 + 100 * n, error=6)
    (row, finding), (later, _) = found(tmp_path, talk)
    assert (row, later) == (9, 21)
    assert finding.message.startswith(
        "NOT_LEADER_OR_FOLLOWER from Produce 12 times within 1.100 s; this broker no longer leads the partition"
    )


@pytest.mark.parametrize(("times", "expected"), [(9, []), (30, ["error-storm"])])
def test_an_error_that_no_retry_mends_again_and_again(tmp_path: Path, times: int, expected: list[str]) -> None:
    talk = Talk()
    for n in range(times):
        produce(talk, n, error=29)
    found_codes = [code for _, code in codes(tmp_path, talk) if code != "tiny-batches"]
    assert found_codes == expected


def test_a_storm_says_of_what_and_what_the_error_asks_for(tmp_path: Path) -> None:
    talk = Talk()
    for n in range(12):
        fetch(talk, 20 * n, 1_100, -1, error=0, partition_error=1)
    [(_, finding)] = found(tmp_path, talk)
    assert finding.message.startswith(
        "OFFSET_OUT_OF_RANGE from Fetch 12 times for orders[0] at offset 1,100 within 220.0 ms; the log does not hold"
    )


def test_a_negative_offset_is_no_policy(tmp_path: Path) -> None:
    talk = Talk()
    for n in range(12):
        fetch(talk, 20 * n, -1, -1, partition_error=1)
    [(_, finding)] = found(tmp_path, talk)
    assert finding.message.endswith("no log has a negative offset: the client took one from a response with an error")


def test_an_offset_that_is_reset_is_no_storm(tmp_path: Path) -> None:
    talk = Talk()
    for n in range(30):
        fetch(talk, 20 * n, 1_100 + n, -1, partition_error=1)
    assert not codes(tmp_path, talk)


def create(talk: Talk, at: float, name: str, error: int) -> None:
    body = {"topics": [{"name": name, "num_partitions": 1, "replication_factor": 1}], "timeout_ms": 1000}
    talk.ask(at, "CreateTopics", 5, body, {"topics": [{"name": name, "error_code": error}]})


@pytest.mark.parametrize(("names", "expected"), [(1, ["error-storm"]), (30, [])])
def test_many_topics_that_exist_are_no_storm(tmp_path: Path, names: int, expected: list[str]) -> None:
    talk = Talk()
    for n in range(30):
        create(talk, 20 * n, f"topic-{n % names}", 36)
    assert [code for _, code in codes(tmp_path, talk)] == expected


def commit(talk: Talk, at: float, error: int) -> None:
    partition = {"partition_index": 0, "committed_offset": 5}
    body = {"group_id": "g", "member_id": "m", "topics": [{"name": "orders", "partitions": [partition]}]}
    answer = {"topics": [{"name": "orders", "partitions": [{"partition_index": 0, "error_code": error}]}]}
    talk.ask(at, "OffsetCommit", 7, body, answer)


@pytest.mark.parametrize(
    ("times", "pause", "expected"),
    [(19, 12_000, []), (20, 12_000, ["error-storm"]), (20, 30_000, ["error-storm"]), (40, 30_001, [])],
)
def test_a_client_that_retries_slowly_for_ever(tmp_path: Path, times: int, pause: int, expected: list[str]) -> None:
    talk = Talk()
    for n in range(times):
        commit(talk, pause * n, 16)
    found_here = found(tmp_path, talk)
    assert [finding.code for _, finding in found_here] == expected
    for _, finding in found_here:
        assert finding.message.startswith("NOT_COORDINATOR from OffsetCommit 20 times within ")
        assert finding.message.endswith("find the coordinator again and send the request there")


def test_a_burst_is_not_a_slow_storm_as_well(tmp_path: Path) -> None:
    talk = Talk()
    for n in range(40):
        commit(talk, 100 * n, 16)
    assert [finding.code for _, finding in found(tmp_path, talk)] == ["error-storm"]


def test_a_group_that_rebalances_is_no_storm_of_errors(tmp_path: Path) -> None:
    talk = Talk()
    for n in range(30):
        heartbeat(talk, 100 * n, error=27)
    assert "error-storm" not in [code for _, code in codes(tmp_path, talk)]


def test_throttling_is_reported_once(tmp_path: Path) -> None:
    talk = Talk()
    for n in range(3):
        produce(talk, 100 * n, 5, throttle=40 * n)
    [(row, finding)] = found(tmp_path, talk)
    assert (row, finding.code, finding.path) == (1, "throttled", "response.body.throttle_time_ms")
    assert finding.message == "Produce was throttled for 40 ms; 2 such responses within 100.0 ms"


@pytest.mark.parametrize("error", [70, 71])
def test_a_lost_fetch_session(tmp_path: Path, error: int) -> None:
    talk = Talk()
    fetch(talk, 0, 1, 1)
    fetch(talk, 10, 1, 1, error=error)
    assert codes(tmp_path, talk) == [(1, "fetch-session-error")]


def test_metadata_without_end_and_why(tmp_path: Path) -> None:
    talk = Talk()
    produce(talk, 0, error=6)
    for n in range(35):
        talk.ask(10 + n, "Metadata", 12, {"topics": None}, {})
    [(row, finding)] = found(tmp_path, talk)
    assert (row, finding.code) == (30, "metadata-storm")
    assert finding.message.startswith("35 requests for metadata (errors until then: NOT_LEADER_OR_FOLLOWER 1) within")


def join(talk: Talk, at: float, generation: int, error: int = 0) -> None:
    body = {"group_id": "readers", "session_timeout_ms": 10_000, "protocol_type": "consumer"}
    talk.ask(at, "JoinGroup", 5, body, {"error_code": error, "generation_id": generation, "member_id": "one"})


def test_a_group_that_does_not_come_to_rest(tmp_path: Path) -> None:
    talk = Talk()
    for n in range(7):
        join(talk, 1000 * n, n)
        heartbeat(talk, 1000 * n + 500, error=27)
    [(row, finding)] = [each for each in found(tmp_path, talk) if each[1].code == "rebalance-loop"]
    assert row == 12
    assert finding.message.startswith(
        "group readers rebalanced 6 times in 5.5 s because another member joined, left or was removed 6 times: it is "
        "not in this capture"
    )


def test_members_that_join_one_generation_after_their_id_is_given_are_calm(tmp_path: Path) -> None:
    talks = [Talk(n, f"member-{n}") for n in range(1, 9)]
    for n, talk in enumerate(talks):
        join(talk, n, -1, error=79)
        join(talk, 100 + n, 1)
    assert not codes(tmp_path, *talks)


def test_a_client_that_never_takes_its_member_id(tmp_path: Path) -> None:
    talk = Talk()
    for n in range(8):
        join(talk, 100 * n, -1, error=79)
    assert codes(tmp_path, talk) == [(1, "everyday-error-again")]
