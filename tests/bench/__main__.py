"""`python -m tests.bench`: `kdissect` and tshark over the same captures, in turn; medians, ratios, peak memory. Then
`readers`: our compiled readers beside those of two Python libraries.

The work: print API key, version, correlation id (and for us latency) of every exchange; and everything as JSON.
tshark's Kafka dissector knows about half of the APIs and fewer versions, so it decodes less of the same bytes.
"""

import resource
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from dissector.capture import open_capture
from dissector.store import Store
from tests.bench import readers

ROOT = Path(__file__).parents[2]
RUNS = 3
PACKETS = 100_000
INDEX = """
import sys
from dissector.capture_file import Capture
with Capture(sys.argv[1:]) as capture:
    for _ in capture.read():
        pass
    print(len(capture))
"""
MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""
TSHARK = ("tshark", "-r")
FIELDS = ("-T", "fields", "-e", "kafka.api_key", "-e", "kafka.api_version", "-e", "kafka.correlation_id")


class Figure(NamedTuple):
    """Medians of some runs of one command."""

    seconds: float
    cpu: float
    megabytes: float


def measured(command: list[str]) -> Figure:
    """Run a command several times, its output thrown away."""
    seconds, cpu, memory = [], [], []
    for _ in range(RUNS):
        start = time.perf_counter()
        watched = [sys.executable, "-c", MEASURE, *command]
        out = subprocess.run(watched, capture_output=True, text=True, check=True).stdout
        seconds.append(time.perf_counter() - start)
        used, peak = out.split()
        cpu.append(float(used))
        memory.append(int(peak) / 1024)
    return Figure(statistics.median(seconds), statistics.median(cpu), max(memory))


def repeated(source: Path, target: Path, packets: int) -> None:
    """A capture of `packets` packets: `source` again and again, on other ports and at later times."""
    store = Store()
    [batch] = open_capture(str(source), store).batches()
    rows = list(zip(batch.offset.tolist(), batch.captured.tolist(), batch.time_ns.tolist(), strict=True))
    span = rows[-1][2] - rows[0][2] + 1_000_000
    with target.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, int(batch.link_type[0])))
        written = 0
        while written < packets:
            for offset, size, time_ns in rows:
                raw = bytearray(batch.data[offset : offset + size].tobytes())
                _move(raw, written // len(rows))
                whole, rest = divmod(time_ns + span * (written // len(rows)), 1_000_000_000)
                file.write(struct.pack("<IIII", whole, rest, size, size) + raw)
                written += 1


def _move(raw: bytearray, turn: int) -> None:
    """Another client address each turn: 127.0.x.y, in an Ethernet frame with IPv4 and no options."""
    for at in (26, 30):
        port = int.from_bytes(raw[34:36] if at == 26 else raw[36:38], "big")
        if port != 9092:
            raw[at : at + 4] = bytes((127, 1 + turn // 65536, turn // 256 % 256, turn % 256))


def report(name: str, path: Path) -> None:
    """Both programs on one capture."""
    print(f"\n{name}: {path.stat().st_size / 1e6:.1f} MB")
    print(f"  {'':32}{'wall s':>9}{'cpu s':>9}{'MB':>8}")
    python = sys.executable
    ours = {
        "kdissect index (no output)": [python, "-c", INDEX, str(path)],
        "kdissect show (rows, with info)": [python, "-m", "dissector.cli.main", "show", str(path)],
        "kdissect show --format json": [python, "-m", "dissector.cli.main", "show", str(path), "-f", "json"],
    }
    figures = {}
    for title, command in ours.items():
        figures[title] = line(title, command)
    if shutil.which("tshark") is None:
        print("  tshark is not installed: no ratios")
        return
    fields = line("tshark -T fields", [*TSHARK, str(path), *FIELDS])
    everything = line("tshark -T json", [*TSHARK, str(path), "-T", "json"])
    for title, peer in zip(ours, (fields, fields, everything), strict=True):
        figure = figures[title]
        print(f"  {title}: {peer.seconds / figure.seconds:.1f} times as fast, {peer.cpu / figure.cpu:.1f} by CPU, "
              f"{figure.megabytes / peer.megabytes:.2f} of the memory of its peer")  # fmt: skip


def line(title: str, command: list[str]) -> Figure:
    figure = measured(command)
    print(f"  {title:32}{figure.seconds:9.2f}{figure.cpu:9.2f}{figure.megabytes:8.0f}", flush=True)
    return figure


def main() -> None:
    largest = max((ROOT / "pcaps").glob("*.pcapng"), key=lambda path: path.stat().st_size)
    report(f"the largest bundled capture, {largest.name}", largest)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "repeated.pcap"
        repeated(largest, path, PACKETS)
        report(f"the same again and again, {PACKETS:,} packets", path)
    readers.main()
    print(f"\nmedian of {RUNS} runs; this process used {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


if __name__ == "__main__":
    main()
