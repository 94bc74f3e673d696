"""Any network that loses nothing gives the same exchanges; one that loses something loses that, and says where."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture_session import Capture
from dissector.core import limits
from dissector.exchange.model import ExchangeRow
from tests.traffic import (
    ACK,
    FIN,
    RST,
    SYN,
    Packet,
    Turn,
    capture_of,
    conversation,
    exchanges,
    reordered,
    repeated,
    request,
    resegmented,
    response,
    seeds,
)


def rows(path: str) -> list[ExchangeRow]:
    with Capture([path]) as capture:
        return [exchange.row for exchange in capture.exchanges()]


def rows_of(path: str) -> list[tuple[str, int, str, int | None, int | None, int | None]]:
    """Rows without times."""
    return [(r.kind, r.connection, r.api, r.correlation_id, r.request_size, r.response_size) for r in rows(path)]


@given(
    chance=seeds,
    count=st.integers(1, 12),
    pipelined=st.integers(1, 4),
    mangle=st.sampled_from(["cut", "order", "twice", "all"]),
)
def test_a_network_that_loses_nothing_changes_nothing(
    tmp_path: Path, chance: random.Random, count: int, pipelined: int, mangle: str
) -> None:
    packets = conversation(exchanges(count, pipelined=pipelined, size=40), segment=60)
    clean = rows_of(capture_of(tmp_path, packets))
    assert len(clean) == count
    if mangle in ("cut", "all"):
        packets = resegmented(packets, chance)
    if mangle in ("order", "all"):
        packets = reordered(packets, chance)
    if mangle in ("twice", "all"):
        packets = repeated(packets, chance)
    assert rows_of(capture_of(tmp_path, packets)) == clean


@pytest.mark.long
@pytest.mark.slow
@given(chance=seeds, batch=st.integers(1, 9), lossy=st.booleans())
def test_the_size_of_batches_makes_no_difference(
    tmp_path: Path, chance: random.Random, batch: int, lossy: bool
) -> None:
    packets = repeated(reordered(resegmented(conversation(exchanges(9, pipelined=3)), chance), chance), chance)
    if lossy:
        packets = [p for p in packets if not p.payload or chance.random() > 0.15]
    path = capture_of(tmp_path, packets)
    whole = rows(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dissector.capture.pcap.BATCH_PACKETS", batch)
        assert rows(path) == whole


@pytest.mark.slow
@given(seen=st.integers(0, 40), lost=st.integers(1, 3))
def test_lost_packets_cost_their_exchanges_and_have_rows(tmp_path: Path, seen: int, lost: int) -> None:
    packets = conversation(exchanges(20))
    data = [n for n, packet in enumerate(packets) if packet.payload]
    gone = set(data[seen : seen + lost])
    result = rows(capture_of(tmp_path, [p for n, p in enumerate(packets) if n not in gone]))
    paired = {r.correlation_id for r in result if r.latency_ns is not None}
    hurt = {(n - data[0]) // 2 for n in gone}
    assert paired == set(range(20)) - hurt
    # What was lost at the very end left no trace; anything before it is a row of its own.
    missing = sum(r.request_size or r.response_size or 0 for r in result if r.kind == "gap")
    later = [packets[n] for n in data if n > max(gone, default=0)]
    visible = [packets[n] for n in gone if any(p.from_client == packets[n].from_client for p in later)]
    assert missing == sum(len(p.payload) for p in visible)


@pytest.mark.slow
@given(chance=seeds, at=st.integers(0, 400))
def test_a_capture_cut_anywhere_keeps_what_came_before(tmp_path: Path, chance: random.Random, at: int) -> None:
    packets = resegmented(conversation(exchanges(10)), chance)
    path = Path(capture_of(tmp_path, packets))
    clean = rows_of(str(path))
    data = path.read_bytes()
    path.write_bytes(data[: max(24 + 16 + 54, len(data) - at)])
    with Capture([str(path)]) as capture:
        kept = [e.row for e in capture.exchanges()]
        whole = [(r.kind, r.connection, r.api, r.correlation_id, r.request_size, r.response_size)
                 for r in kept if r.severity is None]  # fmt: skip
        assert whole == clean[: len(whole)]
        assert len(kept) - len(whole) <= 3  # a request without its response, what is there of that, and what is not
        assert bool(capture.problems) == (path.stat().st_size not in boundaries(data))


def boundaries(data: bytes) -> set[int]:
    """Offsets at which a packet ends."""
    at, ends = 24, {24}
    while at < len(data):
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
        ends.add(at)
    return ends


def test_sequence_numbers_wrap(tmp_path: Path) -> None:
    packets = conversation(exchanges(30, pipelined=2), isn=(2**32 - 100, 2**32 - 30))
    assert rows_of(capture_of(tmp_path, packets)) == rows_of(
        capture_of(tmp_path, conversation(exchanges(30, pipelined=2)))
    )


def test_a_port_used_again_is_another_connection(tmp_path: Path) -> None:
    packets = conversation(exchanges(3)) + conversation(exchanges(3), isn=(99_000, 77_000))
    assert [r.connection for r in rows(capture_of(tmp_path, packets))] == [1, 1, 1, 2, 2, 2]


def test_a_repeated_syn_opens_nothing(tmp_path: Path) -> None:
    packets = conversation(exchanges(3))
    assert rows_of(capture_of(tmp_path, [packets[0], *packets])) == rows_of(capture_of(tmp_path, packets))


def test_keep_alives_are_no_data(tmp_path: Path) -> None:
    packets = conversation(exchanges(4))
    last = packets[3]
    alive = Packet(last.from_client, last.seq + len(last.payload) - 1, b"", ACK)
    probe = Packet(last.from_client, last.seq + len(last.payload) - 1, last.payload[-1:], ACK)
    assert rows_of(capture_of(tmp_path, [*packets[:5], alive, probe, *packets[5:]])) == rows_of(
        capture_of(tmp_path, packets)
    )


def test_bytes_cut_off_by_the_snap_length_have_a_finding(tmp_path: Path) -> None:
    packets = conversation(exchanges(3, size=400))
    result = rows(capture_of(tmp_path, packets, snaplen=120))
    assert [r.correlation_id for r in result] == [0, 1, 2]
    with Capture([capture_of(tmp_path, packets, snaplen=120)]) as capture:
        for exchange in capture.exchanges():
            assert exchange.response is not None
            assert exchange.response.size == len(response(0, bytes(400)))
            assert "incomplete-frame" in {finding.code for finding in exchange.findings}


def test_a_capture_that_begins_in_the_middle_finds_its_feet(tmp_path: Path) -> None:
    packets = conversation(exchanges(10), segment=13)
    middle = packets[12:]
    result = [r for r in rows(capture_of(tmp_path, middle)) if r.latency_ns is not None]
    assert [r.correlation_id for r in result] == list(range(10))[-len(result) :]
    assert len(result) >= 7


def test_requests_without_answer_and_answers_without_request_are_rows(tmp_path: Path) -> None:
    turns = [Turn(True, request(1)), Turn(True, request(2)), Turn(False, response(7)), Turn(False, response(2))]
    with Capture([capture_of(tmp_path, conversation(turns))]) as capture:
        found = {(e.row.correlation_id, f.code) for e in capture.exchanges() for f in e.findings}
    assert found == {(1, "unanswered"), (7, "response-not-pending"), (7, "inferred")}


def test_a_request_that_a_close_left_unanswered_says_so(tmp_path: Path) -> None:
    packets = conversation([Turn(True, request(1))])
    closed = Packet(True, packets[-1].seq + len(packets[-1].payload), b"", FIN | ACK)
    assert [r.info for r in rows(capture_of(tmp_path, [*packets, closed]))] == [
        "no response before the connection closed"
    ]


def test_requests_with_the_same_id_are_paired_in_order(tmp_path: Path) -> None:
    turns = [
        Turn(True, request(1)),
        Turn(True, request(1)),
        Turn(False, response(1)),
        Turn(False, response(1, bytes(9))),
    ]
    sizes = [r.response_size for r in rows(capture_of(tmp_path, conversation(turns)))]
    assert sizes == [len(response(1)), len(response(1, bytes(9)))]


def test_kafka_is_found_on_any_port_and_http_on_kafkas_is_named(tmp_path: Path) -> None:
    kafka = conversation(exchanges(2), server=("10.0.0.2", 19092))
    http = conversation(
        [Turn(True, b"GET / HTTP/1.1\r\n\r\n"), Turn(False, b"HTTP/1.1 200 OK\r\n\r\n")], client=("10.0.0.3", 5)
    )
    tls = conversation([Turn(True, b"\x16\x03\x01\x02\x00" + bytes(512))], client=("10.0.0.4", 6))
    found = [(r.kind, r.connection) for r in rows(capture_of(tmp_path, kafka + http + tls))]
    assert found == [("exchange", 1), ("exchange", 1), ("unparsed", 2), ("tls", 3)]


def test_the_client_is_recognized_by_content_where_both_ports_are_kafkas(tmp_path: Path) -> None:
    packets = conversation(exchanges(3), client=("10.0.0.1", 9092), handshake=False)
    assert {(r.client, r.server) for r in rows(capture_of(tmp_path, packets))} == {("10.0.0.1:9092", "10.0.0.2:9092")}


def test_a_size_prefix_that_cannot_be_is_skipped_not_believed(tmp_path: Path) -> None:
    turns = [Turn(True, request(1)), Turn(False, response(1)), Turn(True, b"\x7f\xff\xff\xff" + bytes(10))]
    turns += [Turn(True, request(2)), Turn(False, response(2))]
    found = rows(capture_of(tmp_path, conversation(turns)))
    assert [(r.kind, r.correlation_id) for r in found] == [("exchange", 1), ("unparsed", None), ("exchange", 2)]
    assert found[1].request_size == 14


def test_memory_of_pending_requests_is_bounded(tmp_path: Path) -> None:
    path = capture_of(tmp_path, conversation([Turn(True, request(n)) for n in range(50)]))
    with Capture([path], limits.Limits(pending_requests=10)) as capture:
        assert len(list(capture.exchanges())) == 50


def test_syn_alone_is_no_exchange(tmp_path: Path) -> None:
    assert rows(capture_of(tmp_path, [Packet(True, 1, b"", SYN)])) == []


@pytest.mark.parametrize("end", [FIN, RST])
def test_a_connection_that_closes_inside_a_response_has_a_finding(tmp_path: Path, end: int) -> None:
    turns = [*exchanges(1), Turn(True, request(1)), Turn(False, response(1, bytes(3000))[:1400])]
    packets = conversation(turns)
    closing = Packet(True, 1001 + 2 * len(request(1)), b"", end | ACK)
    for closed, is_found in ((packets, False), ([*packets, closing], True)):
        with Capture([capture_of(tmp_path, closed)]) as capture:
            first, last = capture.exchanges()
        assert first.findings == []
        codes = [finding.code for finding in last.findings]
        assert "incomplete-frame" in codes
        assert ("cut-short" in codes) == is_found
