"""External programs that capture: dumpcap, or else tcpdump. They may have privileges that this process lacks.

dumpcap writes pcapng, tcpdump pcap. SIGINT ends either, after it has written its packets. Their standard error is read
as it arrives: start, dropped packets. What they write to standard output is copied to the files, so that they need no
right to any; to those of a ring cut between blocks of pcapng (draft-ietf-opsawg-pcapng: type and length come first).

Invariants:
  * where this process is root, they are not: they run as the user who goes on, and may do nothing but capture;
  * each file of a ring is complete: it begins with the section header and the interfaces;
  * what was written is in the file when `write` returns, so that a process that follows it can read it.
"""

import fcntl
import os
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, Self

from dissector.capture.errors import CaptureError
from dissector.capture.live import events
from dissector.capture.live.events import send_event
from dissector.capture.live.interfaces import LINUX
from dissector.capture.live.output_files import TEMPORARY, Files
from dissector.capture.live.privileges import User, capture_as, why_nobody_captures
from dissector.capture.live.settings import CaptureSettings
from dissector.core.text import clean, os_reason

START_SECONDS: Final = 15
DELIVERY_SECONDS: Final = 0.4
"""The kernel delivers packets with a delay, and those that it still holds at the end are lost."""
END_SECONDS: Final = 10
BUFFER_MIB: Final = 64
_STDOUT: Final = "-"
_COPY_BYTES: Final = 1 << 20
_SET_PIPE_SIZE: Final = 1031
"""F_SETPIPE_SZ."""
_BEGUN: Final = re.compile(r"File: |(?:tcpdump: )?listening on ")
_CAPTURED: Final = re.compile(r"Packets(?: captured)?: (\d+)|(\d+) packets? captured")
_DROPPED: Final = re.compile(r"Packets received/dropped on interface .*: \d+/(\d+) |(\d+) packets? dropped by kernel")
_ASIDE: Final = re.compile(r"Capturing on |tcpdump: (?:data link type|verbose output) |\d+ packets? received by filter")
_DENIED: Final = re.compile(r"permission|not permitted", re.IGNORECASE)
_BLOCK_HEAD: Final = struct.Struct("=II")
_SECTION, _INTERFACE = 0x0A0D0D0A, 1


class ToolOutput:
    """The files that packets are copied to. `on_file` is called with a descriptor to read each."""

    def __init__(self, settings: CaptureSettings, files: Files, on_file: Callable[[int], None]) -> None:
        self._ring = settings.ring
        self._files = files
        self._on_file = on_file
        self._file: IO[bytes] | None = None
        self._head = b""
        """The blocks that each file begins with."""
        self._begun = b""
        """Of a block that is not complete."""

    def begin(self) -> None:
        """Make a file. Raises `OSError`."""
        if self._file is not None:
            self._file.close()
        made = self._files.next()
        self._file = os.fdopen(made.writing, "wb", buffering=0)
        self._since = time.monotonic()
        self._put(self._head)
        self._on_file(made.reading)
        os.close(made.reading)

    def write(self, data: bytes) -> None:
        """Append what the program has written. Raises `OSError`."""
        if self._ring is None:
            self._put(data)
            return
        self._begun += data
        at = 0
        while len(self._begun) - at >= _BLOCK_HEAD.size:
            kind, size = _BLOCK_HEAD.unpack_from(self._begun, at)
            if len(self._begun) - at < size or size < _BLOCK_HEAD.size:
                break
            self._block(kind, self._begun[at : at + size])
            at += size
        self._begun = self._begun[at:]

    def _block(self, kind: int, block: bytes) -> None:
        assert self._file is not None
        assert self._ring is not None
        if kind in (_SECTION, _INTERFACE):
            self._head += block
        elif self._ring.is_full(self._file.tell(), time.monotonic() - self._since):
            self.begin()
        self._put(block)

    def _put(self, data: bytes) -> None:
        assert self._file is not None
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]


class CaptureTool:
    """A running external capture program."""

    def __init__(self, name: str, program: str, settings: CaptureSettings, files: Files, user: User | None) -> None:
        """Raises `OSError` or `SubprocessError` if it can't be executed."""
        self._name = name
        self._path = settings.path or TEMPORARY
        self._output = ToolOutput(settings, files, lambda file: send_event(events.FILE, file=file))
        words = _dumpcap(settings) if name == "dumpcap" else _tcpdump(settings, user)
        self._process = subprocess.Popen(
            [os.path.realpath(program), *words],  # the user may not go where a link to it is
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=(lambda: capture_as(user, program)) if user is not None else None,  # one thread
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._stdout, self._stderr = self._process.stdout.fileno(), self._process.stderr.fileno()
        for each in self.readable:
            os.set_blocking(each, False)
        if LINUX:
            with suppress(OSError):  # not more than the system allows
                fcntl.fcntl(self._stdout, _SET_PIPE_SIZE, _COPY_BYTES)
        self._part = ""
        self._words: list[str] = []
        """Other lines: the reason if it ends."""
        self._began = self._copies = False
        self._captured = self._dropped = 0

    @classmethod
    def start(
        cls, name: str, settings: CaptureSettings, files: Files, user: User | None, refused: list[str]
    ) -> Self | None:
        """Start the program, as `user` if this process is root; return None if it does not capture, with its reason in
        `refused`. Raises `CaptureError` if its file can't be made."""
        program = shutil.which(name)
        if program is None:
            refused.append(_missing_reason(name))
            return None
        if name == "tcpdump" and settings.ring is not None:
            refused.append("tcpdump can't write a ring buffer of pcapng files")
            return None
        try:
            tool = cls(name, program, settings, files, user)
        except (OSError, subprocess.SubprocessError) as error:
            refused.append(f"{name}: {os_reason(error)}")
            return None
        deadline = time.monotonic() + START_SECONDS
        while not tool._began and tool.read_output() and time.monotonic() < deadline:
            select.select(tool.readable, [], [], 0.2)
        if tool._began:
            tool._begin_file()
            return tool
        tool.end()
        refused.append(tool.reason())
        return None

    @property
    def readable(self) -> tuple[int, int]:
        """Descriptors to wait on: there is something for `read_output`."""
        return self._stdout, self._stderr

    def read_output(self) -> bool:
        """Read its messages, and copy its packets to the file; return False once it has ended. Raises `CaptureError` if
        the file can't be written."""
        self._copy_packets()
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
        deadline = time.monotonic() + END_SECONDS
        while self.read_output():
            select.select(self.readable, [], [], 0.2)
            if time.monotonic() > deadline:
                self._process.kill()
        self._copy_packets()
        exit_code = self._process.wait() if exit_code is None else exit_code
        if self._began and exit_code:
            raise CaptureError(f"{self.reason()}; capturing ended")
        return self._captured, self._dropped

    def _take(self, line: str) -> None:
        if _BEGUN.match(line):
            self._began = True
        elif match := _CAPTURED.search(line):
            self._captured = int(match[1] or match[2])
            send_event(events.STATISTICS, captured=self._captured, dropped=self._dropped)
        elif match := _DROPPED.search(line):
            self._dropped = int(match[1] or match[2])
        elif line and not _ASIDE.match(line):
            self._words.append(line)

    def _begin_file(self) -> None:
        """Make the first file, while this process may. Raises `CaptureError`."""
        try:
            self._output.begin()
            self._copies = True
        except OSError as error:
            self._process.kill()
            raise CaptureError(f"{self._path}: {os_reason(error)}") from None

    def _copy_packets(self) -> None:
        """Copy what it has written to standard output. Raises `CaptureError`."""
        try:
            while self._copies and (data := os.read(self._stdout, _COPY_BYTES)):
                self._output.write(data)
        except BlockingIOError:
            return
        except OSError as error:
            self._copies = False
            self._process.kill()
            reason = os_reason(error)
            raise CaptureError(f"{self._path}: {reason}; capturing ended") from None


def _dumpcap(settings: CaptureSettings) -> list[str]:
    words = ["-n", "-i", settings.interface, "-B", str(BUFFER_MIB), "-f", settings.filter_expression, "-w", _STDOUT]
    return words if settings.promiscuous else [*words, "-p"]


def _tcpdump(settings: CaptureSettings, user: User | None) -> list[str]:
    words = ["-n", "-i", settings.interface, "-B", str(BUFFER_MIB << 10), "-s", "0", "-U", "--immediate-mode"]
    words += ["-w", _STDOUT]
    if LINUX and user is None and os.geteuid() == 0:
        words += ["-Z", "root"]  # by default it switches to another user, which this root can't
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
    if reason := why_nobody_captures():
        return f"not allowed to capture on {settings.interface}: {reason}"
    dumpcap = shutil.which("dumpcap")
    program = dumpcap or str(Path(sys.executable).resolve())
    rights = "cap_net_raw,cap_net_admin+eip"
    allow = f", or allow it for good: sudo setcap {rights} {program}" if LINUX else ""
    return f"not allowed to capture on {settings.interface}: run with sudo{allow}"
