"""Statistics of tables are those of the captures: every line of every table."""

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from dissector.analysis.stats.breakdowns import BREAKDOWNS
from dissector.analysis.stats.counts import Statistics
from dissector.analysis.stats.field_bytes import SAMPLE_SIZE
from dissector.analysis.stats.histogram import LatencyOverTime
from dissector.analysis.stats.statistics_pass import StatisticsPass
from dissector.capture_session import Capture
from dissector.filter import parse
from tests.conftest import some_of
from tests.pipeline.ingested import CAPTURES

if TYPE_CHECKING:
    from dissector.tables.reader import Tables


def counted(captures: list[str], text: str | None) -> Statistics:
    with Capture(captures) as capture:
        for step in (capture.read(), capture.findings.examine()):
            for _ in step:
                pass
        chosen = None if text is None else [row for some in capture.select(parse(text)) for row in some.rows.tolist()]
        counting = StatisticsPass(capture, None if chosen is None else np.array(chosen, np.int64))
        for _ in counting.steps():
            pass
        return counting.statistics


def of_fields(statistics: Statistics) -> dict[str, object]:
    """Bytes of fields where all messages were traced: samples of more differ."""
    return {
        json.dumps(kind): (sample.messages, sample.bytes, sample.paths)
        for kind, sample in statistics.fields.kinds.items()
        if sample.messages <= SAMPLE_SIZE
    }


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("text", some_of([None, "api == Fetch", 'topic contains "o" && latency < 100ms'], None))
def test_every_line_is_that_of_the_captures(tables: "Tables", text: str | None) -> None:
    from dissector.tables.exchange_statistics import statistics

    fitting = None if text is None else parse(text)
    found, wanted = statistics(tables, fitting), counted(CAPTURES, text)
    assert found.kinds == wanted.kinds
    assert found.total == wanted.total
    for name, lines in BREAKDOWNS.items():
        assert [(each.label, each.counts) for each in lines(found)] == [
            (each.label, each.counts) for each in lines(wanted)
        ], name
        assert lines(wanted) or (text and name == "error"), name
    assert found.parts.ranked() == wanted.parts.ranked()
    assert of_fields(found) == of_fields(wanted)


@pytest.mark.long
def test_nothing_that_fits_is_nothing_counted(tables: "Tables") -> None:
    from dissector.tables.exchange_statistics import statistics

    found = statistics(tables, parse("latency > 1h"), bodies=False)
    assert found == Statistics()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("text", some_of([None, "api == Fetch"], None))
def test_latency_over_time_is_that_of_the_captures(tables: "Tables", text: str | None) -> None:
    from dissector.tables.exchange_statistics import over_time

    with Capture(CAPTURES) as capture:
        for _ in capture.read():
            pass
        rows = np.arange(len(capture))
        if text is not None:
            rows = np.concatenate([some.rows for some in capture.select(parse(text))])
        index_columns = capture.index.numbers(rows)
        complete = index_columns.where(index_columns.has_latency)
        wanted = LatencyOverTime.of(complete.request_time_ns, complete.latency_ns)
    found = over_time(tables, None if text is None else parse(text))
    assert found == wanted
    assert found is not None
    assert sum(slot.count for slot in found.slots) == len(complete.kind)
