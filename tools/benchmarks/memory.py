"""Peak memory over 100 MB and 1 GB of chatty traffic, of all processes together; time and throughput beside it."""

from pathlib import Path
from typing import Final

from tools.benchmarks.captures import chatty
from tools.benchmarks.measuring import KDISSECT, head, line

PACKETS_A_MEGABYTE: Final = 3_420
SIZES: Final = (100, 1_000)
"""Megabytes."""


def main(folder: Path) -> None:
    """Both works, both sizes."""
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
