"""Bytes written as hex in every form come back; a line that can't be is named with its number."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.conversation import Turn
from dissector.conversation.hex_text import HexError, HexForm, entries, form_of
from dissector.conversation.transcript import frame_lines, turns_of
from tests.cases import cases
from tests.needs import needs
from tests.traffic import request, response

FRAMES = st.lists(st.tuples(st.booleans(), st.binary(max_size=100)), min_size=1)
DATA = b"".join(request(n, body=bytes(n % 7) + bytes(range(256))) for n in range(9)) + bytes(400)


def turns(text: str) -> tuple[list[Turn], list[str]]:
    form = form_of(text.encode())
    assert form is not None
    by_connection, problems = turns_of(text.encode(), form, unmarked_from_client=True)
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
    assert turns_of("\n".join(lines).encode(), HexForm.MARKED, unmarked_from_client=True) == (by_connection, [])


def test_a_transcript_has_comments_blank_lines_and_lines_that_go_on() -> None:
    text = "\ufeff# made by hand\r\n\r\n> 00000004 0003 # the key\r\n\t00 0 1\r\n  # no bytes\r\n<00000000\r\n"
    assert turns(text)[0] == [Turn(0, True, b"\0\0\0\4\0\3\0\1"), Turn(1, False, bytes(4))]


@pytest.mark.parametrize(
    "command",
    [
        ["xxd"],
        ["xxd", "-p"],
        ["xxd", "-g1", "-u"],
        ["xxd", "-a"],
        ["hexdump", "-C"],
        ["hexdump", "-Cv"],
        ["od", "-Ax", "-tx1"],
        ["od", "-Ax", "-tx1z", "-v"],
    ],
)
def test_what_the_dumping_tools_print_comes_back(command: list[str]) -> None:
    needs(command[0])
    text = subprocess.run(command, input=DATA, capture_output=True, check=True).stdout
    form = form_of(text)
    assert form is (HexForm.BARE if command[-1] == "-p" else HexForm.DUMP)
    assert [entry.data for entry in entries(text, form)] == [DATA]


@cases(
    ("text", "data"),
    [
        ("0000   00 00 00 2d 00 03 00 00 00 00 00 01 00 05 74 65   ...-..........te\n0010   73   s", 17),
        ("00000000  30 30 20 20 30 30 20 20  30 30                    |00  00  00|\n0000000a", 10),
        ("00000000: 3030 2020 3030                           00  00", 6),
        ("00000000  00 00\n*\n00000008  01", 9),
        ("0003 0000\n 0001", 6),
        ("00000018 00", 5),
    ],
)
def test_dumps_of_other_hands(text: str, data: int) -> None:
    [turn], _ = turns(text)
    assert len(turn.data) == data


@cases(
    ("text", "words"),
    [
        ("> 00\n> 0", "line 2: 1 hex digits: an odd number"),
        ("> 00\n  0g", "line 2: 'g' is no hex digit"),
        ("# x\n> 00\n00", "line 3: begins neither with > or <"),
        ("> 00\n<  # nothing\n> 01", "line 2: no bytes behind <"),
        ("00 01\n\nxyz", "line 3: 'x' is no hex digit"),
        ("00000000: 0001  ..\n00000004: 0001  ..", "line 2: its offset is 0x4, but the row before it ends at 0x2"),
        ("00000000: 0001  ..\njunk", "line 2: is no row of a hex dump"),
        ("00000000  00 01\n*", "nothing behind the *"),
        ("00000000  00 01\n*\nffffffffffff", "line 3: the \\* before it would stand for 281,474,976,710,653 bytes"),
        ("00000000  00 01\n*\n00000001", "line 3: the \\* before it would stand for -1 bytes"),
    ],
)
def test_a_line_that_cannot_be_is_named(text: str, words: str) -> None:
    with pytest.raises(HexError, match=words):
        turns(text)


@cases("text", ["", "\n# only words\n", "buy milk", "\0\0", "deal or no deal", "{}"])
def test_text_that_is_no_hex_is_left_to_other_readers(text: str) -> None:
    assert form_of(text.encode()) is None


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
@given(st.lists(LINES, max_size=8).map("\n".join) | st.text(), st.booleans())
def test_any_text_is_survived(text: str, unmarked_from_client: bool) -> None:
    data = text.encode("utf-8", "surrogatepass")
    form = form_of(data)
    if form is None:
        return
    line = 1
    try:
        found, _ = turns_of(data, form, unmarked_from_client=unmarked_from_client)
    except HexError as error:
        line = int(str(error).split()[1].rstrip(":"))
    else:
        assert found
        assert all(turn.data for turns in found.values() for turn in turns)
    assert 1 <= line <= text.count("\n") + 1
