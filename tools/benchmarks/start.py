"""How soon a command is there: `--help`, and a small capture in each form, beside an empty Python and tshark."""

import shutil
import sys
from pathlib import Path
from typing import Final

from tools.benchmarks.captures import PCAPS
from tools.benchmarks.measuring import KDISSECT, head, line

RUNS: Final = 9


def main(folder: Path) -> None:
    """The table."""
    small = str(PCAPS / "librdkafka.pcapng")
    head("start-up, on a small capture")
    line("python -c pass", [sys.executable, "-c", "pass"], RUNS)
    line("kdissect --help", [*KDISSECT, "--help"], RUNS)
    line("kdissect show --fields api_key", [*KDISSECT, "show", small, "--fields", "api_key"], RUNS)
    line("kdissect show", [*KDISSECT, "show", small], RUNS)
    line("kdissect show --format json", [*KDISSECT, "show", small, "-f", "json"], RUNS)
    if shutil.which("tshark"):
        line("tshark", ["tshark", "-r", small], RUNS)
