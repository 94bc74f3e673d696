"""`kdissect` and tshark over the same captures, in turn.

The work: print API key, version, correlation id (and for us latency) of every exchange; and everything as JSON.
tshark's Kafka dissector knows about half of the APIs and fewer versions, so it decodes less of the same bytes. It has
no latency to print, and no statistics of Kafka: `stats` is compared with an earlier version, if `BEFORE` names one.
Nor has it rules of the protocol; nearest to `check` are its expert infos: what it could not read, requests it missed.
"""

import shutil
from pathlib import Path
from typing import Final

from tools.benchmarks import metering
from tools.benchmarks.captures import bulk, chatty, mixed
from tools.benchmarks.measuring import KDISSECT, RUNS, before, head, line, ratio

CHATTY_PACKETS: Final = 221_000
"""100,000 exchanges."""
MIXED_PACKETS: Final = 400_000
BULK_EXCHANGES: Final = {400: RUNS, 2_000: 1}
"""And how often each is measured. Of the smaller one half of our time is the start."""
FIELDS: Final = ("api_key", "api_version", "correlation_id")
TSHARK_FIELDS: Final = ("-T", "fields", *(word for name in FIELDS for word in ("-e", f"kafka.{name}")))


def main(folder: Path) -> None:
    """All kinds of captures."""
    path = folder / "chatty.pcap"
    chatty(path, CHATTY_PACKETS)
    compare(f"chatty: {CHATTY_PACKETS:,} packets, 100,000 small exchanges", path)
    path = folder / "mixed.pcap"
    mixed(path, MIXED_PACKETS)
    compare(f"mixed: {MIXED_PACKETS:,} packets of all bundled captures of Ethernet", path)
    path = folder / "bulk.pcapng"
    for exchanges, runs in BULK_EXCHANGES.items():
        bulk(path, exchanges)
        compare(f"bulk: {exchanges:,} exchanges with a record batch of a megabyte", path, runs)


def compare(title: str, path: Path, runs: int = RUNS) -> None:
    """Both programs on one capture, with the ratios."""
    head(f"{title}, {path.stat().st_size / 1e6:.0f} MB")
    show = [*KDISSECT, "show", str(path)]
    fields = line("kdissect show --fields (with latency)", [*show, "--fields", ",".join((*FIELDS, "latency_ns"))], runs)
    rows = line("kdissect show (rows, with info)", show, runs)
    everything = line("kdissect show --format json", [*show, "-f", "json"], runs)
    stats = [*KDISSECT, "stats", str(path)]
    counted = line("kdissect stats", stats, runs)
    before("kdissect stats", stats, counted)
    metering.beside_stats(path, counted, runs)
    check = line("kdissect check", [*KDISSECT, "check", str(path)], 1)
    if shutil.which("tshark") is None:
        print("  tshark is not installed: no ratios")
        return
    tshark = ["tshark", "-r", str(path)]
    named = line("tshark -T fields", [*tshark, "-Y", "kafka", *TSHARK_FIELDS], runs)
    as_json = line("tshark -T json", [*tshark, "-Y", "kafka", "-T", "json"], runs)
    expert = line("tshark -z expert", [*tshark, "-q", "-z", "expert,kafka"], 1)
    for words, ours, peer in (
        ("fields", fields, named),
        ("rows", rows, named),
        ("json", everything, as_json),
        ("check", check, expert),
    ):
        ratio(words, ours, peer)
