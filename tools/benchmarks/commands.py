"""Every command over inputs of a megabyte that are made to cost much: the worst seconds and the most memory of each.

The inputs are those of `costly_sessions`, or all whose name has the text in `SHAPES`; the commands are all, or those
whose title has the text in `COMMANDS`. Start-up is left out of seconds.
"""

import math
import os
import random
import shutil
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
MOST_CPU: Final = 60
"""Seconds. A command that takes more is ended, and its figures are infinite."""


class Cost(NamedTuple):
    """What a command took for one input."""

    cpu: float
    """Seconds a megabyte, start-up left out."""
    megabytes: float
    shape: str
    failure: str = ""


def main(folder: Path) -> None:
    """The table; with `BEFORE`, the earlier version's figures beside ours."""
    versions = [None, BEFORE] if BEFORE else [None]
    heads = "".join(
        f"{f'cpu s/MB{when}':>17}  {'of':36}{f'MB{when}':>10}  of{'':34}" for when in ("", " before")[: len(versions)]
    )
    print(f"\nevery command\n  {'':22}{heads}".rstrip(), flush=True)
    start, inputs = inputs_in(folder, os.environ.get("SHAPES"))
    for command, words in COMMANDS.items():
        if os.environ.get("COMMANDS", "") in command:
            rows = [costs(words, start, inputs, folder / "out", version) for version in versions]
            print(f"  {command:22}{''.join(map(_cells, rows))}".rstrip(), flush=True)
            for failed in (cost for row in rows for cost in row if cost.failure):
                print(f"    {failed.shape}: {failed.failure}", flush=True)


def inputs_in(folder: Path, chosen: str | None) -> tuple[Path, list[Path]]:
    """Make the inputs, once for all commands: one that costs next to nothing, and the shapes."""
    start = folder / "start"
    start.write_bytes(file_of(sequence(lambda talk, n: iter([talk.says(True, request(n))])), 1_000))
    made: list[Path] = []
    for name, make in SHAPES.items():
        if chosen in name if chosen is not None else make.__module__ == costly_sessions.__name__:
            made.append(folder / name)
            made[-1].write_bytes(make(MEGABYTE, random.Random(7)))
    return start, made


def costs(words: tuple[str, ...], start: Path, inputs: list[Path], out: Path, version: str | None) -> list[Cost]:
    """What a command takes for each input, in an earlier version's folder if one is given."""
    base = _cost(words, start, out, version)
    found = [_cost(words, path, out, version) for path in inputs]
    sizes = [path.stat().st_size / MEGABYTE for path in inputs]
    return [
        cost._replace(cpu=max(0.0, cost.cpu - (0 if base.failure else base.cpu)) / size)
        for cost, size in zip(found, sizes, strict=True)
    ]


def _cost(words: tuple[str, ...], path: Path, out: Path, version: str | None) -> Cost:
    shutil.rmtree(f"{out}.tables", ignore_errors=True)
    given = [word.replace(IN, str(path)).replace(OUT, str(out)) for word in words]
    try:
        figure = measured(["sh", "-c", f'ulimit -t {MOST_CPU}; exec "$@"', "sh", *KDISSECT, *given], 1, version)
    except SystemExit as error:
        return Cost(math.inf, math.inf, path.name, str(error).partition(": ")[2])
    return Cost(figure.cpu, figure.megabytes, path.name)


def _cells(row: list[Cost]) -> str:
    slowest, largest = max(row), max(row, key=lambda cost: cost.megabytes)
    return f"{slowest.cpu:17.2f}  {slowest.shape:36}{largest.megabytes:10.0f}  {largest.shape:36}"
