"""Two captures of 100,000 exchanges compared: real traffic that repeats itself, and made traffic of which no two
exchanges are alike to the byte. A side alone, printed as columns, is what reading it costs."""

from pathlib import Path
from typing import Final

from dissector.capture_session import Capture
from tools.benchmarks.captures import PCAPS, moving, repeated
from tools.benchmarks.measuring import KDISSECT, head, line

EXCHANGES: Final = 100_000
CLIENTS: Final = ("compare-java-1", "compare-librdkafka-1")


def main(folder: Path) -> None:
    """Both kinds of traffic."""
    sides = [folder / f"{client}.pcap" for client in CLIENTS]
    for client, path in zip(CLIENTS, sides, strict=True):
        _repeated(PCAPS / f"{client}.pcapng", path)
    head(f"diff, {EXCHANGES:,} exchanges a side")
    _compared("the same again", sides)
    sides = [folder / f"moving-{wait}.pcapng" for wait in (100, 500)]
    for wait, path in zip((100, 500), sides, strict=True):
        moving(path, EXCHANGES, max_wait_ms=wait)
    _compared("moving on", sides)


def _repeated(source: Path, target: Path) -> None:
    """A capture again and again, until there are so many exchanges."""
    with Capture([str(source)]) as capture:
        exchanges = sum(1 for _ in capture.exchanges())
        repeated(source, target, -(-EXCHANGES // exchanges) * capture.packets)


def _compared(title: str, sides: list[Path]) -> None:
    line(f"{title}: read one side", [*KDISSECT, "show", str(sides[0]), "--fields", "api_key"])
    line(f"{title}: diff", [*KDISSECT, "diff", *map(str, sides), "--format", "text"])
