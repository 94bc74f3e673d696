"""Inputs made to cost much: CPU a megabyte, memory, and what twice the size costs.

Start-up is left out. No shape may take more than `MOST` seconds a megabyte; growth near 2 is linear.
"""

import os
import random
import subprocess
from pathlib import Path
from typing import Final

from tests.traffic import request
from tools.benchmarks.hostile_shapes import SHAPES, Shape, file_of, sequence
from tools.benchmarks.measuring import KDISSECT, measured

MEGABYTE: Final = 1 << 20
MOST: Final = 2.0
FORM: Final = ("--fields", "api,version,correlation_id,latency,info")


def main(folder: Path) -> None:
    """Each shape, and twice as large."""
    print(f"\nhostile, {FORM[-1]}\n  {'':46}{'cpu s/MB':>9}{'MB':>8}{'growth':>8}", flush=True)
    empty = folder / "empty"
    empty.write_bytes(file_of(sequence(lambda talk, n: iter([talk.says(True, request(n))])), 1_000))
    start = measured([*KDISSECT, "show", str(empty), *FORM]).cpu
    chosen = os.environ.get("SHAPES", "")
    for name, make in SHAPES.items():
        if chosen in name:
            _line(name, make, folder / "made", start)


def _line(name: str, make: Shape, path: Path, start: float) -> None:
    cpu: list[float] = []
    memory = 0.0
    for size in (MEGABYTE, 2 * MEGABYTE):
        path.write_bytes(make(size, random.Random(7)))
        try:
            figure = measured([*KDISSECT, "show", str(path), *FORM], 1)
        except (SystemExit, subprocess.TimeoutExpired) as error:
            print(f"  {name:46} {error}", flush=True)
            return
        cpu.append(max(0.001, figure.cpu - start) * MEGABYTE / path.stat().st_size)
        memory = max(memory, figure.megabytes)
    mark = "  too slow" if max(cpu) > MOST else ""
    print(f"  {name:46}{max(cpu):9.2f}{memory:8.0f}{2 * cpu[1] / cpu[0]:8.1f}{mark}", flush=True)
