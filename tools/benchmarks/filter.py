"""Filters: rows of a million exchanges on columns of the index and in bodies; and `show -Y` beside tshark's.

tshark prints a line for each packet that matches, we print one for each exchange.
"""

import shutil
import statistics
import time
from pathlib import Path
from typing import Final

from dissector.capture_session import Capture
from dissector.filter import complete, parse
from tools.benchmarks.captures import PCAPS, chatty, mixed
from tools.benchmarks.measuring import KDISSECT, RUNS, head, line, ratio
from tools.benchmarks.speed import CHATTY_PACKETS, MIXED_PACKETS
from tools.benchmarks.start import RUNS as STARTS

PACKETS: Final = 2_210_000
"""A million exchanges."""
OF_ROWS: Final = (
    "api == Fetch && latency > 50ms",
    'client_id contains "rdk" && size > 1k',
    'server contains ":9092" || time > 3s',
    "!response",
)
OF_BODIES: Final = ("request.max_wait_ms >= 100", "request.acks == ALL && latency > 1ms", "error")
TSHARK: Final = (
    ("api_key == 1 && corr > 5", "kafka.api_key == 1 && kafka.correlation_id > 5"),
    ("request.max_wait_ms >= 100", "kafka.max_wait_time >= 100"),
    ("request.max_wait_ms == 77777", "kafka.max_wait_time == 77777"),
    ("error", "kafka.error > 0"),
)
"""Fields of headers, numbers in bodies (one that no message has), errors anywhere."""
TYPED: Final = ("a", "api == Fetch && request.", "response.topics.", "error == UNK", "records.")


def main(folder: Path) -> None:
    """All of it."""
    path = folder / "million.pcap"
    chatty(path, PACKETS)
    rows(path)
    path = folder / "chatty.pcap"
    chatty(path, CHATTY_PACKETS)
    beside_tshark("chatty: 100,000 small exchanges", path)
    path = folder / "mixed.pcap"
    mixed(path, MIXED_PACKETS)
    beside_tshark(f"mixed: {MIXED_PACKETS:,} packets of all bundled captures of Ethernet", path)
    start()
    typing()


def rows(path: Path) -> None:
    """In one process: seconds to the first row that fits and to the end, and the longest step."""
    with Capture([str(path)]) as capture:
        for _ in capture.read():
            pass
        capture.connections.learn()
        print(
            f"\nselect, {len(capture):,} rows\n  {'':46}{'rows':>9}{'first s':>9}{'all s':>9}{'cpu s':>9}{'step s':>9}"
        )
        for text in (*OF_ROWS, *OF_BODIES):
            found = [_selected(capture, text) for _ in range(RUNS if text in OF_ROWS else 1)]
            count, *index_columns = (statistics.median(column) for column in zip(*found, strict=True))
            print(f"  {text:46}{count:9,.0f}" + "".join(f"{figure:9.3f}" for figure in index_columns), flush=True)


def _selected(capture: Capture, text: str) -> tuple[int, float, float, float, float]:
    wanted = parse(text)
    count, first, longest = 0, 0.0, 0.0
    begun = before = time.perf_counter()
    cpu = time.process_time()
    for found in capture.select(wanted):
        now = time.perf_counter()
        count += len(found.rows)
        first = first or (now - begun if count else 0.0)
        longest, before = max(longest, now - before), now
    return count, first, time.perf_counter() - begun, time.process_time() - cpu, longest


def beside_tshark(title: str, path: Path) -> None:
    """The same questions to both; one whose answer is fields of the index, too."""
    head(f"show -Y, {title}, {path.stat().st_size / 1e6:.0f} MB")
    for ours, theirs in TSHARK:
        show = [*KDISSECT, "show", str(path), "-Y", ours]
        lines = line(f"kdissect -Y '{ours}'", show)
        fields = line("  the same, --fields number", [*show, "--fields", "number"])
        if shutil.which("tshark"):
            peer = line(f"tshark -Y '{theirs}'", ["tshark", "-r", str(path), "-Y", theirs])
            ratio("lines", lines, peer)
            ratio("--fields number", fields, peer)


def start() -> None:
    """What a filter adds to the start of a command."""
    small = str(PCAPS / "librdkafka.pcapng")
    head("start-up, on a small capture")
    line("kdissect show", [*KDISSECT, "show", small], STARTS)
    line("kdissect show -Y 'api == Fetch'", [*KDISSECT, "show", small, "-Y", "api == Fetch"], STARTS)


def typing() -> None:
    """Milliseconds that completion takes at a key, from the second time on."""
    print("\ncompletion")
    for text in TYPED:
        complete(text, len(text))
        begun = time.perf_counter()
        count = len(complete(text, len(text)))
        print(f"  {text:46}{1000 * (time.perf_counter() - begun):9.1f} ms, {count} candidates", flush=True)
