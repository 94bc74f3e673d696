"""Every command over inputs of a megabyte that are made to cost much: the worst seconds and the most memory of each.

The inputs are those of `costly_sessions`, or all whose name has the text in `SHAPES`. Start-up is left out of seconds.
"""

import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

from tests.traffic import request
from tools.benchmarks import costly_sessions
from tools.benchmarks.hostile_shapes import SHAPES, file_of, sequence
from tools.benchmarks.measuring import BEFORE, KDISSECT, measured

MEGABYTE: Final = 1 << 20
IN, OUT = "{in}", "{out}"
COMMANDS: Final[dict[str, tuple[str, ...]]] = {
    "show": ("show", IN),
    **{f"show -f {form}": ("show", IN, "-f", form) for form in ("json", "tree", "csv")},
    "show --fields": ("show", IN, "--fields", "api,topic,partition,group"),
    "show -Y topic": ("show", IN, "-Y", "topic == nothing"),
    "show -Y partition": ("show", IN, "-Y", "partition == 999999999"),
    "show -Y record": ("show", IN, "-Y", 'record.value contains "nothing"'),
    "stats": ("stats", IN),
    **{
        f"stats --by {field}": ("stats", IN, "--by", field)
        for field in (
            "api",
            "client",
            "connection",
            "topic",
            "partition",
            "version",
            "error",
            "field",
            "group",
            "finding",
        )
    },
    "stats --plot": ("stats", IN, "--plot"),
    "stats --connections": ("stats", IN, "--connections"),
    "check": ("check", IN),
    "diff": ("diff", IN, IN, "-f", "text"),
    "records": ("records", IN),
    "records -f json": ("records", IN, "-f", "json"),
    "export .pcapng": ("export", IN, "-w", f"{OUT}.pcapng"),
    "export --redact": ("export", IN, "--redact", "-w", f"{OUT}.pcapng"),
    "export transcript": ("export", IN, "-w", f"{OUT}.txt"),
    **{f"export {form}": ("export", IN, "-f", form, "-w", OUT) for form in ("json", "mermaid", "svg", "pytest")},
    "ingest": ("ingest", IN, "--out", f"{OUT}.tables"),
}


class _Cost(NamedTuple):
    cpu: float
    """Seconds a megabyte."""
    megabytes: float
    shape: str


def main(folder: Path) -> None:
    """The table; with `BEFORE`, that of the earlier version as well."""
    for where in (None, *([BEFORE] if BEFORE else ())):
        print(f"\nevery command{', before' if where else ''}\n  {'':22}{'cpu s/MB':>9}{'MB':>7}  in", flush=True)
        start = folder / "start"
        start.write_bytes(file_of(sequence(lambda talk, n: iter([talk.says(True, request(n))])), 1_000))
        chosen = os.environ.get("SHAPES")
        names = [name for name, make in SHAPES.items() if make.__module__ == costly_sessions.__name__]
        names = names if chosen is None else [name for name in SHAPES if chosen in name]
        for command, words in COMMANDS.items():
            base = _cost(words, start, folder, where)
            costs = [_of_shape(words, name, folder, where, base[0]) for name in names]
            slowest, largest = max(costs), max(costs, key=lambda cost: cost.megabytes)
            print(
                f"  {command:22}{slowest.cpu:9.2f}{largest.megabytes:7.0f}  {slowest.shape}; {largest.shape}",
                flush=True,
            )


def _of_shape(words: tuple[str, ...], name: str, folder: Path, where: str | None, start: float) -> _Cost:
    path = folder / "made"
    path.write_bytes(SHAPES[name](MEGABYTE, random.Random(7)))
    try:
        cpu, megabytes = _cost(words, path, folder, where)
    except (SystemExit, subprocess.TimeoutExpired):
        return _Cost(float("inf"), float("inf"), name)
    return _Cost(max(0.0, cpu - start) * MEGABYTE / path.stat().st_size, megabytes, name)


def _cost(words: tuple[str, ...], path: Path, folder: Path, where: str | None) -> tuple[float, float]:
    out = folder / "out"
    shutil.rmtree(f"{out}.tables", ignore_errors=True)
    figure = measured([*KDISSECT, *(word.replace(IN, str(path)).replace(OUT, str(out)) for word in words)], 1, where)
    return figure.cpu, figure.megabytes
