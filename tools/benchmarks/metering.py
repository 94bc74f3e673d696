"""The work of `--metrics`, over a capture that is read: `python -m tools.benchmarks.metering FILE` counts its rows."""

import sys
from pathlib import Path

from dissector.capture_session import Capture
from dissector.metrics.live_metrics import LiveMetrics
from dissector.metrics.row_meter import RowMeter
from tools.benchmarks.measuring import Figure, line


def count(path: str) -> int:
    """Read a capture, count its rows as a run that is behind does, and return how many there are."""
    with Capture([path]) as capture:
        for _ in capture.read(sort=False):
            pass
        meter = RowMeter(capture, None, LiveMetrics(print))
        meter.has_counted_all()  # from now on it does not rest
        while meter.look():
            pass
        return len(capture)


def beside_stats(path: Path, stats: Figure, runs: int) -> None:
    """Measure it, and print how many rows a second of CPU it and `stats` take, with reading and the start."""
    figure = line("metrics of all rows", [sys.executable, "-m", __spec__.name, str(path)], runs)
    rows = count(str(path))
    print(f"  rows a second of CPU: {rows / figure.cpu:,.0f}, stats {rows / stats.cpu:,.0f}", flush=True)


if __name__ == "__main__":
    count(sys.argv[1])
