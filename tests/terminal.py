"""A real terminal's two ends for tests: programs run in a pty, and what they write is taken apart as ECMA-48 has it."""

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from tests.emulated import Emulated
from tests.forked import Program, run_module_with

QUIET: Final = 0.15
"""Seconds without output after which a program is taken to have drawn what it has to."""
LONGEST: Final = 0.4
"""Seconds after which one that never stops drawing is taken to have answered to a key."""
HANGS: Final = 20.0
"""Seconds without any output that are a hang."""
GONE: Final = -1
SIZE: Final = ("COLUMNS", "LINES")
"""Variables that programs believe more than the terminal; pytest-xdist's workers have them."""
_SEQUENCE: Final = re.compile(
    r"\x1b\[[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]"  # CSI
    r"|\x1b\][\x20-\x7e]*(?:\x07|\x1b\\)"  # OSC
    r"|\x1b[PX^_][\x20-\x7e]*\x1b\\"  # DCS, SOS, PM, APC
    r"|\x1b[78=>]"  # of those of two characters the harmless ones: cursor kept, cursor back, keypad
)
_INVISIBLE: Final = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn"))


class NotATerminalsError(AssertionError):
    """Output that no program of ours may write."""


@dataclass(frozen=True)
class Output:
    """What a terminal received: escape sequences, and the text to show."""

    sequences: list[str]
    text: str

    @classmethod
    def of(cls, written: bytes) -> "Output":
        """Strictly: anything that is neither a whole sequence nor a visible character raises `NotATerminalsError`."""
        text = written.decode("utf-8")
        sequences, shown, at = [], [], 0
        while at < len(text):
            if text[at] == "\x1b":
                found = _SEQUENCE.match(text, at)
                if found is None:
                    raise NotATerminalsError(f"no sequence: {text[at : at + 40]!r}")
                sequences.append(found[0])
                at = found.end()
                continue
            if unicodedata.category(text[at]) in _INVISIBLE and text[at] not in "\r\n\t":
                raise NotATerminalsError(f"{text[at]!r} in {text[max(0, at - 40) : at + 40]!r}")
            shown.append(text[at])
            at += 1
        return cls(sequences, "".join(shown))


@dataclass
class Terminal:
    """A program in a pty, of so many columns and lines. `written` is all that it has written so far."""

    process: subprocess.Popen[bytes] | Program
    end: int
    size: tuple[int, int]
    written: bytes = b""

    def rest(self, quiet: float = HANGS, longest: float = 5 * HANGS) -> bytes:
        """What it writes until it ends, or writes nothing for so long, or goes on for longer than that."""
        came = []
        began = time.monotonic()
        while time.monotonic() - began < longest and select.select([self.end], [], [], quiet)[0]:
            try:
                data = os.read(self.end, 1 << 16)
            except OSError:  # Linux's way to say that the other end is closed
                break
            if not data:
                break
            came.append(data)
        self.written += b"".join(came)
        return b"".join(came)

    def until(self, words: str) -> None:
        """Read until it has written these; a screen that is drawn again and again is not read for ever."""
        end = time.monotonic() + 5 * HANGS
        while words.encode() not in self.written:
            self._read(lambda: f"{words!r} never came: {self.written[-2000:]!r}")
            assert time.monotonic() < end, f"{words!r} did not come: {self.written[-2000:]!r}"

    def until_seen(self, seen: Callable[[list[str]], object]) -> None:
        """Read until the screen's lines are so."""
        screen = Emulated(*self.size)
        screen.feed(self.written)
        while not seen(screen.lines):
            screen.feed(self._read(lambda: "never seen:\n" + "\n".join(screen.lines)))

    def _read(self, lacking: Callable[[], str]) -> bytes:
        """The next that it writes."""
        if not select.select([self.end], [], [], HANGS)[0]:
            raise AssertionError(lacking())
        data = os.read(self.end, 1 << 16)
        self.written += data
        return data

    def send(self, keys: str) -> None:
        """Type, or move the mouse."""
        os.write(self.end, keys.encode())

    def press(self, keys: str) -> None:
        """Type, and let it draw."""
        self.send(keys)
        self.rest(QUIET, LONGEST)

    def hang_up(self) -> None:
        """The terminal goes away, and no signal says so: it is not what controls the program's session."""
        os.close(self.end)
        self.end = GONE


@contextmanager
def terminal(words: Sequence[str], *, columns: int = 120, lines: int = 40, **variables: str) -> Iterator[Terminal]:
    """A program with a terminal of its own for all three streams. `python -m` is forked, see `tests.forked`."""
    ours, its = _open(columns, lines)
    environment = _environment() | variables
    process: subprocess.Popen[bytes] | Program
    if list(words[:2]) == [sys.executable, "-m"]:
        process = Program(words[2], words[3:], environment, (its, os.dup(its), os.dup(its)), "screen")
    else:
        process = subprocess.Popen(words, stdin=its, stdout=its, stderr=its, env=environment, start_new_session=True)
        os.close(its)
    its_user = Terminal(process, ours, (columns, lines))
    try:
        yield its_user
    finally:
        process.terminate()
        if its_user.end != GONE:
            its_user.rest()  # a program can't end while nobody reads what it draws
        process.wait(timeout=HANGS)
        if its_user.end != GONE:
            os.close(ours)


def run_on_terminal(module: str, words: Sequence[str], *, columns: int = 120, lines: int = 40) -> bytes:
    """Run a module to its end, with a terminal for all three streams, and return what it writes. It is forked, see
    `tests.forked`: for programs that draw no screen."""
    ours, its = _open(columns, lines)
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(_read_all, ours)
        run_module_with(module, words, _environment(), (its, os.dup(its), os.dup(its)))
        return written.result()


def _open(columns: int, lines: int) -> tuple[int, int]:
    """Both ends of a new pty of this size: ours, and the program's."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    return ours, its


def _environment() -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "CI", *SIZE)}
    return environment | {"TERM": "xterm-256color", "COLORTERM": "truecolor"}


def _read_all(end: int) -> bytes:
    """All bytes until the other end is closed."""
    came = []
    with contextlib.suppress(OSError):  # how Linux reports that the other end is closed
        while data := os.read(end, 1 << 16):
            came.append(data)
    os.close(end)
    return b"".join(came)
