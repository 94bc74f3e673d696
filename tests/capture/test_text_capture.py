"""Hex goes all the way down: rows, values and trees as from a capture, and a word that it is none."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector import encode_request
from dissector.capture import CaptureError
from dissector.capture_session import Capture
from dissector.conversation.transcript import frame_lines
from dissector.protocol.schema.loader import apis
from tests.cases import cases
from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS
from tests.traffic import request, response

PIECES = [request(1).hex(), response(1).hex(), request(2, api_key=18, version=3).hex(), "00000004", "00000005 00", "ff"]


def transcript_of(name: str) -> tuple[str, list[bytes]]:
    """The frames of the first connection of a bundled capture, in their order, as a transcript."""
    lines: list[str] = []
    frames: list[bytes] = []
    with Capture([str(PCAPS / name)]) as capture:
        for exchange in capture.exchanges():
            for side, message in ((True, exchange.request), (False, exchange.response)):
                if message is not None and exchange.row.connection == 1:
                    lines += frame_lines(message.data, from_client=side)
                    frames.append(message.data)
    return "\n".join(lines), frames


def test_a_transcript_is_shown_like_the_capture_that_it_was_made_from(tmp_path: Path) -> None:
    text, frames = transcript_of("java.pcapng")
    path = tmp_path / "any.name"
    path.write_text(text)
    with Capture([str(path)]) as capture:
        found = [m for e in capture.exchanges() for m in (e.request, e.response) if m is not None]
        assert [message.data for message in found] == frames
        assert [problem.code for problem in capture.problems] == ["synthetic-metadata"]


def test_connections_of_a_text_stay_apart_and_in_its_order(tmp_path: Path) -> None:
    path = tmp_path / "several"
    sent, back = request(1).hex(), response(1).hex()
    path.write_text(f"> {sent}\n2> {sent}\n2< {back}\n1< {back}\n> {sent}\n3> {sent}\n3< {back}")
    with Capture([str(path)]) as capture:
        rows = [exchange.row for exchange in capture.exchanges()]
    assert [(row.connection, row.response_size) for row in rows] == [(1, 16), (2, 16), (1, None), (3, 16)]
    assert len({row.client for row in rows}) == 3


def test_every_first_message_of_a_transcript_is_kafka(tmp_path: Path) -> None:
    """Nothing has to be recognized: any API in any version, without a client id and with empty values."""
    firsts = [(api, version) for api in apis() for version in range(api.versions.low, api.versions.high + 1)]
    frames = [encode_request(api.key, version, {}, client_id="") for api, version in firsts]
    path = tmp_path / "first"
    path.write_text("\n".join(f"{number}> {frame.hex()}" for number, frame in enumerate(frames, 1)))
    with Capture([str(path)]) as capture:
        rows = [exchange.row for exchange in capture.exchanges()]
    assert [(row.api, row.version) for row in rows] == [(api.name, version) for api, version in firsts]


def test_a_transcript_of_another_protocol_is_framed_and_reported_as_damaged(tmp_path: Path) -> None:
    path = tmp_path / "http"
    path.write_text(f"> {b'GET / HTTP/1.1'.hex()}")
    with Capture([str(path)]) as capture:
        assert [exchange.row.kind for exchange in capture.exchanges()] == ["unparsed"]


def test_two_texts_are_two_connections(tmp_path: Path) -> None:
    for name, number in (("a", 1), ("b", 2)):
        (tmp_path / name).write_text(f"> {request(number).hex()}\n< {response(number).hex()}")
    with Capture([str(tmp_path / "a"), str(tmp_path / "b")]) as capture:
        rows = [exchange.row for exchange in capture.exchanges()]
    assert [(row.connection, row.correlation_id, row.response_size) for row in rows] == [(1, 1, 16), (2, 2, 16)]


def test_a_short_frame_is_a_row_and_the_next_ones_are_read_right(tmp_path: Path) -> None:
    path = tmp_path / "short"
    path.write_text(f"> {request(1)[:-2].hex()}\n< {response(1).hex()}\n> {request(2).hex()}\n< {response(2).hex()}\n")
    with Capture([str(path)]) as capture:
        found = list(capture.exchanges())
    assert [(e.row.correlation_id, e.row.response_size) for e in found] == [(1, 16), (2, 16)]
    assert "incomplete-frame" in [finding.code for finding in found[0].findings]
    assert not found[1].findings


@given(
    lines=st.lists(st.tuples(st.sampled_from(["> ", "< ", "  ", ""]), st.sampled_from(PIECES)), min_size=1, max_size=6)
)
def test_any_arrangement_of_hex_is_read_or_reported_in_one_line(tmp_path: Path, lines: list[tuple[str, str]]) -> None:
    path = tmp_path / "some.hex"
    path.write_text("\n".join(mark + digits for mark, digits in lines))
    words = ""
    try:
        with Capture([str(path)]) as capture:
            assert all(exchange.row.time_ns < 6 for exchange in capture.exchanges())
    except CaptureError as error:
        words = str(error)
    assert "\n" not in words
    assert not words or words.startswith((f"{path}: line ", f"{path}: not a capture"))


@pytest.mark.parametrize("words", ["Metadata:0", "metadata:0"])
def test_a_lone_response_is_read_as_the_answer_to_what_the_user_says(words: str) -> None:
    done = kdissect("show", "-", "--response", words, "-f", "json", data=response(7).hex().encode())
    line = json.loads(done.stdout)
    assert (line["api"], line["api_version"], line["correlation_id"], line["request"]) == ("Metadata", 0, 7, None)
    assert line["response"]["body"] == {"brokers": [], "topics": []}
    assert [finding["code"] for finding in line["findings"]] == ["orphan"]


@cases(
    ("words", "answer"),
    [
        ("Metadta:0", "no API is called 'Metadta'"),
        ("Metadata", "Metadata has versions 0"),
        ("Metadata:99", "Metadata has versions 0"),
        ("Metadata:-1", "Metadata has versions 0"),
        (":", "no API is called ''"),
    ],
)
def test_a_wrong_word_behind_response_is_reported(words: str, answer: str) -> None:
    done = kdissect("show", "-", "--response", words, data=response(7).hex().encode())
    assert done.returncode == 2
    assert not done.stdout
    [line] = done.stderr.decode().splitlines()
    assert answer in line


def test_damaged_hex_is_one_line_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "damaged"
    path.write_text(f"> {request(1).hex()}\n< {response(1).hex()}0\n")
    done = kdissect("show", str(path))
    assert done.returncode == 2
    assert done.stderr.decode() == f"kdissect: {path}: line 2: 33 hex digits: an odd number\n"


def test_wrong_sizes_are_some_lines_however_many_they_are(tmp_path: Path) -> None:
    path = tmp_path / "cut"
    path.write_text(f"> {request(1)[:-3].hex()}\n" * 1_000)
    with Capture([str(path)]) as capture:
        list(capture.read())
        assert len(capture.problems) == 22
        assert capture.problems[-1].message.endswith("980 more lines with wrong sizes")
