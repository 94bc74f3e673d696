"""Transcripts come back; a line that can't be is named with its number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.conversation import Turn
from dissector.conversation.transcript import TranscriptError, frame_lines, is_transcript, turns_of
from tests.cases import cases
from tests.traffic import request, response

FRAMES = st.lists(st.tuples(st.booleans(), st.binary(max_size=100)), min_size=1)


def turns(text: str) -> tuple[list[Turn], list[str]]:
    assert is_transcript(text.encode())
    by_connection, problems = turns_of(text.encode())
    assert by_connection.keys() == {1}
    return by_connection[1], problems


@given(FRAMES)
def test_frames_to_a_transcript_and_back(frames: list[tuple[bool, bytes]]) -> None:
    sized = [(side, len(body).to_bytes(4, "big") + body) for side, body in frames]
    text = "\n".join(line for side, data in sized for line in frame_lines(data, from_client=side))
    assert turns(text) == ([Turn(n, side, data) for n, (side, data) in enumerate(sized)], [])


@given(st.lists(st.tuples(st.integers(0, 99), st.booleans(), st.binary(max_size=100)), min_size=1))
def test_connections_are_distinguished_by_number(frames: list[tuple[int, bool, bytes]]) -> None:
    lines: list[str] = []
    by_connection: dict[int, list[Turn]] = {}
    for number, (connection, side, body) in enumerate(frames):
        data = len(body).to_bytes(4, "big") + body
        lines += frame_lines(data, from_client=side, connection=connection)
        by_connection.setdefault(connection, []).append(Turn(number, side, data))
    assert turns_of("\n".join(lines).encode()) == (by_connection, [])


def test_a_transcript_has_comments_blank_lines_and_lines_that_go_on() -> None:
    text = "\ufeff# made by hand\r\n\r\n> 00000004 0003 # the key\r\n\t00 0 1\r\n  # no bytes\r\n<00000000\r\n"
    assert turns(text)[0] == [Turn(0, True, b"\0\0\0\4\0\3\0\1"), Turn(1, False, bytes(4))]


@cases(
    ("text", "words"),
    [
        ("> 00\n> 0", "line 2: 1 hex digits: an odd number"),
        ("> 00\n  0g", "line 2: 'g' is not a hex digit"),
        ("# x\n> 00\n00", "line 3: begins neither with > or <"),
        ("> 00\n<  # nothing\n> 01", "line 2: no bytes behind <"),
    ],
)
def test_a_line_that_cannot_be_is_named(text: str, words: str) -> None:
    with pytest.raises(TranscriptError, match=words):
        turns(text)


@cases(
    "text",
    ["", "\n# only words\n", "buy milk", "\0\0", "> add", "<Buffer 00 00>", "> 00000000: 0000 0031", "0001", "{}"],
)
def test_text_that_is_no_transcript_is_left_to_other_readers(text: str) -> None:
    assert not is_transcript(text.encode())


@cases(
    ("sent", "missing", "words"),
    [
        (request(1)[:-3], 3, "line 2: byte 0: a frame of 19 bytes behind its size, of which 16 are there"),
        (response(1) + request(1)[:9], 14, "line 2: byte 16: a frame of 19 bytes behind its size, of which 5"),
        (request(1) + b"\0\0", 0, "line 2: 2 bytes behind the last frame, too few for a size"),
        (b"\xff\xff\xff\xff\x00", 0, "line 2: byte 0: -1 can't be a frame's size"),
        (b"\x7f\xff\xff\xff\x00", 0, "line 2: byte 0: 2,147,483,647 can't be a frame's size"),
    ],
)
def test_sizes_that_do_not_fit_are_reported(sent: bytes, missing: int, words: str) -> None:
    [turn], [problem] = turns(f"# first\n> {sent.hex()}")
    assert turn == Turn(0, True, sent, missing)
    assert problem.startswith(words)


LINES = st.one_of(
    st.text(st.sampled_from("<>#*: 0123456789abcdefg|.\t\r\x0b\u2028é"), max_size=30),
    st.sampled_from(["> 00000004", "00000000: 0001  ..", "00000000  00 01  |..|", "*", "00000010", "  00"]),
    st.text(max_size=20),
)


@pytest.mark.slow
@given(st.lists(LINES, max_size=8).map("\n".join) | st.text())
def test_any_text_is_survived(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    if not is_transcript(data):
        return
    line = 1
    try:
        found, _ = turns_of(data)
    except TranscriptError as error:
        line = int(str(error).split()[1].rstrip(":"))
    else:
        assert found
        assert all(turn.data for turns in found.values() for turn in turns)
    assert 1 <= line <= text.count("\n") + 1
