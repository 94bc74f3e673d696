"""Conversations made into packets: read back by our own reader, by dpkt, and by tshark where it is."""

import subprocess
from pathlib import Path

import dpkt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture_session import Capture
from dissector.conversation import Conversation, End, Turn, packets, pcapng
from dissector.conversation.pcapng import LATEST
from tests.cases import cases
from tests.needs import needs
from tests.traffic import request, response

CLIENT, SERVER = End("192.0.2.1", 40000), End("192.0.2.2", 9092)
SIX = End("2001:db8::1", 40000), End("2001:db8::2", 9092)
TURNS = st.lists(
    st.builds(Turn, st.integers(0, LATEST), st.booleans(), st.binary(max_size=40) | st.just(bytes(5000))), max_size=6
)


def capture_of(folder: Path, *conversations: Conversation) -> str:
    path = folder / "made.pcapng"
    path.write_bytes(b"".join(pcapng(packets(conversations), "made for a test")))
    return str(path)


def exchange_turns(count: int, *, time_ns: int = 1_000, size: int = 8) -> list[Turn]:
    """So many exchanges, 10 ns apart, each answered after 5."""
    return [
        turn
        for n in range(count)
        for turn in (
            Turn(time_ns + 10 * n, True, request(n)),
            Turn(time_ns + 10 * n + 5, False, response(n, bytes(size))),
        )
    ]


@given(turns=TURNS, ends=st.sampled_from([(CLIENT, SERVER), SIX]))
def test_another_decoder_finds_the_same_streams_and_right_checksums(turns: list[Turn], ends: tuple[End, End]) -> None:
    streams = {True: b"", False: b""}
    made = packets([Conversation(*ends, turns)])
    assert [packet.time_ns for packet in made] == sorted(packet.time_ns for packet in made)
    for data in (packet.data for packet in made):
        ip = dpkt.ethernet.Ethernet(data).data
        segment = bytes(ip.data)
        ip.data.sum = 0  # dpkt then computes it, and that of the IP header
        ip.sum = 0
        assert bytes(dpkt.ethernet.Ethernet(data)) == data[:14] + bytes(ip)
        streams[ip.data.sport == ends[0].port] += dpkt.tcp.TCP(segment).data
    for from_client in (True, False):
        assert streams[from_client] == b"".join(
            turn.data for turn in sorted(turns, key=lambda turn: turn.time_ns) if turn.from_client == from_client
        )


@pytest.mark.parametrize("ends", [(CLIENT, SERVER), SIX])
def test_exchanges_come_back_with_their_times(tmp_path: Path, ends: tuple[End, End]) -> None:
    with Capture([capture_of(tmp_path, Conversation(*ends, exchange_turns(20, size=300_000)))]) as capture:
        rows = [exchange.row for exchange in capture.exchanges()]
        assert not capture.problems
        assert not capture.pipeline.ignored
    assert [(row.time_ns, row.latency_ns, row.response_size) for row in rows] == [
        (1_000 + 10 * n, 5, 300_008) for n in range(20)
    ]
    assert End.parse(rows[0].client) == ends[0]
    assert End.parse(rows[0].server) == ends[1]


def test_the_same_ends_again_are_another_connection(tmp_path: Path) -> None:
    talks = [Conversation(CLIENT, SERVER, exchange_turns(3, time_ns=time)) for time in (1_000, 2_000)]
    with Capture([capture_of(tmp_path, *talks)]) as capture:
        assert [exchange.row.connection for exchange in capture.exchanges()] == [1, 1, 1, 2, 2, 2]


def test_a_hole_is_a_gap_and_framing_goes_on_behind_it(tmp_path: Path) -> None:
    turns = exchange_turns(6)
    turns[4:5] = [Turn(turns[4].time_ns, True, b"", len(turns[4].data))]
    with Capture([capture_of(tmp_path, Conversation(CLIENT, SERVER, turns))]) as capture:
        rows = [exchange.row for exchange in capture.exchanges()]
    assert [row.correlation_id for row in rows if row.kind == "exchange"] == [0, 1, 2, 3, 4, 5]
    assert [(row.kind, row.request_size) for row in rows if row.kind != "exchange"] == [("gap", 23)]


@pytest.mark.parametrize("closed", [True, False])
def test_a_connection_closes_only_where_the_conversation_closes_it(tmp_path: Path, closed: bool) -> None:
    with Capture([capture_of(tmp_path, Conversation(CLIENT, SERVER, exchange_turns(1)[:1], closed=closed))]) as capture:
        [exchange] = capture.exchanges()
    assert ("closed" in exchange.findings[0].message) == closed


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("ends", [(CLIENT, SERVER), SIX])
def test_wireshark_has_nothing_to_object_to(tmp_path: Path, ends: tuple[End, End]) -> None:
    needs("tshark")
    path = capture_of(tmp_path, Conversation(*ends, exchange_turns(5, size=200_000)))
    checks = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]

    def found(wanted: str, field: str) -> list[str]:
        done = subprocess.run(
            ["tshark", "-r", path, *checks, "-Y", wanted, "-T", "fields", "-e", field],
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        return done.stdout.split()

    assert not found("tcp.analysis.flags || tcp.checksum.status == 0 || ip.checksum.status == 0", "frame.number")
    assert found("kafka.request_key", "kafka.correlation_id") == ["0", "1", "2", "3", "4"]
    assert found("tcp.flags.syn == 1", "frame.time_epoch") == ["0.000001000"] * 2


@cases("text", ["", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", "host:9092", "::1:", "[::1:9"])
def test_an_invalid_endpoint_is_reported(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        End.parse(text)
