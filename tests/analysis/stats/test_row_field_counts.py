"""Rows are counted by a row field in columns as they are counted exchange by exchange, in the same order."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.analysis.stats.column_counts import RowMeasures
from dissector.analysis.stats.counts import CountsByKey
from dissector.analysis.stats.row_field_counts import RowFieldPass, group_keys
from dissector.capture_session import Capture
from dissector.exchange.model import Exchange
from dissector.exchange.row_field import RowField
from dissector.exchange.row_fields import row_fields
from tests.analysis.stats.counting import count
from tests.conftest import PCAPS

NAMES = (
    "java",
    "librdkafka-acks0",
    "java-share",
    "trouble-fetch-session-error",
    "java-sasl-plain",
    "trouble-closed-in-flight",
    "plain-socket",
)
FIELDS = list(row_fields())


@cache
def examined(name: str) -> tuple[Capture, list[Exchange]]:
    capture = Capture([str(PCAPS / f"{name}.pcapng")])
    for _ in (*capture.read(), *capture.findings.examine()):
        pass
    return capture, list(capture.exchanges())


def expected(field: RowField, some: list[Exchange]) -> CountsByKey[str]:
    counts = CountsByKey[str]()
    for exchange in some:
        row = RowMeasures.of(exchange)
        for key in group_keys(field, exchange):
            group = counts.of(key)
            count(group, row.bytes_out, row.bytes_in, row.has_error, row.latency_ns, waits=row.may_wait)
            group.unanswered += row.is_unanswered
    return counts


@pytest.mark.long
@given(st.data(), st.sampled_from(NAMES), st.integers(1, 70))
def test_columns_count_what_exchanges_say(data: st.DataObject, name: str, rows_per_step: int) -> None:
    capture, exchanges = examined(name)
    every = list(range(len(capture)))
    rows = sorted(data.draw(st.sets(st.sampled_from(every)))) if data.draw(st.booleans()) else every
    for field in data.draw(st.lists(st.sampled_from(FIELDS), min_size=1, max_size=8)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("dissector.analysis.stats.row_field_counts.ROWS_PER_STEP", rows_per_step)
            counting = RowFieldPass(capture, field, np.array(rows, np.int64))
            for _ in counting.steps():
                pass
        wanted = expected(field, [exchanges[row] for row in rows])
        assert set(counting.counts.counts) == set(wanted.counts), field.name
        assert counting.counts == wanted, field.name
