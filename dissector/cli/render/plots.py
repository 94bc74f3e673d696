"""`kdissect stats --plot`: latency over time, its heat map and bytes by topic, each in a few lines of text."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from dissector.analysis.stats.counts import Statistics
from dissector.analysis.stats.histogram import PERCENTILES, LatencyOverTime
from dissector.cli.render.pages import DIM, NAME, TYPE, Line
from dissector.core.text import bar, duration, size

LEVELS: Final = "▁▂▃▄▅▆▇█"
SHADES: Final = "░▒▓█"
TOPICS: Final = 15
"""Topics that are plotted: those with the most bytes."""
BAR: Final = 40
"""Characters of the longest bar."""
_MARGIN: Final = 13


def plots(over_time: LatencyOverTime | None, statistics: Statistics) -> Iterator[Line]:
    """Draw all plots that have data."""
    if over_time is not None:
        yield from _latency(over_time)
        yield from _heat(over_time)
    yield from _topics(statistics)


def _latency(over_time: LatencyOverTime) -> Iterator[Line]:
    """Draw a row for each percentile; the scale is logarithmic, and the same for all rows."""
    rows = [[slot.percentile(percent) for slot in over_time.slots] for percent in PERCENTILES]
    known = [value for row in rows for value in row if value is not None]
    low, high = max(1, min(known)), max(1, *known)
    yield from _title(f"Latency over time, {_words(low)} {LEVELS[0]} to {_words(high)} {LEVELS[-1]}")
    for percent, row in zip(PERCENTILES, rows, strict=True):
        cells = (" " if value is None else LEVELS[_level(value, low, high)] for value in row)
        yield [(f"p{percent}".rjust(_MARGIN), DIM), (f" {''.join(cells)}", NAME)]
    yield _axis(over_time)


def _level(value: int, low: int, high: int) -> int:
    """Return the level of a value between two others, from 0."""
    if high == low:
        return 0
    share = math.log(max(value, low) / low) / math.log(high / low)
    return min(len(LEVELS) - 1, int(share * len(LEVELS)))


def _heat(over_time: LatencyOverTime) -> Iterator[Line]:
    """Draw a row for each power of two of a latency, darker for more exchanges."""
    counts = [slot.powers() for slot in over_time.slots]
    powers = {power for slot in counts for power in slot}
    most = max(count for slot in counts for count in slot.values())
    yield from _title(f"Exchanges by latency and time, {SHADES[0]} 1 to {SHADES[-1]} {most:,}")
    for power in range(max(powers), min(powers) - 1, -1):
        cells = (_shade(slot.get(power, 0), most) for slot in counts)
        yield [(f"< {_words(1 << power)}".rjust(_MARGIN), DIM), (f" {''.join(cells)}", TYPE)]
    yield _axis(over_time)


def _shade(count: int, most: int) -> str:
    if not count:
        return " "
    share = math.log(count) / math.log(most) if most > 1 else 1
    return SHADES[min(len(SHADES) - 1, int(share * len(SHADES)))]


def _axis(over_time: LatencyOverTime) -> Line:
    """Label the columns."""
    words = f"{_words(over_time.end_ns - over_time.begin_ns)}, {_words(over_time.slot_ns)} a column"
    return [(" " * _MARGIN + f" └ {words}", DIM)]


def _topics(statistics: Statistics) -> Iterator[Line]:
    """Draw a bar for the bytes of records of each topic, produced and fetched."""
    found = sorted(
        ((counts.bytes_out, counts.bytes_in, topic) for topic, counts in statistics.topics.counts.items()),
        key=lambda each: (-each[0] - each[1], each[2]),
    )
    shown: Sequence[tuple[int, int, str]] = [each for each in found if each[0] + each[1]][:TOPICS]
    if not shown:
        return
    most = shown[0][0] + shown[0][1]
    yield from _title("Bytes of records by topic, produced █ and fetched ░")
    for produced_bytes, fetched_bytes, topic in shown:
        total = produced_bytes + fetched_bytes
        whole = bar(total / most, BAR)
        produced = round(len(whole.rstrip()) * produced_bytes / total)
        drawn = whole[:produced] + "".join("░" if cell == "█" else cell for cell in whole[produced:])
        yield [(size(total).rjust(_MARGIN), ""), (f" {drawn} ", NAME), (topic, "")]


def _title(words: str) -> Iterator[Line]:
    yield []
    yield [(words, "bold")]


def _words(nanoseconds: int) -> str:
    if nanoseconds < 1_000:
        return f"{nanoseconds} ns"
    return duration(nanoseconds) if nanoseconds < 100 * 10**9 else f"{nanoseconds // 10**9:,} s"
