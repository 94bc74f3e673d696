"""What bodies say is counted in columns as it is counted exchange by exchange, and keys come in the same order."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.analysis.stats import body_counts, statistics_pass
from dissector.analysis.stats.counts import ApiError, Statistics
from dissector.analysis.stats.exchange_contents import contents_of, record_bytes_by_topic, record_sizes
from dissector.analysis.stats.field_bytes import MessageKind, paths_of
from dissector.analysis.stats.statistics_pass import StatisticsPass
from dissector.capture_session import Capture
from dissector.exchange.model import Exchange
from dissector.exchange.row_fields import EXCHANGE
from dissector.protocol.schema.api_groups import WAITING
from tests.analysis.stats.counting import count
from tests.filter.evaluation import exchanges, opened

NAMES = (
    "java", "java-classic", "java-transactions", "java-share", "librdkafka-acks0", "kafka-python-as-0.9",
    "plain-socket-message-sets", "trouble-fetch-session-error",
)  # fmt: skip


def expected(some: list[Exchange]) -> Statistics:
    """Topics, partitions and errors of exchanges, one after the other."""
    statistics = Statistics()
    for exchange in some:
        row = exchange.fields
        if row.kind != EXCHANGE:
            continue
        waits = exchange.api_key in WAITING
        key = exchange.api_key if exchange.request is not None and exchange.api_key is not None else -1
        for code in contents_of(exchange).codes:
            sizes = row.request_size or 0, row.response_size or 0
            count(statistics.errors.of(ApiError(key, code)), *sizes, True, row.latency_ns, waits=waits)
        for about, (out, back, error) in record_bytes_by_topic(exchange).items():
            counts = statistics.topics.of(about) if isinstance(about, str) else statistics.partitions.of(about)
            count(counts, out, back, error, row.latency_ns, waits=waits)
    return statistics


@pytest.mark.long
@given(st.data(), st.sampled_from(NAMES), st.integers(1, 70), st.integers(0, 9))
def test_columns_count_what_exchanges_say(data: st.DataObject, name: str, rows_per_step: int, known: int) -> None:
    capture = opened(name)
    every = list(range(len(capture)))
    rows = sorted(data.draw(st.sets(st.sampled_from(every)))) if data.draw(st.booleans()) else every
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics_pass, "BODIES_PER_STEP", rows_per_step)
        patch.setattr(body_counts, "MOST_CONTENTS", known)
        counting = StatisticsPass(capture, np.array(rows, np.int64))
        for _ in counting.steps():
            pass
    found, wanted = counting.statistics, expected([exchanges(name)[row] for row in rows])
    for mine, other in (
        (found.topics, wanted.topics), (found.partitions, wanted.partitions), (found.errors, wanted.errors),
    ):  # fmt: skip
        assert list(mine.counts.items()) == list(other.counts.items())


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_fields_of_messages_with_equal_layout_are_measured_once(name: str) -> None:
    counting = StatisticsPass(opened(name))
    for _ in counting.steps():
        pass
    wanted: dict[MessageKind, dict[str, int]] = {}
    for exchange in exchanges(name):
        for side in ("request", "response"):
            message = getattr(exchange, side)
            if exchange.fields.kind == EXCHANGE and exchange.request is not None and message is not None:
                kind = MessageKind(exchange.api_key or 0, exchange.fields.version or 0, side)
                sums = wanted.setdefault(kind, {})
                for path, count in paths_of(message).items():
                    sums[path] = sums.get(path, 0) + count
    assert {kind: sample.paths for kind, sample in counting.statistics.fields.kinds.items()} == wanted


def test_an_exchange_is_decoded_once_for_those_that_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    at, decoded = Capture.at, []

    def watched(self: Capture, rows: object) -> object:
        for exchange in at(self, rows):
            decoded.append(exchange.fields.number)
            yield exchange

    monkeypatch.setattr(Capture, "at", watched)
    capture = opened("librdkafka-pipelined")
    for _ in StatisticsPass(capture).steps():
        pass
    assert 0 < len(decoded) < len(capture) / 2


def test_records_are_those_of_their_topic_and_partition() -> None:
    produces = list(opened("java").exchanges("api == Produce"))
    assert produces
    for exchange in produces:
        assert exchange.request is not None
        topics: list[Any] = exchange.request.body["topic_data"]
        sizes = [len(part["records"]) for topic in topics for part in topic["partition_data"]]
        assert record_sizes(exchange.request) == sizes
        found = record_bytes_by_topic(exchange)
        assert sum(out for about, (out, _, _) in found.items() if isinstance(about, str)) == sum(sizes) > 0
