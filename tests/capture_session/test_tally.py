"""Counts of partitions add up to those of the whole capture."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from dissector.capture_session.tally import CaptureTally
from dissector.capture_session.unreachable import Unreachable
from dissector.core.finding import Finding, Severity
from dissector.transport.fragments import INCOMPLETE
from dissector.transport.headers import NOT_TCP
from dissector.transport.reassembly import OUT_OF_WINDOW

counts = st.integers(0, 5)


@given(fragments=counts, wild=st.lists(counts, min_size=1, max_size=4), shuffled=st.lists(counts, max_size=3))
def test_what_all_partitions_see_counts_once_and_the_rest_adds_up(
    fragments: int, wild: list[int], shuffled: list[int]
) -> None:
    partitions = [
        CaptureTally(ignored=Counter({INCOMPLETE: fragments, OUT_OF_WINDOW: each}), other_connections=Counter(TLS=each))
        for each in wild
    ]
    whole = CaptureTally.merged(
        [CaptureTally(ignored=Counter({"GRE": each, NOT_TCP: 7})) for each in shuffled], partitions
    )
    expected = Counter(
        {INCOMPLETE: fragments, OUT_OF_WINDOW: sum(wild), "GRE": sum(shuffled), NOT_TCP: 7 * len(shuffled)}
    )
    assert +whole.ignored == +expected
    assert whole.other_connections.total() == sum(wild)


def test_packets_that_cannot_be_kafka_are_no_problem() -> None:
    assert CaptureTally(ignored=Counter({NOT_TCP: 9})).problems == []


def test_every_count_is_a_problem_and_files_come_first() -> None:
    wrong = Finding("file-damaged", Severity.WARNING, "a.pcap: the file")
    unreachable = Unreachable(Counter({"192.0.2.1:9092": 2}))
    ignored, omitted = Counter({INCOMPLETE: 1_000, NOT_TCP: 9}), Counter({"slow": 5})
    whole = CaptureTally([wrong], ignored, 2, Counter(TLS=3), unreachable, 4, 6, omitted)
    assert [each.code for each in whole.problems] == [
        "file-damaged", "packets-skipped", "connections-forgotten", "non-kafka-connections", "unreachable",
        "early-responses", "findings-omitted", "findings-omitted",
    ]  # fmt: skip
    assert whole.problems[1].message == f"1,000 packets skipped: {INCOMPLETE}"
