"""The IO graph: every row in one slot, sums and percentiles as counted one by one."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.analysis.io_graph import IoGraph, bounds, graph_rows, mark_errors, most_frequent
from dissector.analysis.stats.histogram import RELATIVE_ERROR
from dissector.capture_session import Capture
from dissector.filter import cell_expression, parse
from dissector.protocol.schema.api_groups import WAITING
from tests.cases import cases
from tests.conftest import PCAPS


@cache
def opened(name: str) -> Capture:
    capture = Capture([str(PCAPS / f"{name}.pcapng")])
    for _ in capture.read():
        pass
    return capture


NAMES = ("java", "trouble-rebalance-loop")


@pytest.mark.long
@given(st.sampled_from(NAMES), st.integers(1, 90), st.floats(0, 1), st.floats(0, 1))
def test_slots_have_what_their_exchanges_have(name: str, slots: int, one: float, other: float) -> None:
    capture = opened(name)
    found = graph_rows(capture, np.arange(len(capture)))
    for _ in mark_errors(capture, found):
        pass
    whole = bounds(found)
    assert whole is not None
    begin, end = sorted(whole[0] + int(share * (whole[1] - whole[0])) for share in (one, other))
    graph = IoGraph.of(found, begin, end, slots)
    p50, p99 = graph.percentile(50), graph.percentile(99)
    is_error = parse("error")
    exchanges = [each for each in capture.exchanges() if begin <= each.fields.time_ns <= end]
    assert graph.exchanges.sum() == len(exchanges)
    for slot in range(slots):
        low, high = graph.span(range(slot, slot + 1))
        there = [each for each in exchanges if low <= each.fields.time_ns < high]
        assert graph.exchanges[slot] == len(there)
        sizes = [(each.fields.request_size or 0) + (each.fields.response_size or 0) for each in there]
        assert graph.bytes[slot] == sum(sizes)
        assert graph.errors[slot] == sum(is_error.matches(each) for each in there)
        took = sorted(
            each.fields.latency_ns
            for each in there
            if each.fields.latency_ns is not None and each.api_key not in WAITING
        )
        for percent, value in ((50, p50[slot]), (99, p99[slot])):
            if not took:
                assert value == -1
            else:
                exact = took[max(1, -(-percent * len(took) // 100)) - 1]
                assert abs(value - exact) <= exact * RELATIVE_ERROR + 1


def test_long_polls_count_only_where_there_is_nothing_else() -> None:
    capture = opened("java")
    rows = np.concatenate([step.rows for step in capture.select(parse("api == Fetch"))])
    found = graph_rows(capture, rows)
    assert (found.bucket >= 0).any()
    both = graph_rows(capture, np.arange(len(capture)))
    assert (both.bucket[np.isin(both.rows, rows)] == -1).all()


@cases("name", ["api", "client_id", "client", "topic"])
def test_offered_values_are_counted_as_filters_find_them(name: str) -> None:
    capture = opened("java")
    offered = most_frequent(capture, name, np.arange(len(capture)), 5)
    assert offered
    for value, count in offered:
        rows = np.concatenate([step.rows for step in capture.select(parse(cell_expression(name, value)))])
        assert len(rows) == count


def test_an_empty_choice_is_no_graph() -> None:
    found = graph_rows(opened("java"), np.zeros(0, np.int64))
    assert bounds(found) is None
    assert list(mark_errors(opened("java"), found)) == []
