"""Every command over inputs that are made to cost much, and over ordinary ones: the worst seconds a megabyte, the worst
growth, and the most memory of each, and which input it was.

Inputs are of a megabyte where work of two halves may be multiplied; of the others a megabyte is measured where an
eighth of one is costly. Where a run takes long enough to tell, growth is the time a megabyte beside that of a quarter,
or an eighth: 1 is none.
`SHAPES=` and `COMMANDS=` choose those whose name has the text. `COSTS=FILE` keeps all figures, a line each. Start-up is
left out of seconds.
"""

import contextlib
import json
import math
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.traffic import request
from tools.benchmarks import costly_sessions
from tools.benchmarks import starter as starting
from tools.benchmarks.captures import bulk, chatty, connections, mixed
from tools.benchmarks.command_forms import COMMANDS, NotMadeError, Words, clear, filled
from tools.benchmarks.hostile_shapes import SHAPES, file_of, sequence
from tools.benchmarks.measuring import BEFORE, ENVIRONMENT, family, memory

MEGABYTE: Final = 1 << 20
ORDINARY: Final = {
    "chatty traffic": lambda path, size: chatty(path, size // 300),
    "all recordings": lambda path, size: mixed(path, size // 300),
    "batches of a megabyte": lambda path, size: bulk(path, max(1, size // MEGABYTE)),
    "connections of one heartbeat": lambda path, size: connections(path, size // 800),
}
"""Inputs that nobody made to cost much, by name: functions of a path and a size."""
MOST_SECONDS: Final = 30
MOST_MEGABYTES: Final = 1_500
"""What a run may take before it is ended: then its time is infinite, and its memory is what it had."""
TOLD: Final = 0.4
"""Seconds of CPU from which a quarter of the input is measured too: with less the clock decides."""
COSTLY: Final = 2.0
"""Seconds a megabyte from which more than an eighth of one is measured."""
_LOOKS: Final = 0.03
"""Seconds between looks at the memory."""


class Cost(NamedTuple):
    """What a command took for one input."""

    cpu: float
    """Seconds a megabyte, start-up left out."""
    megabytes: float
    growth: float
    """How many times the time a megabyte is that of a quarter of the input; 0 if that was not measured."""
    shape: str
    failure: str = ""


class _Run(NamedTuple):
    cpu: float
    megabytes: float
    failure: str = ""
    seconds: float = 0.0
    """Of CPU, in all."""


def main(folder: Path) -> None:
    """The table; with `BEFORE`, the earlier version's figures beside ours."""
    versions = [("now", Path.cwd())] + ([("before", Path(BEFORE))] if BEFORE else [])
    inputs = inputs_in(folder, os.environ.get("SHAPES", ""))
    cells = "".join(f" s/MB {when} | of | growth | of | MB {when} | of |" for when, _ in versions)
    print(
        f"\nevery command over {len(inputs)} inputs\n\n| command |{cells}\n|---|{'---|' * 6 * len(versions)}",
        flush=True,
    )
    failures: list[str] = []
    for command, words in COMMANDS.items():
        if os.environ.get("COMMANDS", "") in command:
            rows = [list(_costs(words, inputs, folder, _Starter(version))) for _, version in versions]
            print(f"| {command} |{''.join(map(_cells, rows))}", flush=True)
            for (when, _), row in zip(versions, rows, strict=True):
                failures += [f"{command}, {when}, {each.shape}: {each.failure}" for each in row if each.failure]
                _keep(command, when, row)
    print(f"\nfailed: {len(failures)}\n" + "\n".join(failures))


def inputs_in(folder: Path, chosen: str) -> list[str]:
    """Make the inputs, once for all commands, whole and a quarter, and one that costs next to nothing. Return names."""
    _path(folder, "start", 1).write_bytes(file_of(sequence(lambda talk, n: iter([talk.says(True, request(n))])), 1_000))
    for parts in (1, 4, 8):
        for name, make in SHAPES.items():
            if chosen in name and (not _grows(name) or parts != 8):
                _path(folder, name, parts).write_bytes(make(MEGABYTE // parts, random.Random(7)))
        for name, write in ORDINARY.items():
            if chosen in name and parts != 8:
                write(_path(folder, name, parts), MEGABYTE // parts)
    return [name for name in (*SHAPES, *ORDINARY) if chosen in name]


def _grows(name: str) -> bool:
    """Whether the size of an input is to be varied."""
    return name in ORDINARY or SHAPES[name].__module__ == costly_sessions.__name__


def _path(folder: Path, name: str, parts: int) -> Path:
    return folder / f"{name.replace(' ', '-')}-{parts}"


def _costs(words: Words, inputs: list[str], folder: Path, starter: "_Starter") -> Iterator[Cost]:
    def run(name: str, parts: int) -> _Run:
        path = _path(folder, name, parts)
        clear(folder)
        try:
            found = starter.run(filled(words, path, lambda making: starter.run(making).failure))
        except NotMadeError as error:
            return _Run(0.0, 0.0, str(error))
        read = path.stat().st_size * max(map(words.count, words))  # `diff` may read it twice
        return found._replace(cpu=max(0.0, found.cpu - start) * MEGABYTE / read, seconds=found.cpu)

    start = 0.0
    run("start", 1)  # which imports what is needed
    start = run("start", 1).seconds
    for name in inputs:
        parts = 4 if _grows(name) else 8
        small = None if _grows(name) else run(name, parts)
        if small is not None and (small.failure or small.cpu < COSTLY):
            yield Cost(small.cpu, small.megabytes, 0.0, name, small.failure)
            continue
        whole = run(name, 1)
        is_told = TOLD < whole.cpu < math.inf
        of_part = (small or run(name, parts)).cpu if is_told else 0.0
        yield Cost(whole.cpu, whole.megabytes, whole.cpu / of_part if of_part else 0.0, name, whole.failure)


class _Starter:
    """A process of a version of the program that runs commands (`starter`), one at a time, within bounds."""

    def __init__(self, version: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(Path(starting.__file__).resolve())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, cwd=version,
            env=ENVIRONMENT | {"PYTHONPATH": str(version)},
        )  # fmt: skip

    def run(self, words: Words) -> _Run:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        group = int(self._process.stdout.readline())
        peak, began, ended = 0.0, time.perf_counter(), ""
        while not select.select([self._process.stdout], [], [], _LOOKS)[0]:
            peak = max(peak, sum(map(memory, family(self._process.pid))) / 1024)
            if not ended and peak > MOST_MEGABYTES:
                ended = f"more than {MOST_MEGABYTES} MB"
            elif not ended and time.perf_counter() - began > MOST_SECONDS:
                ended = f"more than {MOST_SECONDS} s"
            else:
                continue
            with contextlib.suppress(ProcessLookupError):  # it ended meanwhile
                os.killpg(group, signal.SIGKILL)
        cpu, failure = json.loads(self._process.stdout.readline())
        return _Run(math.inf if ended or failure else cpu, peak, ended or failure)


def _cells(row: list[Cost]) -> str:
    slowest, largest = max(row), max(row, key=lambda cost: cost.megabytes)
    grown = max(row, key=lambda cost: cost.growth)
    growth = f"{grown.growth:.1f} | {grown.shape}" if grown.growth else "- | -"
    return f" {slowest.cpu:.2f} | {slowest.shape} | {growth} | {largest.megabytes:.0f} | {largest.shape} |"


def _keep(command: str, when: str, row: list[Cost]) -> None:
    if path := os.environ.get("COSTS"):
        with Path(path).open("a") as file:
            for cost in row:
                print(command, when, *cost[::-1][1:], cost.failure.replace("\n", " "), sep="\t", file=file)
