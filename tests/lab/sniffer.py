"""Records loopback traffic of the broker's port while a client runs."""

import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.lab.broker import PORT
from tests.lab.tools import MissingToolError, require

QUIET_SECONDS = 1.5
START_SECONDS = 15
FILTER = f"tcp port {PORT}"


class Sniffer:
    """Captures to `path` (pcapng) while the context is open; leaves after the last packets are written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the process
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        command = [require("dumpcap"), "-q", "-n", "-i", "lo", "-f", FILTER, "-B", "64", "-w", str(self._path)]
        self._process = subprocess.Popen(command, stdout=self._log, stderr=self._log)
        deadline = time.monotonic() + START_SECONDS
        while b"File: " not in self._said():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise MissingToolError(f"dumpcap did not start: {self._said().decode(errors='replace')}")
            time.sleep(0.1)
        time.sleep(0.3)
        return self

    def _said(self) -> bytes:
        self._log.seek(0)
        return self._log.read()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process is not None
        time.sleep(QUIET_SECONDS)
        self._process.send_signal(signal.SIGINT)
        self._process.wait(10)
        self._log.close()
