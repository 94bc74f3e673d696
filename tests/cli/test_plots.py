"""The pictures of `stats --plot`: what is drawn is what was counted."""

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dissector.analysis.stats.counts import ExchangeCounts, Statistics
from dissector.analysis.stats.histogram import SLOTS, LatencyOverTime
from dissector.cli.render.plots import LEVELS, SHADES, plots

NANOSECONDS = st.integers(0, 1 << 50)


def drawn(over: LatencyOverTime | None, statistics: Statistics) -> list[str]:
    return ["".join(text for text, _ in line) for line in plots(over, statistics)]


@given(st.lists(st.tuples(NANOSECONDS, NANOSECONDS), min_size=1, max_size=50))
def test_every_exchange_is_in_the_slot_of_its_time(latencies_at: list[tuple[int, int]]) -> None:
    times, latencies = np.array(latencies_at, np.int64).T
    over = LatencyOverTime.of(times, latencies)
    assert over is not None
    assert len(over.slots) == SLOTS
    for time, latency in latencies_at:
        slot = over.slots[(time - over.begin_ns) // over.slot_ns]
        assert slot.least is not None
        assert slot.most is not None
        assert slot.least <= latency <= slot.most
    assert sum(slot.count for slot in over.slots) == len(latencies_at)


@given(st.lists(st.tuples(NANOSECONDS, NANOSECONDS), min_size=1, max_size=50))
def test_columns_are_marked_where_there_is_something(latencies_at: list[tuple[int, int]]) -> None:
    times, latencies = np.array(latencies_at, np.int64).T
    over = LatencyOverTime.of(times, latencies)
    assert over is not None
    lines = drawn(over, Statistics())
    full = [slot.count > 0 for slot in over.slots]
    for line in (line for line in lines if re.match(r" +p\d\d ", line)):
        cells = line[14:].ljust(SLOTS)
        assert [cell in LEVELS for cell in cells] == full
    heat = [line[14:].ljust(SLOTS) for line in lines if line.lstrip().startswith("< ")]
    assert [any(row[at] in SHADES for row in heat) for at in range(SLOTS)] == full
    marks = sum(cell in SHADES for row in heat for cell in row)
    assert marks == sum(len(slot.powers()) for slot in over.slots)


def test_the_slowest_time_stands_highest() -> None:
    over = LatencyOverTime.of(np.array([0, SLOTS * 10]), np.array([1_000_000, 1_000_000_000]))
    rows = [line for line in drawn(over, Statistics()) if "p50" in line]
    assert [rows[0][14], rows[0].rstrip()[-1]] == [LEVELS[0], LEVELS[-1]]


def test_topics_stand_by_their_bytes() -> None:
    statistics = Statistics()
    for topic, out, back in (("small", 10, 0), ("large", 600, 400), ("named alone", 0, 0)):
        statistics.topics.of(topic).merge(ExchangeCounts(1, out, back))
    lines = drawn(None, statistics)
    assert [line.split()[-1] for line in lines[2:]] == ["large", "small"]
    assert lines[2].count("█") == 24
    assert lines[2].count("░") == 16
    assert drawn(None, Statistics()) == []
