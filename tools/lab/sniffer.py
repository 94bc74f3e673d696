"""Records loopback traffic of some ports while a client runs, with dumpcap, or with tcpdump and editcap."""

import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.lab.tools import MissingToolError, require, run

QUIET_SECONDS = 1.5
START_SECONDS = 15


def tool() -> str:
    """The program that records; tcpdump writes pcap, which editcap turns into pcapng."""
    name = Path(require("dumpcap", "tcpdump")).name
    if name == "tcpdump":
        require("editcap")
    return name


class Sniffer:
    """Captures `ports` to `path` (pcapng) while the context is open; leaves after the last packets are written."""

    def __init__(self, path: Path, ports: tuple[int, ...]) -> None:
        self._path = path
        self._filter = " or ".join(f"tcp port {port}" for port in ports)
        self._folder = tempfile.TemporaryDirectory(prefix="kdissect-sniffer-")
        self._raw = Path(self._folder.name) / "raw"
        self._log = Path(self._folder.name) / "log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        options = {
            "dumpcap": ("-q", "-n", "-i", "lo", "-f", self._filter, "-B", "64", "-w", str(self._raw)),
            "tcpdump": ("-n", "-i", "lo", "-U", "-B", "65536", "-Z", "root", "-w", str(self._raw), self._filter),
        }
        with self._log.open("wb") as log:
            self._process = subprocess.Popen([tool(), *options[tool()]], stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        while not any(sign in self._output() for sign in ("File: ", "listening on")):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self._process.kill()
                self._process.wait()
                output = self._output().strip()
                self._folder.cleanup()
                raise MissingToolError(f"{tool()} did not start: {output}")
            time.sleep(0.1)
        time.sleep(0.3)
        return self

    def _output(self) -> str:
        return self._log.read_text(errors="replace")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process is not None
        if kind is None:
            time.sleep(QUIET_SECONDS)
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if kind is None:
            self._keep()
        self._folder.cleanup()

    def _keep(self) -> None:
        if tool() == "tcpdump":
            run("editcap", "-F", "pcapng", self._raw, self._path)
        else:
            shutil.copyfile(self._raw, self._path)
