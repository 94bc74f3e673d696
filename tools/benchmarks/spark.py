"""Small work with tables; then `ingest` on one core and on two, beside `show --format json` and tshark.

What a Spark session costs that has next to nothing to do is measured first and left out of the growth. Memory is that
of all processes together, the JVM's heap (2 GB at the most) among it; Python workers are watched apart.
"""

import os
import shutil
import sys
import threading
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from tools.benchmarks import tables
from tools.benchmarks.captures import PCAPS, chatty, chatty_files
from tools.benchmarks.measuring import KDISSECT, Figure, family, head, line, memory

PACKETS_A_MEGABYTE: Final = 3_420
SIZES: Final = (100, 1_000)
"""Megabytes, unless others are given: `spark=100,1000,10000`."""
RATE: Final = 7_900
"""Exchanges a second that `local[2]` is to ingest at the least ..."""
MEGABYTES_A_SECOND: Final = 5.0
"""... and megabytes."""
LINEAR: Final = 1.2
"""So many times the CPU a byte that the largest capture may cost."""
FILES: Final = (1, 10, 100)
_BETWEEN: Final = 2.0
"""Seconds between two looks at the memory of workers."""
OF_TSHARK: Final = 10
"""tshark reads a part of the capture that is so many times smaller, and is scaled."""


def main(folder: Path, sizes: Sequence[int] = SIZES) -> None:
    """Small work, speed at some sizes, then the same traffic in more files."""
    if shutil.which("java") is None:
        print("spark: no Java is installed")
        return
    tables.main(folder)
    head("ingest, next to nothing")
    nothing = _ingest("local[2]", PCAPS / "librdkafka.pcapng", folder)
    cpu = []
    for size in sizes:
        path = folder / "chatty.pcap"
        chatty(path, size * PACKETS_A_MEGABYTE)
        cpu.append(_compare(size, path, folder, nothing).cpu - nothing.cpu)
        path.unlink()
    for (small, less), (large, more) in pairwise(zip(sizes, cpu, strict=True)):
        times, growth = large / small, more / less
        print(
            f"\n{times:g} times as much costs {growth:.1f} times the CPU beyond the start: {growth / times:.2f} times a"
            f" megabyte (at most {LINEAR})", flush=True,
        )  # fmt: skip
    head(f"ingest, {sizes[0]:,} MB in files")
    for count in FILES:
        captures = folder / "captures"
        captures.mkdir()
        chatty_files(captures, sizes[0] * PACKETS_A_MEGABYTE, count)
        figure = _ingest("local[2]", captures, folder)
        print(f"  {count} files: {figure.cpu - nothing.cpu:.1f} s of CPU beyond the start", flush=True)
        shutil.rmtree(captures)


def _compare(size: int, path: Path, folder: Path, nothing: Figure) -> Figure:
    head(f"ingest, {size:,} MB")
    one = _ingest("local[1]", path, folder)
    two = _ingest("local[2]", path, folder)
    show = ["taskset", "-c", "0", *KDISSECT, "show", str(path), "-f", "json"]
    json = line("show --format json on one core", show, 1)
    both = line("show --format json", show[3:], 1)
    beyond = (one.seconds - nothing.seconds) / (two.seconds - nothing.seconds)
    print(
        f"  {size / two.seconds:.1f} MB/s (at least {MEGABYTES_A_SECOND:g});"
        f" {json.seconds / two.seconds:.2f} times as fast as show on one core,"
        f" {both.seconds / two.seconds:.2f} times as show on two (more than 1)", flush=True,
    )  # fmt: skip
    print(f"  two cores: {one.seconds / two.seconds:.2f} times one, {beyond:.2f} without the start", flush=True)
    if shutil.which("tshark") is not None:
        chatty(path, size * PACKETS_A_MEGABYTE // OF_TSHARK)
        peer = line(f"tshark -T json, a {OF_TSHARK}th", ["tshark", "-r", str(path), "-Y", "kafka", "-T", "json"], 1)
        print(f"  local[2] is {peer.seconds * OF_TSHARK / two.seconds:.1f} times tshark (scaled)", flush=True)
    return two


def _ingest(master: str, path: Path, folder: Path) -> Figure:
    """One run, into a folder that is removed behind it; how large its Python workers grew."""
    out = folder / "tables"
    watch = _Workers()
    watch.start()
    figure = line(f"ingest {master}", [*KDISSECT, "ingest", str(path), "--out", str(out), "--master", master], 1)
    watch.done.set()
    watch.join()
    exchanges = sum(pq.ParquetFile(file).metadata.num_rows for file in (out / "exchanges").rglob("*.parquet"))
    print(
        f"  {exchanges:,} exchanges, {exchanges / figure.seconds:,.0f} a second (at least {RATE:,} on two cores);"
        f" the largest of its Python workers: {watch.peak / 1024:.0f} MB", flush=True,
    )  # fmt: skip
    tables.sizes(out, sum(each.stat().st_size for each in ([path] if path.is_file() else path.iterdir())))
    shutil.rmtree(out)
    return figure


class _Workers(threading.Thread):
    """Looks at the memory of Python processes that Spark started."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.done = threading.Event()
        self.peak = 0
        """Kilobytes, of one."""

    def run(self) -> None:
        while not self.done.is_set():
            for each in family(os.getpid()):
                if _is_worker(each):
                    self.peak = max(self.peak, memory(each))
            time.sleep(_BETWEEN)


def _is_worker(process: int) -> bool:
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False
    return sys.executable.encode() in words and b"worker_daemon" in words
