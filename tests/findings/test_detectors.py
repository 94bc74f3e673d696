"""Each class of findings: what shows it, once, and what is next to it and does not."""

import random
from pathlib import Path

import pytest

from dissector.core.finding import Finding
from dissector.protocol.wire import uuid_text
from tests.cases import cases
from tests.findings.conversations import Talk, Values, codes, fetch, found, grown, heartbeat, produce, troubles
from tests.traffic import ACK, Packet, capture_of, conversation, ethernet, exchanges, pcap

CUPS = b"cup saucer spoon kettle " * 20


def test_an_id_that_is_in_flight_is_used_again(tmp_path: Path) -> None:
    talk = Talk()
    heartbeat(talk, 0, took=20, correlation_id=7)
    heartbeat(talk, 10, took=20, correlation_id=7)
    heartbeat(talk, 11, took=20, correlation_id=7)
    [(row, finding)] = found(tmp_path, talk)
    assert (row, finding.code) == (1, "duplicate-correlation-id")
    assert "2 such requests" in finding.message


def test_an_id_that_is_free_again_may_be_used(tmp_path: Path) -> None:
    talk, other = Talk(1), Talk(2)
    for at in (0, 10, 20):
        heartbeat(talk, at, took=5, correlation_id=7)
        heartbeat(other, at + 1, took=5, correlation_id=7)
    assert not codes(tmp_path, talk, other)


def test_a_duplicate_id_across_steps_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dissector.findings.framework.examination.STEP", 1)
    talk = Talk()
    heartbeat(talk, 0, took=20, correlation_id=7)
    heartbeat(talk, 1, took=30, correlation_id=8)
    heartbeat(talk, 10, took=40, correlation_id=7)
    assert codes(tmp_path, talk) == [(2, "duplicate-correlation-id")]


@cases("step", [1, 2, 4096])
def test_an_answer_that_overtakes_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    monkeypatch.setattr("dissector.findings.framework.examination.STEP", step)
    talk = Talk()
    heartbeat(talk, 0)
    heartbeat(talk, 10, took=20)
    heartbeat(talk, 11, took=2)
    heartbeat(talk, 40)
    assert codes(tmp_path, talk) == [(2, "out-of-order-response")]


def test_pipelined_answers_in_order_are_as_they_should_be(tmp_path: Path) -> None:
    talk = Talk()
    for n in range(20):
        heartbeat(talk, n, took=10)
    assert not codes(tmp_path, talk)


def test_a_slow_response_is_reported_once_with_the_requests_behind_it(tmp_path: Path) -> None:
    talk = Talk()
    for n in range(100):
        heartbeat(talk, 10 * n, took=2)
    heartbeat(talk, 2000, took=300)
    heartbeat(talk, 2010, took=295)
    [(row, finding)] = found(tmp_path, talk)
    assert (row, finding.code) == (100, "slow")
    assert finding.message.startswith("took 300.0 ms; Heartbeat takes ")
    assert finding.message.endswith("1 more waited behind it")


def test_a_connection_that_is_always_slow_is_not_reported(tmp_path: Path) -> None:
    talk = Talk()
    for n in range(100):
        heartbeat(talk, 1000 * n, took=300 if n % 5 else 2)
    assert not codes(tmp_path, talk)


@pytest.mark.parametrize(("took", "expected"), [(510, []), (1500, [(0, "slow")])])
def test_a_fetch_may_wait_as_long_as_its_max_wait(tmp_path: Path, took: float, expected: list[tuple[int, str]]) -> None:
    talk = Talk()
    fetch(talk, 0, 10, 10, took=took)
    assert codes(tmp_path, talk) == expected


def test_requests_left_in_flight(tmp_path: Path) -> None:
    talk, quiet = Talk(1, closed=True), Talk(2, closed=True)
    for at in (0, 5, 9):
        talk.ask(at, "Heartbeat", 4, {"group_id": "readers", "generation_id": 1, "member_id": "one"})
    quiet.ask(0, "Metadata", 12, {"topics": None})  # a client leaves that in flight whenever it ends
    [(row, finding)] = found(tmp_path, talk, quiet)
    assert (row, finding.code) == (0, "closed-in-flight")
    assert finding.message == "the client closed the connection with 3 requests in flight, the oldest 9.0 ms old"


def test_a_connection_that_goes_on_may_have_requests_in_flight(tmp_path: Path) -> None:
    talk = Talk(closed=False)
    talk.ask(0, "Heartbeat", 4, {"group_id": "readers", "generation_id": 1, "member_id": "one"})
    assert not codes(tmp_path, talk)


def test_a_large_request_broken_off(tmp_path: Path) -> None:
    talk = Talk(closed=True)
    heartbeat(talk, 0)
    produce(talk, 5, value=bytes(2 << 20))
    last = talk.turns[-2]
    talk.turns[-2:] = [type(last)(last.time_ns, True, last.data[:5000])]
    assert codes(tmp_path, talk) == [(1, "oversized-request")]


@pytest.mark.parametrize(("version", "expected"), [(3, []), (4, [(1, "version-not-offered")])])
def test_a_version_that_the_broker_did_not_name(tmp_path: Path, version: int, expected: list[tuple[int, str]]) -> None:
    talk = Talk()
    offer = {"api_keys": [{"api_key": 12, "min_version": 0, "max_version": 3}, {"api_key": 18, "max_version": 3}]}
    talk.ask(0, "ApiVersions", 2, {}, offer)
    for at in (1, 2):
        talk.ask(at, "Heartbeat", version, {"group_id": "readers", "generation_id": 1, "member_id": "one"}, {})
    assert codes(tmp_path, talk) == expected


@cases(
    ("low", "high", "advice"),
    [
        (5, 9, "advertised v5–v9: upgrade the client, or remove the setting"),
        (0, 3, "advertised v0–v3: upgrade the broker, or let the client ask it"),
        (0, -1, "did not advertise the API: use a broker that has it"),
    ],
)
def test_a_version_that_is_not_offered_says_what_to_change(tmp_path: Path, low: int, high: int, advice: str) -> None:
    talk = Talk()
    offers = [{"api_key": 18, "max_version": 3}]
    offers += [{"api_key": 12, "min_version": low, "max_version": high}] if low <= high else []
    talk.ask(0, "ApiVersions", 2, {}, {"api_keys": offers})
    talk.ask(1, "Heartbeat", 4, {"group_id": "readers", "generation_id": 1, "member_id": "one"}, {})
    [(_, finding)] = found(tmp_path, talk)
    assert finding.message.startswith(f"Heartbeat v4, but the broker {advice}")


def test_another_connection_to_the_same_broker_knows_what_it_offers(tmp_path: Path) -> None:
    talk, other = Talk(1), Talk(2)
    talk.ask(0, "ApiVersions", 2, {}, {"api_keys": [{"api_key": 12, "min_version": 0, "max_version": 3}]})
    heartbeat(other, 5)
    assert codes(tmp_path, talk, other) == [(1, "version-not-offered")]


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
    assert finding.message == "NOT_LEADER_OR_FOLLOWER from Produce 12 times within 1.100 s"


def test_an_error_that_is_not_retriable_is_no_storm(tmp_path: Path) -> None:
    talk = Talk()
    for n in range(30):
        produce(talk, n, error=29)
    assert "error-storm" not in dict(map(reversed, codes(tmp_path, talk)))


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
    assert row == 8
    assert finding.message.startswith("group readers rebalanced 7 times (REBALANCE_IN_PROGRESS 6) within")


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
    assert codes(tmp_path, talk) == [(1, "everyday-error-again"), (5, "rebalance-loop")]


def test_a_version_refused_once_is_negotiation_and_refused_twice_a_finding(tmp_path: Path) -> None:
    def ask(talk: Talk, at: float, version: int, error: int) -> None:
        talk.ask(at, "ApiVersions", version, {}, {"error_code": error})

    calm, again = Talk(1), Talk(2)
    for at, talk in ((0, calm), (10, again)):
        ask(talk, at, 2, 35)
        ask(talk, at + 1, 1, 0)
        ask(talk, at + 2, 2, 35)
    ask(again, 20, 1, 35)
    (row, finding) = next(each for each in found(tmp_path, calm, again) if each[1].code == "everyday-error-again")
    assert (row, finding.severity) == (6, "warning")
    assert finding.message == "UNSUPPORTED_VERSION again from ApiVersions, on the same connection"


@cases(("records", "times", "expected"), [(1, 49, []), (3, 80, []), (2, 80, [(49, "tiny-batches")])])
def test_tiny_batches(tmp_path: Path, records: int, times: int, expected: list[tuple[int, str]]) -> None:
    talk = Talk()
    for n in range(times):
        produce(talk, n, records)
    assert codes(tmp_path, talk) == expected


def test_batches_that_would_compress(tmp_path: Path) -> None:
    plain, packed, dense = Talk(1), Talk(2), Talk(3)
    noise = random.Random(1).randbytes(9_000)
    for n in range(5):
        produce(plain, n, 30, value=CUPS)
        produce(packed, n, 30, value=CUPS, codec=1)
        produce(dense, n, 3, value=noise)
    [(_, finding)] = found(tmp_path, plain, packed, dense)
    assert finding.code == "uncompressed-batches"
    assert finding.message.startswith("5 batches with ")


def test_numbers_left_out_and_sent_again(tmp_path: Path) -> None:
    talk = Talk()
    for at, (sequence, count) in enumerate([(0, 3), (3, 3), (3, 3), (9, 2), (11, 1)]):
        produce(talk, at, count, producer=(70, 0, sequence))
    (again, retried), (row, gap) = found(tmp_path, talk)
    assert (again, retried.code, row, gap.code) == (2, "retried-batch", 3, "sequence-gap")
    assert gap.message == "begins with sequence number 9, expected 6"
    assert gap.path == "request.body.topic_data[0].partition_data[0].records.base_sequence"


def test_sequence_numbers_begin_again_with_an_epoch_and_after_the_last(tmp_path: Path) -> None:
    talk = Talk()
    last = (1 << 31) - 2
    for at, (epoch, sequence) in enumerate([(0, 0), (0, 2), (1, 0), (1, 2), (2, last), (2, 0)]):
        produce(talk, at, 2, producer=(70, epoch, sequence))
    assert not codes(tmp_path, talk)


def test_numbers_that_the_capture_may_have_lost_are_no_gap(tmp_path: Path) -> None:
    talk = Talk()
    produce(talk, 0, 2, producer=(70, 0, 0))
    talk.turns[-2] = type(talk.turns[-2])(talk.turns[-2].time_ns, True, talk.turns[-2].data, 300)
    produce(talk, 10, 2, producer=(70, 0, 8))
    produce(talk, 20, 2, producer=(70, 0, 10))
    assert "sequence-gap" not in [code for _, code in codes(tmp_path, talk)]


@cases(
    ("ends", "expected"),
    [
        ([100, 200, 300], []),
        ([5000, 4000, 3000, 2000], []),
        ([2000, 3000, 6000, 9000], [(2, "consumer-lag")]),
        ([200_000, 199_000], [(0, "consumer-lag")]),
    ],
)
def test_how_far_behind_a_fetch_reads(tmp_path: Path, ends: list[int], expected: list[tuple[int, str]]) -> None:
    talk = Talk()
    for n, end in enumerate(ends):
        fetch(talk, 2000 * n, 0, end)
    assert codes(tmp_path, talk) == expected


@cases("version", [12, 15, 18])
def test_a_follower_is_no_consumer_that_lags(tmp_path: Path, version: int) -> None:
    named = {"topic": "orders"} if version < 13 else {"topic_id": uuid_text(bytes(15) + b"\1")}
    asked = {**named, "partitions": [{"partition": 0, "fetch_offset": 0}]}
    had = {**named, "partitions": [{"partition_index": 0, "high_watermark": 200_000, "records": None}]}
    replica: Values = {"replica_id": 2}
    follower = replica if version < 15 else {"replica_state": replica}
    for of_replica, expected in (({}, ["consumer-lag"]), (follower, [])):
        talk = Talk()
        talk.ask(0, "Fetch", version, {"max_wait_ms": 500, "topics": [asked], **of_replica}, {"responses": [had]})
        assert [code for _, code in codes(tmp_path, talk)] == expected


@cases("step", [1, 2, 4096])
def test_a_hole_next_to_an_exchange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    monkeypatch.setattr("dissector.findings.framework.examination.STEP", step)
    unanswered, behind = Talk(1), Talk(2)
    for talk in (unanswered, behind):
        heartbeat(talk, 0)
    unanswered.ask(10, "Heartbeat", 4, {"group_id": "readers", "generation_id": 1, "member_id": "one"})
    unanswered.lose(11, 100)
    heartbeat(unanswered, 3000)
    behind.lose(20, 200)
    heartbeat(behind, 30)
    (row, before), (other, after) = found(tmp_path, unanswered, behind)
    assert (row, before.code, other, after.code) == (2, "near-loss", 3, "near-loss")
    assert before.message == "the response may be among 100 missing bytes"
    assert after.message == "200 bytes are missing right before the response"


@pytest.mark.parametrize("step", [1, 4096])
def test_a_hole_before_an_answer_whose_request_came_before_the_hole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    monkeypatch.setattr("dissector.findings.framework.examination.STEP", step)
    talk = Talk()
    heartbeat(talk, 0)
    heartbeat(talk, 10, took=20)
    talk.lose(15, 200)
    heartbeat(talk, 40)
    talk.turns.sort(key=lambda turn: turn.time_ns)
    [(row, finding)] = found(tmp_path, talk)
    assert (row, finding.code, finding.message) == (
        1, "near-loss", "200 bytes are missing right before the response"
    )  # fmt: skip


def resending(folder: Path, pause: int, *, ahead: bool = False) -> list[tuple[int, Finding]]:
    """Two exchanges, a packet a millisecond; the second response comes again after a pause, or for the first time with
    what stands `ahead` of it already seen."""
    packets = conversation([*exchanges(1, size=100), *exchanges(1, size=100)], segment=54)
    idle = [Packet(True, packets[-1].ack, b"", ACK, 1)] * pause
    if ahead:
        return troubles(capture_of(folder, [*packets[:-2], packets[-1], *idle, packets[-2]]))
    return troubles(capture_of(folder, [*packets, *idle, packets[-1]]))


def test_an_exchange_whose_bytes_tcp_sent_again(tmp_path: Path) -> None:
    [(row, finding)] = resending(tmp_path, 60)
    assert (row, finding.code, finding.severity) == (1, "near-loss", "note")
    assert finding.message == "bytes of the response were retransmitted 62.0 ms after it began"
    [(row, finding)] = resending(tmp_path, 60, ahead=True)
    assert (row, finding.code) == (1, "near-loss")
    assert finding.message == "the response waited 61.0 ms for bytes that arrived late"


@pytest.mark.parametrize(("in_time", "expected"), [(True, []), (False, [(0, "near-loss")])])
def test_a_retransmission_after_the_response_is_no_loss(
    tmp_path: Path, in_time: bool, expected: list[tuple[int, str]]
) -> None:
    opening, [request_packet, answer] = (packets := conversation(exchanges(1)))[:2], packets[2:]
    idle = [Packet(True, request_packet.seq + len(request_packet.payload), b"", ACK, 1)] * 60
    late = (
        [request_packet, answer, *idle, request_packet] if in_time else [request_packet, *idle, request_packet, answer]
    )
    found = troubles(capture_of(tmp_path, [*opening, *late]))
    assert [(row, finding.code) for row, finding in found] == expected


@pytest.mark.parametrize("ahead", [False, True])
def test_packets_seen_twice_or_overtaken_at_once_are_no_loss(tmp_path: Path, ahead: bool) -> None:
    assert not resending(tmp_path, 20, ahead=ahead)


def test_live_retransmissions_after_a_row_is_complete_are_reported(tmp_path: Path) -> None:
    packets = conversation(exchanges(2), segment=54)
    again = [*packets, *[Packet(True, packets[-1].ack, b"", ACK, 1)] * 80, packets[3]]
    whole = pcap([ethernet(packet) for packet in again])
    seen = [
        [(row, finding.code) for row, finding in capture.findings.cross_message()]
        for capture in grown(tmp_path / "growing.pcap", whole, [len(whole) - 200])
        for _ in [list(capture.examine())]
    ]
    assert seen[0] == []
    assert seen[-1] == [(0, "near-loss")]
