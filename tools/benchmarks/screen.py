"""1 GB on the screen, in a terminal of its own (a pty): when the first rows are there, when the index is whole, and how
long a key takes to show while the capture is read and after it."""

import fcntl
import os
import pty
import re
import select
import statistics
import struct
import subprocess
import termios
import time
from pathlib import Path
from typing import Final

from tools.benchmarks.captures import chatty
from tools.benchmarks.measuring import ENVIRONMENT, KDISSECT
from tools.benchmarks.memory import PACKETS_A_MEGABYTE

MEGABYTES: Final = 1_000
ROWS, COLUMNS = 40, 120
KEYS: Final = 40
PATIENCE: Final = 300.0
"""Seconds to wait for what must come."""
_API: Final = re.compile(rb"ApiVersions|Metadata|Produce|Fetch|Heartbeat|FindCoordinator|OffsetCommit|InitProducerId")
_WHOLE: Final = re.compile(rb"100%")
_DOWN: Final = b"\x1b[B"


class Terminal:
    """A program on a terminal, and what it has drawn."""

    def __init__(self, command: list[str]) -> None:
        self._end, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        environment = ENVIRONMENT | {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            command, stdin=inner, stdout=inner, stderr=inner, env=environment, start_new_session=True
        )
        os.close(inner)

    def wait_for(self, wanted: re.Pattern[bytes], patience: float = PATIENCE) -> float:
        """Seconds until it is drawn."""
        start = time.perf_counter()
        drawn = b""
        while time.perf_counter() - start < patience:
            if select.select([self._end], [], [], 0.5)[0]:
                drawn = drawn[-200:] + os.read(self._end, 1 << 16)
                if wanted.search(drawn):
                    return time.perf_counter() - start
        raise SystemExit(f"{wanted.pattern!r} was never drawn")

    def press(self, key: bytes, wanted: re.Pattern[bytes]) -> float:
        """Seconds from a key to what it draws."""
        self._drain()
        os.write(self._end, key)
        return self.wait_for(wanted)

    def close(self) -> None:
        """Leave as a user does."""
        os.write(self._end, b"q")
        while self._process.poll() is None:
            self._drain()
        os.close(self._end)

    def _drain(self) -> None:
        """What it draws must be read, or it waits."""
        while select.select([self._end], [], [], 0.02)[0]:
            try:
                os.read(self._end, 1 << 16)
            except OSError:  # the terminal's other end is closed
                return


def main(folder: Path) -> None:
    """The figures."""
    path = folder / "chatty.pcap"
    chatty(path, MEGABYTES * PACKETS_A_MEGABYTE)
    print(f"\nthe screen, {path.stat().st_size / 1e6:,.0f} MB, {COLUMNS}x{ROWS}")
    terminal = Terminal([*KDISSECT, "open", str(path)])
    terminal.wait_for(_API)
    print(
        f"  first rows after {time.perf_counter() - terminal.started:.2f} s from the start of the process", flush=True
    )
    _keys(terminal, "while the capture is read")
    terminal.wait_for(_WHOLE)
    print(f"  whole index after {time.perf_counter() - terminal.started:.1f} s", flush=True)
    _keys(terminal, "afterwards")
    terminal.close()


def _keys(terminal: Terminal, when: str) -> None:
    times = sorted(1000 * terminal.press(_DOWN, _API) for _ in range(KEYS))
    print(
        f"  a key shows after {statistics.median(times):.0f} ms {when}, {times[-2]:.0f} ms in the worst of 20",
        flush=True,
    )
