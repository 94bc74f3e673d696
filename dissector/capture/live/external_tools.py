"""External programs that capture: dumpcap, or else tcpdump. They may have privileges that this process lacks.

dumpcap writes pcapng and rings, tcpdump pcap. SIGINT ends either, after it has written its packets. Their standard
error is read as it arrives: start, files, dropped packets.
"""

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final, Self

from dissector.capture.errors import CaptureError
from dissector.capture.live import events
from dissector.capture.live.events import send_event
from dissector.capture.live.interfaces import LINUX
from dissector.capture.live.settings import CaptureSettings
from dissector.core.text import clean

START_SECONDS: Final = 15
DELIVERY_SECONDS: Final = 0.4
"""The kernel delivers packets with a delay, and those that it still holds at the end are lost."""
END_SECONDS: Final = 10
BUFFER_MIB: Final = 64
_FILE: Final = re.compile(r"File: (.+)")
_LISTENING: Final = re.compile(r"(?:tcpdump: )?listening on ")
_CAPTURED: Final = re.compile(r"Packets(?: captured)?: (\d+)|(\d+) packets? captured")
_DROPPED: Final = re.compile(r"Packets received/dropped on interface .*: \d+/(\d+) |(\d+) packets? dropped by kernel")
_ASIDE: Final = re.compile(r"Capturing on |tcpdump: (?:data link type|verbose output) |\d+ packets? received by filter")
_DENIED: Final = re.compile(r"permission|not permitted", re.IGNORECASE)


class CaptureTool:
    """A running external capture program."""

    def __init__(self, name: str, program: str, settings: CaptureSettings) -> None:
        self._name = name
        self._path = settings.path
        words = _dumpcap(settings) if name == "dumpcap" else _tcpdump(settings)
        self._process = subprocess.Popen(
            [program, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, umask=0o077
        )
        assert self._process.stderr is not None
        self._stderr = self._process.stderr.fileno()
        os.set_blocking(self._stderr, False)
        self._part = ""
        self._words: list[str] = []
        """Other lines: the reason if it ends."""
        self._began = False
        self._captured = self._dropped = 0

    @classmethod
    def start(cls, name: str, settings: CaptureSettings, refused: list[str]) -> Self | None:
        """Start the program; return None if it does not capture, with its reason in `refused`."""
        program = shutil.which(name)
        if program is None:
            refused.append(_missing_reason(name))
            return None
        if name == "tcpdump" and settings.ring is not None:
            refused.append("tcpdump can't write a ring buffer of pcapng files")
            return None
        tool = cls(name, program, settings)
        deadline = time.monotonic() + START_SECONDS
        while not tool._began and tool.read_output() and time.monotonic() < deadline:
            select.select([tool], [], [], 0.2)
        if tool._began:
            return tool
        tool.end()
        refused.append(tool.reason())
        return None

    def fileno(self) -> int:
        """Return the descriptor of its standard error, for `select`."""
        return self._stderr

    def read_output(self) -> bool:
        """Read its output; return False once it has ended."""
        try:
            data = os.read(self._stderr, 1 << 16)
        except BlockingIOError:
            return True
        *lines, self._part = re.split(r"[\r\n]", self._part + data.decode(errors="replace"))
        for line in lines:
            self._take(line.strip())
        return bool(data)

    def reason(self) -> str:
        """Return why it did not start, or why it ended."""
        message = next((line for line in self._words if _DENIED.search(line)), None) or " ".join(self._words[:1])
        return f"{self._name}: {clean(message.removeprefix(f'{self._name}: ')) or 'ended without a message'}"

    def end(self) -> tuple[int, int]:
        """End it; return packets captured and dropped. Raises `CaptureError` if it had failed before."""
        exit_code = self._process.poll()
        if exit_code is None:
            if self._began:
                time.sleep(DELIVERY_SECONDS)
            self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        while self.read_output():
            pass
        if self._began and exit_code:
            raise CaptureError(f"{self.reason()}; capturing ended")
        return self._captured, self._dropped

    def _take(self, line: str) -> None:
        if match := _FILE.fullmatch(line):
            self._begin(match[1])
        elif _LISTENING.match(line):
            self._begin(self._path)
        elif match := _CAPTURED.search(line):
            self._captured = int(match[1] or match[2])
            send_event(events.STATISTICS, captured=self._captured, dropped=self._dropped)
        elif match := _DROPPED.search(line):
            self._dropped = int(match[1] or match[2])
        elif line and not _ASIDE.match(line):
            self._words.append(line)

    def _begin(self, path: str) -> None:
        self._began = True
        send_event(events.FILE, path=path)


def _dumpcap(settings: CaptureSettings) -> list[str]:
    words = [
        "-n",
        "-i",
        settings.interface,
        "-B",
        str(BUFFER_MIB),
        "-f",
        settings.filter_expression,
        "-w",
        settings.path,
    ]
    if settings.ring is not None:
        limits = {"filesize": settings.ring.kilobytes, "duration": settings.ring.seconds, "files": settings.ring.files}
        words += [word for name, count in limits.items() if count for word in ("-b", f"{name}:{count}")]
    return words if settings.promiscuous else [*words, "-p"]


def _tcpdump(settings: CaptureSettings) -> list[str]:
    words = ["-n", "-i", settings.interface, "-B", str(BUFFER_MIB << 10), "-s", "0", "-U", "--immediate-mode"]
    words += ["-w", settings.path]
    if LINUX and os.geteuid() == 0:
        words += ["-Z", "root"]  # by default it switches to another user, who may not write here
    return [*words, *([] if settings.promiscuous else ["-p"]), "--", settings.filter_expression]


def _missing_reason(name: str) -> str:
    """Return why a program can't be run."""
    for folder in os.get_exec_path():
        path = Path(folder) / name
        if path.is_file():
            return f"{path} is for its group only: sudo usermod -aG {path.group()} $USER, then log in again"
    return f"{name} is not installed"


def permission_message(settings: CaptureSettings, refused: list[str]) -> str:
    """Return one line: why nothing can capture, and what to do."""
    for reason in refused:
        if "group only" in reason:
            return f"not allowed to capture on {settings.interface}: run with sudo, or: {reason}"
    reasons = [reason for reason in refused if not (_DENIED.search(reason) or reason.endswith("is not installed"))]
    if reasons:
        return f"can't capture on {settings.interface}: {'; '.join(reasons)}"
    denied = any(_DENIED.search(reason) for reason in refused)
    if settings.expression and not denied:
        return "--capture-filter needs dumpcap or tcpdump, and neither is installed"
    dumpcap = shutil.which("dumpcap")
    program = dumpcap or str(Path(sys.executable).resolve())
    rights = "cap_net_raw,cap_net_admin+eip"
    allow = f", or allow it for good: sudo setcap {rights} {program}" if LINUX else ""
    return f"not allowed to capture on {settings.interface}: run with sudo{allow}"
