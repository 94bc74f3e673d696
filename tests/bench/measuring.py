"""Running commands and measuring them: wall time, CPU, and the memory of all their processes together.

Memory is the peak of the proportional set size (``Pss`` in ``/proc/PID/smaps_rollup``) over the command and all that
it started: pages that processes share, or that they map of a file, count once. Where there is no ``/proc`` it is the
largest resident set of one process.
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
_BETWEEN: Final = 0.05
"""Seconds between two looks at the memory, at the least."""
_SELDOM: Final = 50
_PROC: Final = Path("/proc")


class Figure(NamedTuple):
    """Medians of some runs of one command."""

    seconds: float
    cpu: float
    megabytes: float


def measured(command: list[str], runs: int = RUNS) -> Figure:
    """Run a command several times, its output thrown away. A failure (not a negative answer) ends the benchmark."""
    figures = [_once(command) for _ in range(runs)]
    seconds, cpu, memory = zip(*figures, strict=True)
    return Figure(statistics.median(seconds), statistics.median(cpu), max(memory))


def line(title: str, command: list[str], runs: int = RUNS) -> Figure:
    """Measure, and print it as a line of a table."""
    figure = measured(command, runs)
    print(f"  {title:46}{figure.seconds:9.2f}{figure.cpu:9.2f}{figure.megabytes:8.0f}", flush=True)
    return figure


def head(title: str) -> None:
    """The head of a table of lines."""
    print(f"\n{title}\n  {'':46}{'wall s':>9}{'cpu s':>9}{'MB':>8}", flush=True)


def _once(command: list[str]) -> Figure:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=ENVIRONMENT)
    watch = _Watch(process.pid)
    _, complaint = process.communicate()
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}: {complaint.decode()[-500:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Figure(seconds, cpu, watch.peak() or after.ru_maxrss / 1024)


class _Watch(threading.Thread):
    """Looks at the memory of a process and its children until it is gone."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self._process = process
        self._peak = 0
        self.start()

    def peak(self) -> float:
        """Megabytes, once the process has ended."""
        self.join()
        return self._peak / 1024

    def run(self) -> None:
        began = time.perf_counter()
        while kilobytes := sum(map(memory, family(self._process))):
            self._peak = max(self._peak, kilobytes)
            rest(began)
            began = time.perf_counter()


def rest(began: float) -> None:
    """Wait until the next look at the memory: looking, which began then, is to be a fiftieth of what goes on."""
    time.sleep(max(_BETWEEN, _SELDOM * (time.perf_counter() - began)))


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
