"""Tenfold work costs tenfold, no more: packets, connections, frames a connection, the size of a batch.

What starting costs, measured on a small capture, is left out of the ratios; CPU time is compared, which others on the
machine disturb least.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from tools.benchmarks.captures import PCAPS, bulk, chatty, connections, pipelined
from tools.benchmarks.measuring import KDISSECT, head, line

RUNS: Final = 3


class Work(NamedTuple):
    """Something that can be made ten times as large."""

    name: str
    make: Callable[[Path, int], None]
    small: int
    form: tuple[str, str]


FIELDS: Final = ("--fields", "api_key,api_version,correlation_id,latency_ns")
JSON: Final = ("-f", "json")
WORKS: Final = (
    Work("packets, fields", chatty, 300_000, FIELDS),
    Work("packets, JSON", chatty, 30_000, JSON),
    Work("connections, fields", connections, 20_000, FIELDS),
    Work("frames of one connection, fields", pipelined, 40_000, FIELDS),
    Work("records of a batch, JSON", lambda path, size: bulk(path, 40, batch_records=size), 1_000, JSON),
    Work("bulk exchanges, fields", bulk, 100, FIELDS),
)


def main(folder: Path) -> None:
    """Each kind of work, small and tenfold."""
    head("growth")
    small = str(PCAPS / "librdkafka.pcapng")
    nothing = {
        form: line(f"start-up, {form[-1][:4]}", [*KDISSECT, "show", small, *form], RUNS) for form in (FIELDS, JSON)
    }
    for work in WORKS:
        cpu = []
        for size in (work.small, 10 * work.small):
            path = folder / "made"
            work.make(path, size)
            figure = line(f"{work.name}: {size:,}", [*KDISSECT, "show", str(path), *work.form], RUNS)
            cpu.append(figure.cpu - nothing[work.form].cpu)
            path.unlink()
        print(f"  tenfold {work.name}: {cpu[1] / cpu[0]:.1f} times the CPU", flush=True)
