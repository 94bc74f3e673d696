"""The filter of each group of statistics selects exactly the exchanges that the group counts."""

import pytest

from dissector.analysis.stats.breakdowns import BREAKDOWNS
from dissector.filter import parse
from tests.analysis.stats.test_statistics_pass import counted, opened
from tests.conftest import some_of
from tui.overview_model import PAGES, overview_lines, overview_snapshot

WIDER = ("topic", "partition")


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", some_of(["java", "java-transactions", "two-brokers", "librdkafka-acks0"], "java", "librdkafka-acks0")
)
def test_a_filter_selects_as_many_exchanges_as_its_group_counts(name: str) -> None:
    wrong = []
    with opened(name) as capture:
        counts = counted(capture)
        for section, breakdown in BREAKDOWNS.items():
            for line in breakdown(counts):
                rows = sum(len(selected.rows) for selected in capture.select(parse(line.filter)))
                # A filter also sees topics inside subscriptions, and any partition beside any topic of the exchange.
                fits = rows >= line.counts.exchanges if section in WIDER else rows == line.counts.exchanges
                if not fits:
                    wrong.append((section, line.label, line.filter, line.counts.exchanges, rows))
    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_every_line_of_the_overview_has_matching_rows(page: str) -> None:
    with opened("java-transactions") as capture:
        for line in overview_lines(overview_snapshot(counted(capture)), page, 100):
            if line.target is not None:
                assert sum(len(selected.rows) for selected in capture.select(parse(str(line.target)))), line
