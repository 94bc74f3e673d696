"""A terminal without colors gets none, and still shows selection, highlights and errors."""

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from pathlib import Path

import pytest

from tests.forked import Program, run_module
from tests.tui.main_driver import JAVA

pytestmark = pytest.mark.slow

SGR = re.compile(rb"\x1b\[([\d;:]*)m")
PATIENCE = 120.0


def drawn_by(words: list[str], keys: bytes, wanted: bytes, environment: dict[str, str]) -> bytes:
    """Return all that `kdissect` writes to a terminal until `wanted` is drawn after the keys. It is killed then."""
    end, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLORTERM", "TERM")}
    process = on_terminal(inner, words, kept | environment)
    try:
        out = _read_until(end, b"100%")
        os.write(end, keys)
        return out + _read_until(end, wanted)
    finally:
        process.kill()
        process.wait()
        os.close(end)


def on_terminal(inner: int, words: list[str], environment: dict[str, str]) -> Program:
    return Program("dissector.cli.main", words, environment, (inner, os.dup(inner), os.dup(inner)), "screen")


def _read_until(end: int, wanted: bytes) -> bytes:
    out, begun = b"", time.monotonic()
    while wanted not in out:
        assert time.monotonic() - begun < PATIENCE, out[-2000:]
        if select.select([end], [], [], 0.2)[0]:
            out += os.read(end, 1 << 16)
    return out


def codes(out: bytes) -> set[int]:
    """The numbers of all sequences that set how characters look."""
    return {int(number) for found in SGR.findall(out) for number in re.findall(rb"\d+", found)}


@pytest.mark.parametrize(
    "environment", [{"TERM": "vt100"}, {"TERM": "xterm-256color", "NO_COLOR": "1"}], ids=["vt100", "NO_COLOR"]
)
def test_a_terminal_without_colors_gets_none_and_shows_the_cursor(tmp_path: Path, environment: dict[str, str]) -> None:
    environment = environment | {"XDG_STATE_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    out = drawn_by(["open", JAVA], b"e\rjj", b"request_api_key", environment)
    assert not {code for code in codes(out) if 30 <= code <= 38 or 40 <= code <= 48 or code >= 90}
    cursor = re.findall(rb"\x1b\[([\d;]*)m[^\x1b]*\xe2\x96\xb8", out)  # ▸
    assert any(b"7" in found.split(b";") for found in cursor)


@pytest.mark.long
def test_a_terminal_gets_colors_and_is_offered_recent_captures_where_no_file_is_given(tmp_path: Path) -> None:
    environment = {"TERM": "xterm-256color", "XDG_STATE_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    kept = dict(os.environ) | environment
    done = run_module("dissector.cli.main", [], kept)
    assert b"Usage" in done.stdout + done.stderr, "without a terminal there is help"
    assert 38 in codes(drawn_by(["open", JAVA], b"j", b"Metadata", environment))
    end, inner = pty.openpty()
    process = on_terminal(inner, [], kept)
    try:
        assert b"java.pcapng" in _read_until(end, b"java.pcapng")
    finally:
        process.kill()
        process.wait()
        os.close(end)
