"""What the user says that connections are comes before content and ports."""

from pathlib import Path

import dpkt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import dissector
from dissector.capture_session import Capture
from dissector.cli.every_command import app
from dissector.detection.decode_as import (
    DecodeAs,
    DecodeAsError,
    EndSelector,
    PortSelector,
    Protocol,
    choice_for,
    parse_decode_as,
)
from tests.cases import cases
from tests.conftest import PCAPS
from tests.traffic import SERVER, Turn, capture_of, conversation, exchanges

JAVA = str(PCAPS / "java.pcapng")
PLAIN = str(PCAPS / "java-sasl-plain.pcapng")
PASSWORD = b"alice-secret"

ports = st.integers(0, 65535)
ends = st.tuples(st.ip_addresses().map(lambda it: str(getattr(it, "ipv4_mapped", None) or it)), ports)
selectors = st.one_of(
    st.tuples(ports, ports).map(lambda pair: PortSelector(*sorted(pair))),
    st.builds(EndSelector, ends, st.none() | ends),
)


def lines(path: str, *choices: str) -> list[str]:
    """The rows of a capture as text."""
    with dissector.open(path, decode_as=choices) as capture:
        return [str(exchange) for exchange in capture.exchanges()]


@given(st.builds(DecodeAs, selectors, st.sampled_from(Protocol)))
def test_a_choice_is_read_as_it_is_written(choice: DecodeAs) -> None:
    assert parse_decode_as(str(choice)) == choice


@cases(
    "text",
    [
        "", "kafka", "9092,kafka", "tcp.port==9092", "tcp.port==9092,http", "tcp.port==70000,kafka",
        "broker:9092,kafka", "tcp.port==9-8,tls", "10.0.0.5,none", "10.0.0.500:1,none",
        "1.1.1.1:1-,kafka", "1.1.1.1:1x2.2.2.2:2,tls", ",",
    ],
)  # fmt: skip
def test_a_choice_that_cannot_be_read_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(DecodeAsError) as error:
        parse_decode_as(text)
    assert str(error.value)
    result = CliRunner().invoke(app, ["show", JAVA, "-d", text])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    with pytest.raises(dissector.CaptureError):
        dissector.open(JAVA, decode_as=text)


def test_the_later_of_two_choices_counts() -> None:
    both = [parse_decode_as(each) for each in ("tcp.port==9092,none", "10.0.0.2:9092,kafka")]
    assert [choice_for(list(each), (("10.0.0.1", 4), SERVER)) for each in (both, both[::-1])] == both[::-1]
    assert choice_for(both, (("10.0.0.1", 4), ("10.0.0.1", 5))) is None


def test_what_is_not_kafka_has_no_rows() -> None:
    assert len(lines(JAVA)) == 60
    assert lines(JAVA, "tcp.port==9000-9100,none") == []
    with dissector.open(JAVA) as capture:
        ends = [(each.client, each.server) for each in capture.exchanges()]
    client, server = ends[0]
    with dissector.open(JAVA, decode_as=f"{client}-{server},none") as capture:
        left = [(each.client, each.server) for each in capture.exchanges()]
    assert left == [each for each in ends if each != (client, server)] != []


def test_saying_what_content_says_changes_nothing() -> None:
    assert lines(JAVA, "tcp.port==9092,kafka") == lines(JAVA, "127.0.0.1:9092,kafka") == lines(JAVA)


def moved(folder: Path, name: str, port: int) -> str:
    """A recording without the first packets of its connections, with another port in place of Kafka's."""
    path, begun = folder / "moved.pcap", set()
    with (PCAPS / f"{name}.pcapng").open("rb") as file, path.open("wb") as out:
        reader = dpkt.pcapng.Reader(file)
        writer = dpkt.pcap.Writer(out, linktype=reader.datalink())
        for time, data in reader:
            frame = dpkt.ethernet.Ethernet(data)
            tcp = frame.data.data
            pair = frozenset((tcp.sport, tcp.dport))
            tcp.sport, tcp.dport = (port if each == 9092 else each for each in (tcp.sport, tcp.dport))
            tcp.sum = frame.data.sum = 0
            if pair in begun:
                writer.writepkt(bytes(frame), time)
            elif len(tcp.data):
                begun.add(pair)
    return str(path)


def test_a_late_start_on_another_port_is_read_in_full(tmp_path: Path) -> None:
    """By content alone too little is recognized: responses whose requests are older than the capture."""
    packets = [each for each in conversation(exchanges(1), server=("10.0.0.2", 7777)) if not each.from_client]
    path = capture_of(tmp_path, packets[1:])
    assert lines(path) == []
    assert len(lines(path, "tcp.port==7777,kafka")) == len(lines(path, "10.0.0.2:7777,kafka")) == 1


def test_a_recording_that_begins_late_on_another_port_has_its_rows(tmp_path: Path) -> None:
    path = moved(tmp_path, "java", 6000)
    with Capture([path], decode_as=[parse_decode_as("tcp.port==6000,kafka")]) as capture:
        assert {each.row.server for each in capture.exchanges()} == {"127.0.0.1:6000"}
        assert len(capture) >= 50


def test_the_user_says_which_end_is_the_broker(tmp_path: Path) -> None:
    """A broker that opened the connection, as none does."""
    path = capture_of(tmp_path, conversation([Turn(not each.from_client, each.data) for each in exchanges(4)]))
    assert all("10.0.0.1:40001 → 10.0.0.2:9092" in line for line in lines(path))
    with dissector.open(path, decode_as="10.0.0.1:40001,kafka") as capture:
        rows = list(capture.exchanges())
        assert [(each.client, each.server) for each in rows] == [("10.0.0.2:9092", "10.0.0.1:40001")] * 4
        assert all(each.request is not None and each.response is not None for each in rows)


def test_a_choice_by_address_reaches_a_redacted_copy_and_names_no_address_there(tmp_path: Path) -> None:
    path = capture_of(tmp_path, conversation([Turn(not each.from_client, each.data) for each in exchanges(4)]))
    words = ["export", path, "-d", "10.0.0.1:40001,kafka", "--redact", "-w", "-", "-f"]
    done = CliRunner().invoke(app, [*words, "json"])
    assert (done.exit_code, len(done.stdout.splitlines())) == (0, 4), done.output
    assert "10.0.0.1" not in done.output
    assert ':40001"' in done.stdout.partition('"server"')[2].partition(",")[0]


def test_another_protocol_is_read_as_kafka_on_request_and_only_then(tmp_path: Path) -> None:
    http = [Turn(True, b"GET / HTTP/1.1\r\n\r\n"), Turn(False, b"HTTP/1.1 200 OK\r\n\r\n")]
    path = capture_of(tmp_path, conversation(http, server=("10.0.0.2", 5555)))
    assert lines(path) == []
    with Capture([path], decode_as=[parse_decode_as("10.0.0.2:5555,kafka")]) as capture:
        assert {each.row.kind for each in capture.exchanges()} == {"unparsed"}
        assert capture.connections.protocols == {"Kafka": 1}


def test_bytes_in_the_middle_of_tls_are_counted_as_tls(tmp_path: Path) -> None:
    """A capture that begins in the middle of a record, whose bytes look like nothing."""
    packets = conversation([Turn(True, bytes(range(7, 200))), Turn(False, bytes(range(9, 99)))], handshake=False)
    path = capture_of(tmp_path, packets)
    for choices, protocols in (([], {"unknown": 1}), ([parse_decode_as("tcp.port==9092,tls")], {"TLS": 1})):
        with Capture([path], decode_as=choices) as capture:
            list(capture.exchanges())
            assert capture.connections.protocols == protocols


def test_decrypted_tls_is_read_even_if_the_user_says_that_it_is_tls() -> None:
    path = str(PCAPS / "tls" / "java-1.3.pcapng")
    assert lines(path, "tcp.port==1-65535,tls") == lines(path)


@pytest.mark.parametrize("swaps", [False, True])
def test_no_choice_shows_a_password(*, swaps: bool) -> None:
    with Capture([PLAIN]) as capture:
        ends = {(each.row.client, each.row.server) for each in capture.exchanges()}
    choices = [f"{server}-{client},kafka" if swaps else f"{client}-{server},kafka" for client, server in ends]
    with Capture([PLAIN], decode_as=[parse_decode_as(each) for each in choices]) as capture:
        found = list(capture.exchanges())
        assert found
        for exchange in found:
            for message in filter(None, (exchange.request, exchange.response)):
                assert PASSWORD not in message.data
                assert all(PASSWORD not in source.data for source in message.sources)
