"""What a comparison keeps as columns is what counting one by one gives."""

from array import array
from itertools import groupby
from statistics import median

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dissector.analysis.diff import ExchangePair, PairVerdict
from dissector.analysis.diff.connection_roles import ConnectionRoles
from dissector.analysis.diff.exchange_pairs import (
    ExchangePairs,
    PairColumns,
    RowStretches,
    WorkflowSteps,
    whole_stretch,
)
from dissector.analysis.diff.kept_numbers import median_of
from dissector.protocol.schema.api_keys import ApiKey

VERDICTS = (PairVerdict.SAME, PairVerdict.DIFFERENT)
sizes = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from(VERDICTS)), max_size=6)


def stretches(numbers: list[int]) -> tuple[RowStretches, list[list[int]]]:
    """Stretches of so many rows, and their rows one by one. Every second row is of another stretch."""
    ends = np.cumsum(np.array(numbers, np.int64))
    starts = ends - np.array(numbers, np.int64)
    rows = np.arange(sum(numbers), dtype=np.int64) * 2
    return RowStretches(rows, starts, ends - starts), [
        rows[first:end].tolist() for first, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]


def one_by_one(a: list[int], b: list[int], verdict: PairVerdict) -> list[ExchangePair]:
    both = min(len(a), len(b))
    more = PairVerdict.MORE if both else None
    return [
        *(ExchangePair(i, j, verdict) for i, j in zip(a, b, strict=False)),
        *(ExchangePair(i, None, more or PairVerdict.ONLY_A) for i in a[both:]),
        *(ExchangePair(None, j, more or PairVerdict.ONLY_B) for j in b[both:]),
    ]


@given(sizes, st.floats(0.25, 4))
def test_pairs_are_those_of_each_stretch_in_the_order_of_rows(
    drawn: list[tuple[int, int, PairVerdict]], share: float
) -> None:
    a, rows_a = stretches([each[0] for each in drawn])
    b, rows_b = stretches([each[1] for each in drawn])
    verdicts = [each[2] for each in drawn]
    columns = PairColumns()
    columns.add_stretches(a, b, verdicts)
    pairs = columns.listed(share)
    expected = [pair for each in zip(rows_a, rows_b, verdicts, strict=True) for pair in one_by_one(*each)]
    expected.sort(key=lambda pair: (pair.a, 0) if pair.a is not None else ((pair.b or 0) * share, 1))
    assert list(pairs) == expected
    assert [pairs[n] for n in range(len(pairs))] == expected
    assert list(pairs[1:]) == expected[1:]
    for wanted in expected:
        assert list(pairs.with_rows(wanted.a, wanted.b)) == [
            pair for pair in expected
            if (wanted.a is not None and pair.a == wanted.a) or (wanted.b is not None and pair.b == wanted.b)
        ]  # fmt: skip


def test_no_exchanges_make_no_pairs() -> None:
    columns = PairColumns()
    columns.add_stretches(whole_stretch(array("q")), whole_stretch(array("q")), [PairVerdict.SAME])
    columns.add_alone(stretches([])[0], PairVerdict.ONLY_A)
    pairs: ExchangePairs = columns.listed(0)
    assert (len(pairs), list(pairs), list(pairs.with_rows(0, None))) == (0, [], [])


@given(st.lists(st.lists(st.integers(0, 2), max_size=5), max_size=4))
def test_a_step_is_what_follows_with_one_key_however_rows_arrive(parts: list[list[int]]) -> None:
    found, keys = WorkflowSteps(), [key for part in parts for key in part]
    first = 0
    for part in parts:
        found.add(np.arange(first, first + len(part)), np.array(part, np.int64))
        first += len(part)
    steps = found.steps()
    groups = [(key, [row for row, _ in rows]) for key, rows in groupby(enumerate(keys), key=lambda each: each[1])]
    assert steps.keys.tolist() == [key for key, _ in groups]
    assert [
        steps.rows.where(np.array([n])).first(steps.rows.sizes[n : n + 1]).tolist() for n in range(len(groups))
    ] == [rows for _, rows in groups]


@given(st.lists(st.integers(-(1 << 52), 1 << 52), min_size=1))
def test_a_median_of_a_column_is_that_of_its_numbers(numbers: list[int]) -> None:
    assert median_of(array("q", numbers)) == median(numbers)


def test_a_role_is_that_of_all_apis_of_a_connection_however_rows_arrive() -> None:
    carried = {
        1: (ApiKey.METADATA, ApiKey.PRODUCE),
        2: (ApiKey.INIT_PRODUCER_ID,),
        3: (ApiKey.INIT_PRODUCER_ID, ApiKey.METADATA),
        4: (ApiKey.LIST_OFFSETS, ApiKey.METADATA),
        5: (ApiKey.LIST_OFFSETS, ApiKey.FETCH, ApiKey.PRODUCE),
        6: (ApiKey.CREATE_TOPICS,),
        7: (ApiKey.API_VERSIONS,),
        1 << 40: (ApiKey.HEARTBEAT, ApiKey.FIND_COORDINATOR),
    }
    rows = [(connection, int(key)) for connection, keys in carried.items() for key in keys]
    expected = {"produce": 1, "producer id": 1, "bootstrap": 2, "offset lookup": 1, "fetch + produce": 1, "admin": 1,
                "group coordinator": 1}  # fmt: skip
    for batches in ([rows], [[row] for row in rows], [rows[::-1], rows]):
        roles = ConnectionRoles()
        for batch in batches:
            connections, keys = (np.array(column, np.int64) for column in zip(*batch, strict=True))
            roles.add_exchanges(connections, keys, np.zeros(len(batch), np.int64), lambda _: None)
        assert dict(roles.connections) == expected
    assert dict(ConnectionRoles().connections) == {}
