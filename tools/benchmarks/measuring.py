"""Running commands and measuring them: wall time, CPU, and the memory of all their processes together.

Memory is the peak of the proportional set size (``Pss`` in ``/proc/PID/smaps_rollup``) over the command and all that
it started: pages that processes share, or that they map of a file, count once. CPU is that of all of
them, by what the system says of those who were waited for, or else as it was when they were last seen.
"""

import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Final, NamedTuple

RUNS: Final = 3
KDISSECT: Final = (sys.executable, "-m", "dissector.cli.main")
ENVIRONMENT: Final = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""As a user has it: modules are compiled once, and not at every start."""
BEFORE: Final = os.environ.get("BEFORE")
"""The folder of an earlier version, a git worktree, whose commands are measured beside those of this one."""
_BETWEEN: Final = 0.05
"""Seconds between two looks at the memory, at the least."""
_SELDOM: Final = 50
"""Looking takes a while, at the memory of large processes above all: it is to be a small part of what goes on."""
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PROC: Final = Path("/proc")


class Figure(NamedTuple):
    """Medians of some runs of one command."""

    seconds: float
    cpu: float
    megabytes: float


def measured(command: list[str], runs: int = RUNS, folder: str | None = None) -> Figure:
    """Run a command several times, in a folder, its output thrown away. A failure (not a negative answer) ends the
    benchmark."""
    figures = [_once(command, folder) for _ in range(runs)]
    seconds, cpu, memory = zip(*figures, strict=True)
    return Figure(statistics.median(seconds), statistics.median(cpu), max(memory))


def line(title: str, command: list[str], runs: int = RUNS, folder: str | None = None) -> Figure:
    """Measure, and print it as a line of a table."""
    figure = measured(command, runs, folder)
    print(f"  {title:46}{figure.seconds:9.2f}{figure.cpu:9.2f}{figure.megabytes:8.0f}", flush=True)
    return figure


def before(title: str, command: list[str], ours: Figure) -> None:
    """Measure a command of `kdissect` in an earlier version, too, if there is one, and print the ratio."""
    if BEFORE is not None:
        ratio(title, ours, line(f"{title}, before", command, folder=BEFORE), "before")


def ratio(title: str, ours: Figure, peer: Figure, name: str = "tshark") -> None:
    """Print how much faster ours is than a peer's."""
    times = f"{peer.cpu / ours.cpu:.1f} times as fast as {name} by CPU, {peer.seconds / ours.seconds:.1f} by wall"
    print(f"  {title}: {times}, {ours.megabytes / peer.megabytes:.2f} of its memory", flush=True)


def head(title: str) -> None:
    """The head of a table of lines."""
    print(f"\n{title}\n  {'':46}{'wall s':>9}{'cpu s':>9}{'MB':>8}", flush=True)


def _once(command: list[str], folder: str | None) -> Figure:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=ENVIRONMENT, cwd=folder)
    watch = _Watch(process.pid)
    _, complaint = process.communicate()
    seconds = time.perf_counter() - start
    if process.returncode not in (0, 1) or b"Traceback" in complaint:  # which Python ends with 1, too
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}: {complaint.decode()[-500:]}")
    watch.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Figure(seconds, max(cpu, watch.cpu), watch.peak / 1024)


class _Watch(threading.Thread):
    """Looks at the memory and the CPU of a process and all that it starts until it is gone. Nobody waits for some of
    these, so that no other figure has what they took."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self._process = process
        self._taken: dict[int, float] = {}
        self.peak = 0
        """Kilobytes."""
        self.start()

    @property
    def cpu(self) -> float:
        """Seconds."""
        return sum(self._taken.values())

    def run(self) -> None:
        first, next_look = time.perf_counter(), 0.0
        while there := [each for each in family(self._process) if self._look_at(each)]:
            began = time.perf_counter()
            if began >= next_look:
                self.peak = max(self.peak, sum(map(memory, there)))
                next_look = time.perf_counter() + _SELDOM * (time.perf_counter() - began)
            time.sleep(min(1.0, max(_BETWEEN, (began - first) / _SELDOM)))

    def _look_at(self, process: int) -> bool:
        """Take down its CPU; whether it is there, and not just waited for."""
        try:
            words = (_PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            return False
        self._taken[process] = (int(words[11]) + int(words[12])) / _TICKS
        return words[0] != "Z"


def family(process: int) -> list[int]:
    """A process and all that it started."""
    found = [process]
    for one in found:
        for task in _listed(_PROC / str(one) / "task"):
            try:
                found += map(int, (task / "children").read_text().split())
            except OSError:
                continue
    return found


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def memory(process: int) -> int:
    """Kilobytes."""
    try:
        lines = (_PROC / str(process) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(words.split()[1]) for words in lines if words.startswith("Pss:")), 0)


def machine() -> str:
    """What it is measured on, in words."""
    return f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, median of {RUNS} runs"
