"""Keys of terminals that are not set to UTF-8."""

import os
import sys
from pathlib import Path

import pytest
from textual import events

from tests.cases import cases
from tests.cli.test_commands import JAVA
from tests.terminal import terminal
from tui.terminal_app import typed_events, typed_text


@cases(("data", "text"), [
    ("ü".encode("latin-1"), "ü"), (b"a\xe4b", "aäb"), ("ü€😀".encode(), "ü€😀"), (b"\x9b1;2H", "1;2H"), (b"\xc3", "Ã"),
    (b"\xff\xfe", "ÿþ"), (b"", ""),
])  # fmt: skip
def test_letters_of_latin_1_are_read_and_control_bytes_are_not(data: bytes, text: str) -> None:
    assert typed_text(data) == text


@cases("number", ["1114112", "99999999999"])
def test_a_key_whose_number_no_character_has_is_none(number: str) -> None:
    typed = f"a\x1b[{number}u".encode()
    assert [str(event.key) for event in typed_events(typed) if isinstance(event, events.Key)] == ["a"]
    assert [event.key for event in typed_events(b"\x1b[98u") if isinstance(event, events.Key)] == ["b"]


@pytest.mark.slow
def test_a_byte_that_is_not_utf_8_is_a_key_like_any_other_and_a_number_of_none_ends_nothing(tmp_path: Path) -> None:
    with terminal([sys.executable, "-m", "dissector.cli.main", "open", JAVA], XDG_STATE_HOME=str(tmp_path)) as there:
        there.until_seen(lambda lines: "100%" in lines[0])
        os.write(there.end, b"\x1b[99999999999u")
        there.rest(0.3, 1.0)
        os.write(there.end, b"/topic == \xfc\xfd")
        there.until_seen(lambda lines: any("topic == üý" in line for line in lines))
        there.send("\x1b")
        there.rest(0.3, 1.0)
        there.send("\x1b")  # the first one may close suggestions alone
        there.rest(0.3, 1.0)  # Esc and q at once would be alt+q
        there.send("q")
        there.rest()
        assert there.process.wait(20) == 0
        assert b"Traceback" not in there.written
