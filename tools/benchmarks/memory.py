"""Peak memory of all processes together: over 100 MB and 1 GB of chatty traffic, with time and throughput beside it;
and of every command over ordinary captures of 90 MB. `COMMANDS=` and `SHAPES=` choose those whose name has the text.
"""

import math
import os
import subprocess
from pathlib import Path
from typing import Final

from tools.benchmarks.captures import chatty
from tools.benchmarks.command_forms import COMMANDS, NotMadeError, Words, clear, filled
from tools.benchmarks.commands import MEGABYTE, ORDINARY
from tools.benchmarks.measuring import KDISSECT, head, line, measured

PACKETS_A_MEGABYTE: Final = 3_420
SIZES: Final = (100, 1_000)
"""Megabytes."""
ORDINARY_SIZE: Final = 90
"""Megabytes of the captures that all commands read."""


def main(folder: Path) -> None:
    """Both works, both sizes; all commands."""
    head("memory, chatty")
    for size in SIZES:
        path = folder / "chatty.pcap"
        chatty(path, size * PACKETS_A_MEGABYTE)
        show = [*KDISSECT, "show", str(path)]
        fields = line(f"fields, {size:,} MB", [*show, "--fields", "api_key,api_version,correlation_id,latency_ns"], 1)
        everything = line(f"JSON, {size:,} MB", [*show, "-f", "json"], 1)
        print(
            f"  {size / fields.seconds:,.0f} MB/s as fields, {size / everything.seconds:,.1f} MB/s as JSON", flush=True
        )
        path.unlink()
    _commands(folder)


def _commands(folder: Path) -> None:
    """Print a table of megabytes, by command and capture."""
    names = [name for name in ORDINARY if os.environ.get("SHAPES", "") in name]
    paths = [folder / f"{number}.pcap" for number, _ in enumerate(names)]
    for name, path in zip(names, paths, strict=True):
        ORDINARY[name](path, ORDINARY_SIZE * MEGABYTE)
    print(f"\n| MB | {' | '.join(names)} |\n|---|{'---|' * len(names)}", flush=True)
    for command, words in COMMANDS.items():
        if os.environ.get("COMMANDS", "") in command:
            row = (f"{_megabytes(words, path, folder):.0f}" for path in paths)
            print(f"| {command} | {' | '.join(row)} |", flush=True)


def _megabytes(words: Words, path: Path, folder: Path) -> float:
    try:
        return measured([*KDISSECT, *filled(words, path, _made)], 1).megabytes
    except NotMadeError:
        return math.nan
    finally:
        clear(folder)


def _made(words: Words) -> str:
    run = subprocess.run([*KDISSECT, *words], capture_output=True, text=True)
    return run.stderr if run.returncode else ""
