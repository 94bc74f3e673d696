"""Every frame of the chosen rows is an event once, and no name is markup in a picture."""

import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.analysis.sequence_diagram import Lane, render_mermaid, render_svg, sequence_diagram
from dissector.analysis.sequence_diagram.pictures import escape_mermaid
from dissector.capture_session import Capture
from dissector.exchange.model import Exchange
from tests.cases import cases
from tests.conftest import PCAPS
from tests.traffic import Turn, capture_of, conversation, exchanges, request, response

SOME = ["java-classic", "librdkafka-pipelined", "plain-socket-sasl-v0", "two-brokers"]
HOSTILE = "\x1b]0;owned\x07</text><script>alert(1)</script>&lt;\"'\nend\nL0->>L1: forged;%%{init}\u202e]]>\ud800"


def opened(*paths: str) -> Capture:
    capture = Capture(paths)
    for _ in capture.read():
        pass
    return capture


def frames_of(exchange: Exchange) -> list[tuple[int, bool, int]]:
    """Row, side and time of each of its frames."""
    row = exchange.fields
    number = row.number - 1
    if row.kind == "exchange":
        found = [(True, exchange.request), (False, exchange.response)]
        return [(number, side, message.time_ns) for side, message in found if message is not None]
    return [(number, row.request_size is not None, row.time_ns)]


@pytest.mark.long
@cases("name", SOME)
def test_every_frame_of_the_chosen_rows_is_one_event_in_order_of_time(name: str) -> None:
    with opened(str(PCAPS / f"{name}.pcapng")) as capture:
        rows = range(3, len(capture), 2)
        ladder = sequence_diagram(capture, rows)
        events = list(ladder)
        expected = Counter(frame for number in rows for frame in frames_of(capture.exchange(number)))
    assert Counter((event.number, event.is_request, event.time_ns) for event in events) == expected
    assert [event.time_ns for event in events] == sorted(event.time_ns for event in events)
    for at, partner in enumerate(ladder.partner.tolist()):
        if partner >= 0:
            assert events[partner].number == events[at].number
            assert ladder.partner[partner] == at
            assert (events[at].source, events[at].target) == (events[partner].target, events[partner].source)


def test_lanes_are_clients_by_name_and_host_and_brokers_by_node() -> None:
    with opened(str(PCAPS / "java-classic.pcapng")) as capture:
        ladder = sequence_diagram(capture, range(len(capture)))
    assert ladder.lanes[0] == Lane("adminclient-1", "127.0.0.1", True)
    assert ladder.lanes[-1] == Lane("node 1", "127.0.0.1:9092", False)
    assert [lane.is_client for lane in ladder.lanes] == [True] * 4 + [False]


def test_depth_counts_requests_in_flight_on_the_connection(tmp_path: Path) -> None:
    turns = exchanges(6, pipelined=3)
    with opened(capture_of(tmp_path, conversation(turns))) as capture:
        events = list(sequence_diagram(capture, range(len(capture))))
    assert [(event.is_request, event.depth) for event in events] == [
        (True, 1), (True, 2), (True, 3), (False, 3), (False, 2), (False, 1),
    ] * 2  # fmt: skip


def test_only_a_response_has_an_error() -> None:
    with opened(str(PCAPS / "java-classic.pcapng")) as capture:
        events = [event for event in sequence_diagram(capture, range(len(capture))) if event.number == 13]
    assert [(event.label, event.error) for event in events] == [
        ("JoinGroup v9", ""),
        ("JoinGroup v9", "MEMBER_ID_REQUIRED"),
    ]
    assert "MEMBER_ID_REQUIRED" not in events[0].words


@pytest.fixture
def hostile(tmp_path: Path) -> str:
    name = HOSTILE.encode("utf-8", "surrogatepass")
    topic = len(name).to_bytes(2, "big") + name
    answer = bytes(4) + (1).to_bytes(4, "big") + b"\x00\x03" + topic + bytes(4)
    turns = [
        Turn(True, request(1, client_id=name, body=(1).to_bytes(4, "big") + topic)),
        Turn(False, response(1, answer)),
    ]
    return capture_of(tmp_path, conversation(turns))


def test_svg_is_xml_with_an_arrow_per_frame_for_any_name(hostile: str) -> None:
    with opened(hostile) as capture:
        picture = render_svg(sequence_diagram(capture, range(len(capture))))
    root = ElementTree.fromstring(picture)
    tags = Counter(node.tag.rpartition("}")[2] for node in root.iter())
    assert tags["script"] == 0
    assert len([node for node in root.iter() if node.get("marker-end")]) == 2
    words = [node.text or "" for node in root.iter() if node.tag.endswith("text")]
    assert any("<script>alert(1)</script>" in text for text in words)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", picture)


def test_mermaid_has_a_line_per_frame_for_any_name(hostile: str) -> None:
    with opened(hostile) as capture:
        lines = render_mermaid(sequence_diagram(capture, range(len(capture)))).splitlines()
    assert lines[0] == "sequenceDiagram"
    assert len(lines) == 1 + 2 + 2
    assert re.fullmatch(r" {4}actor L0 as [^;]*(#\d+;[^;]*)*", lines[1])
    for line in lines[3:]:
        assert re.fullmatch(r" {4}L[01]-?-(>>|x)L[01]: ([^#;<>:%{}\n]|#\d+;)*", line)


@given(st.text())
def test_escaped_text_is_shown_unchanged_by_mermaid(text: str) -> None:
    safe = escape_mermaid(text)
    assert re.sub(r"#(\d+);", lambda match: chr(int(match[1])), safe) == text
    assert not re.search(r"[;#:<>%{}\n\"']", re.sub(r"#\d+;", "", safe))
    assert not re.search(r"\bend\b", safe, re.IGNORECASE)


def test_a_picture_of_no_rows_is_empty() -> None:
    with opened(str(PCAPS / "java.pcapng")) as capture:
        ladder = sequence_diagram(capture, [])
    assert len(ladder) == 0
    assert render_mermaid(ladder) == "sequenceDiagram\n"
    ElementTree.fromstring(render_svg(ladder))


@pytest.mark.long
def test_bars_end_at_the_response() -> None:
    with opened(str(PCAPS / "librdkafka-pipelined.pcapng")) as capture:
        ladder = sequence_diagram(capture, range(len(capture)))
        bars = [node for node in ElementTree.fromstring(render_svg(ladder)).iter() if node.get("class") == "bar"]
    assert len(bars) == int((ladder.partner >= 0).sum()) // 2
    assert len({bar.get("x") for bar in bars}) > 1, "requests in flight together stand side by side"
