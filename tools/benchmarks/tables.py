"""What tables cost: of three mixes `ingest`, and commands on the tables beside the same on the capture, all against
`show --format json` in the same run; and small work: a tiny ingest beside a bare PySpark job, reading, files and sizes,
first progress, and how far a followed ring is behind."""

import os
import pty
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from dissector.capture import open_capture
from dissector.core.store import Store
from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from tools.benchmarks.captures import PCAPS, at_time, bulk, chatty, mixed
from tools.benchmarks.measuring import ENVIRONMENT, KDISSECT, Figure, head, line

MIXES: Final[dict[str, Callable[[Path], None]]] = {
    "mixed": lambda path: mixed(path, 200_000),
    "chatty": lambda path: chatty(path, 200_000),
    "bulk": lambda path: bulk(path, 100),
}
INGESTS: Final = ([], ["--hash-records"], ["--no-bodies"], ["--frames"])
OF_JSON: Final = 1.6
"""So many times `show --format json` an ingest may take, both without their start."""
MEGABYTES: Final = 400
"""Most memory of a command."""
OF_TABLES: Final = (
    ["stats"], ["stats", "--by", "client"], ["show", "-f", "json"], ["show", "-Y", "api == Metadata && latency > 5ms"],
    ["show", "-Y", "error"], ["show", "-Y", "request.acks == -1"],
)  # fmt: skip
TINY: Final = PCAPS / "librdkafka.pcapng"
CAPTURES: Final = 35
BARE_TIMES: Final = 2.5
"""So many times a bare PySpark job a tiny ingest may take."""
MOST_FILES: Final = 30
READ_PACKETS: Final = 200_000
READ: Final = (["stats"], ["show", "-f", "json"], ["show"], ["show", "-Y", "api == Metadata && latency > 5ms"])
SMALL_RUNS: Final = 300
GROWTH: Final = 2.5
"""So many times the first runs into tables the last ones may take."""
ROTATES: Final = 5.0
"""Seconds a file of a ring."""
RING_FILES: Final = 8
RING_PACKETS: Final = 10_000
"""Packets of each: 3 MB."""
_REPORT: Final = re.compile(r"(\d+) files?, .* in ([\d.]+) s: .*; [\d.]+ s behind")


def beside_captures(folder: Path) -> None:
    """Each mix to tables, and commands on these. CPU is that beyond the start: what the same command takes of a tiny
    capture, or of tables of that."""
    head("tables: the start")
    started = line("show -f json", [*KDISSECT, "show", "-f", "json", str(TINY)], 3)
    begun = line("ingest", [*KDISSECT, "ingest", str(TINY), "--out", str(folder / "tiny")], 1)
    for name, make in MIXES.items():
        path = folder / f"{name}.pcap"
        make(path)
        head(f"tables: {name}, {path.stat().st_size / 1e6:.0f} MB")
        whole = line("show -f json", [*KDISSECT, "show", "-f", "json", str(path)], 3)
        json = max(whole.cpu - started.cpu, 0.01)
        for more in INGESTS:
            out = folder / "-".join((name, *more))
            figure = _ingest(" ".join(("ingest", *more)), [path], out, more)
            print(
                f"  {(figure.cpu - begun.cpu) / json:.2f} times show -f json, both without their start (at most"
                f" {OF_JSON}); {figure.megabytes:.0f} MB (less than {MEGABYTES})", flush=True,
            )  # fmt: skip
        _beside(path, folder / name, whole, OF_TABLES)


def main(folder: Path) -> None:
    """Small work."""
    head("tables of small captures")
    bare = line("a bare PySpark job", [sys.executable, "-m", "tools.benchmarks.bare_job", str(folder)], 3)
    for title, more in (("ingest", []), ("ingest, Spark", ["--master", "local[2]"])):
        tiny = _ingest(title, [TINY], folder / title, more)
        print(f"  {tiny.seconds / bare.seconds:.2f} times the bare job (at most {BARE_TIMES})", flush=True)
    line("show tables", [*KDISSECT, "show", str(folder / "ingest")], 3)
    captures = sorted(PCAPS.glob("*.pcapng"), key=lambda path: path.stat().st_size)[-CAPTURES:]
    _ingest(f"ingest of {len(captures)} captures", captures, folder / "many", [])
    sizes(folder / "many", sum(path.stat().st_size for path in captures))
    print(f"  at most {MOST_FILES} files are wanted", flush=True)
    _read(folder)
    _run_by_run(folder)
    _first_progress(folder)
    _follow(folder)


def _ingest(title: str, captures: list[Path], out: Path, more: list[str]) -> Figure:
    return line(title, [*KDISSECT, "ingest", *map(str, captures), "--out", str(out), *more], 1)


def _read(folder: Path) -> None:
    """What reading costs beside the same command on the capture, in CPU, and beside `show --format json` of it."""
    path, tables = folder / "read.pcap", folder / "read"
    chatty(path, READ_PACKETS)
    _ingest("ingest of what is read", [path], tables, [])
    whole = line("show -f json", [*KDISSECT, "show", "-f", "json", str(path)], 3)
    _beside(path, tables, whole, READ)
    path.unlink()


def _beside(path: Path, tables: Path, whole: Figure, commands: Sequence[list[str]]) -> None:
    """Measure commands on a capture and on its tables, beside `show --format json` of the capture."""
    for command in commands:
        words = " ".join(command)
        captured = line(words, [*KDISSECT, *command, str(path)], 3)
        stored = line(f"{words}, tables", [*KDISSECT, *command, str(tables)], 3)
        print(
            f"  {stored.cpu / captured.cpu:.2f} times the capture,"
            f" {stored.cpu / whole.cpu:.2f} times show -f json of it",
            flush=True,
        )


def _run_by_run(folder: Path) -> None:
    """How much more a run costs when many captures are in the tables: small ones, a run each, in this process."""
    path, out = folder / "small.pcap", str(folder / "run by run")
    cpu = []
    for number in range(SMALL_RUNS):
        at_time(path, 20, number, (1_700_000_000 + 3_600 * number) * 10**9, 1_000_000_000)
        began = time.process_time()
        ingest_here([str(path)], out, WriteOptions())
        cpu.append(time.process_time() - began)
    few, many = (statistics.median(some) for some in (cpu[1:6], cpu[-20:]))
    print(
        f"  of {SMALL_RUNS} runs the last ones cost {many / few:.1f} times the first ones (at most {GROWTH})",
        flush=True,
    )


def sizes(out: Path, captured: int) -> None:
    """Print how many files tables have, and how large they are beside the captures."""
    files = [each.stat().st_size for each in out.rglob("*.parquet")]
    of_bodies = sum(each.stat().st_size for each in (out / "bodies").rglob("*.parquet"))
    print(
        f"  {len(files)} files, {sum(files) / 1e6:,.1f} MB ({of_bodies / 1e6:,.1f} MB of bodies) from"
        f" {captured / 1e6:,.1f} MB: {sum(files) / captured:.2f} times the captures", flush=True,
    )  # fmt: skip


def _first_progress(folder: Path) -> None:
    """How soon a terminal shows something, with and without Spark."""
    path = folder / "progress.pcap"
    chatty(path, 100_000)
    for title, more in (("ingest", []), ("ingest, Spark", ["--master", "local[2]"])):
        command = [*KDISSECT, "ingest", str(path), "--out", str(folder / f"progress {title}"), *more]
        print(f"  {title}: the first progress after {_first_output(command):.2f} s (at most 1)", flush=True)
    path.unlink()


def _first_output(command: list[str]) -> float:
    """Seconds until a command writes to its terminal; it runs to its end."""
    ours, terminal = pty.openpty()
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=terminal, env=ENVIRONMENT)
    os.close(terminal)
    os.read(ours, 1)
    seconds = time.perf_counter() - began
    while process.poll() is None:
        try:
            os.read(ours, 65_536)
        except OSError:  # nobody has the terminal any more
            process.wait()
    os.close(ours)
    return seconds


def _follow(folder: Path) -> None:
    """A ring whose packets are captured now. A file is closed when the next one is there, the last one when nothing has
    come for a while: what comes on top, until the line about its rows, is lag."""
    ring, out = folder / "ring", folder / "followed"
    ring.mkdir()
    idle = 3 * ROTATES
    command = [*KDISSECT, "ingest", str(ring), "--follow", "--out", str(out), "--idle", str(idle)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=ENVIRONMENT, text=True)
    said = _Lines(process)
    said.wait_for("following")
    closed: list[float] = []
    for number in range(RING_FILES):
        made = folder / "made.pcap"
        at_time(made, RING_PACKETS, number, time.time_ns(), int(ROTATES * 1e9))
        made.rename(ring / f"{number:03}.pcap")
        closed.append(time.time())
        time.sleep(ROTATES)
    closed = [*closed[1:], closed[-1] + idle / 2]
    process.wait()
    said.join()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: {said.lines[-3:]}")
    print(f"\na ring, a file of {RING_PACKETS:,} packets every {ROTATES:.0f} s", flush=True)
    read = 0
    for at, words in said.lines:
        report = _REPORT.search(words)
        if report is None:
            continue
        files, seconds = int(report[1]), float(report[2])
        read += files
        lag = at - closed[read - 1]
        print(
            f"  {files} files: a micro-batch of {seconds} s, {lag:.1f} s after the last file was closed"
            f" ({lag / seconds:.1f} micro-batches; at most 2)", flush=True,
        )  # fmt: skip
    packets = sum(len(batch) for path in ring.iterdir() for batch in open_capture(str(path), Store()).batches())
    print(f"  {packets:,} packets", flush=True)


class _Lines(threading.Thread):
    """What a process says, with the time of each line."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        super().__init__(daemon=True)
        self._process = process
        self._changed = threading.Condition()
        self.lines: list[tuple[float, str]] = []
        self.start()

    def run(self) -> None:
        for words in self._process.stderr or ():
            with self._changed:
                self.lines.append((time.time(), words))
                self._changed.notify()

    def wait_for(self, beginning: str) -> None:
        """Wait for a line. Raises `SystemExit` if the process ends before."""
        with self._changed:
            while not any(words.startswith(beginning) for _, words in self.lines):
                if not self._changed.wait(1) and self._process.poll() is not None:
                    raise SystemExit("".join(words for _, words in self.lines))
