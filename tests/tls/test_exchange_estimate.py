"""How many exchanges are in encrypted connections, by records alone."""

import ssl

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.core.store import Store
from dissector.tls.exchange_estimate import LEAST_FRAGMENT, ExchangeEstimate, records_of_runs
from tests.core.test_stages import Captured, Cuts, cuts_of_packets, output
from tests.tls.sessions import session
from tests.tls.test_stage import TLS12, TLS13, stage_of
from tests.traffic import conversation, exchanges

COUNT = 12
MADE = {version: session(exchanges(COUNT, size=2_000), version) for version in (TLS12, TLS13)}


@pytest.mark.parametrize("version", MADE)
@given(cuts=cuts_of_packets)
def test_exchanges_are_counted_however_a_capture_is_cut(version: ssl.TLSVersion, cuts: Cuts) -> None:
    store = Store()
    chain, tls = stage_of(store, b"")
    output(chain, Captured(conversation(MADE[version].turns), store).batches(cuts))
    found = tls.session(0)
    assert found is not None
    assert found.exchanges == COUNT


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=30), st.integers(0, 30))
def test_each_record_of_the_server_answers_one_of_the_client_that_is_before_it(
    rows: list[tuple[bool, int]], cut: int
) -> None:
    unanswered = answered = 0
    for is_client, count in rows:
        for _ in range(count):
            answered += not is_client and unanswered > 0
            unanswered += 1 if is_client else -1 if unanswered else 0
    estimate = ExchangeEstimate()
    for part in (rows[:cut], rows[cut:]):
        sides, counts = np.array([side for side, _ in part], np.bool_), np.array([n for _, n in part], np.int64)
        estimate.add(sides, counts, has_encrypted_finished=False)
    assert estimate.exchanges == answered


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=8))
def test_any_bytes_are_survived_as_records(runs: list[bytes]) -> None:
    store = Store()
    size = np.array([len(each) for each in runs])
    base = store.add(b"".join(runs) + b"\0")
    found = records_of_runs(store, base + np.cumsum(size) - size, size, np.full(len(size), LEAST_FRAGMENT))
    assert ((found >= 0) & (found <= size)).all()
