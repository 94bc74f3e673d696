"""Sessions that begin, grow, shrink and end are counted as if each Fetch named all of its partitions."""

import random
from pathlib import Path

import pytest

from dissector.analysis.stats.statistics_pass import StatisticsPass
from dissector.capture_session import Capture
from tests.analysis.stats.test_body_counts import expected
from tests.index.test_fetch_sessions import fetch
from tests.traffic import Turn, capture_of, conversation, response


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_any_session_is_counted_fetch_by_fetch(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    turns: list[Turn] = []
    epoch = 0
    for number in range(60):
        epoch = 0 if chance.random() < 0.08 else epoch + 1
        added = {chance.choice("abc"): chance.sample(range(6), chance.randrange(4))} if chance.random() < 0.6 else {}
        lost = {chance.choice("abc"): chance.sample(range(6), 2)} if epoch and chance.random() < 0.5 else {}
        turns += [Turn(True, fetch(number, epoch, added, lost)), Turn(False, response(number, bytes(14)))]
    with Capture([capture_of(tmp_path, conversation(turns))]) as capture:
        list(capture.read())
        counting = StatisticsPass(capture)
        for _ in counting.steps(bodies=17):
            pass
        wanted = expected(list(capture.exchanges()))
    found = counting.statistics
    assert found.partitions.counts
    assert list(found.topics.counts.items()) == list(wanted.topics.counts.items())
    assert list(found.partitions.counts.items()) == list(wanted.partitions.counts.items())
