"""What could not be read, counted in parts, is told as of the whole."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from dissector.capture_session.tally import CaptureTally
from dissector.core.finding import Finding, Severity
from dissector.transport.next_header import NOT_TCP
from dissector.transport.reassembly import OUT_OF_WINDOW
from dissector.transport.slow_path import INCOMPLETE

counts = st.integers(0, 5)


@given(alike=counts, wild=st.lists(counts, min_size=1, max_size=4), dealt=st.lists(counts, max_size=3))
def test_what_all_parts_see_counts_once_and_the_rest_adds_up(alike: int, wild: list[int], dealt: list[int]) -> None:
    parts = [CaptureTally(ignored=Counter({INCOMPLETE: alike, OUT_OF_WINDOW: each}), strangers=each) for each in wild]
    whole = CaptureTally.together([CaptureTally(ignored=Counter({"GRE": each, NOT_TCP: 7})) for each in dealt], parts)
    expected = Counter({INCOMPLETE: alike, OUT_OF_WINDOW: sum(wild), "GRE": sum(dealt), NOT_TCP: 7 * len(dealt)})
    assert +whole.ignored == +expected
    assert whole.strangers == sum(wild)


def test_nothing_left_out_has_no_line_nor_has_what_cannot_hide_kafka() -> None:
    assert CaptureTally(ignored=Counter({NOT_TCP: 9})).problems == []


def test_every_count_has_its_line_and_files_come_first() -> None:
    wrong = Finding("file-damaged", Severity.WARNING, "a.pcap: the file")
    whole = CaptureTally([wrong], Counter({INCOMPLETE: 1_000, NOT_TCP: 9}), 2, 3, 4, Counter({"slow": 5}))
    assert [each.code for each in whole.problems] == [
        "file-damaged", "packets-left-out", "connections-forgotten", "strangers", "findings-left-out",
        "findings-left-out",
    ]  # fmt: skip
    assert whole.problems[1].message == f"1,000 packets were not looked into: {INCOMPLETE} 1,000"
