"""Rows as a screen asks for them: in steps, in any cut, while the capture grows."""

from collections.abc import Generator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dissector
from dissector.capture_session import Capture
from dissector.filter import parse, selection
from tests.cases import cases
from tests.conftest import PCAPS, costly
from tests.filter.evaluation import bundled, opened
from tests.traffic import Turn, capture_of, conversation, request, response

FILTERS = ("api == Fetch", "error", "latency > 2ms && topic", "!(api == Fetch)", "records.key || version > 3")
SEGMENT = str(min((PCAPS / "segments").rglob("*.log")))


@pytest.mark.long
@pytest.mark.slow
@costly(3)
@given(st.sampled_from(FILTERS), st.lists(st.integers(0, 250), max_size=4), st.booleans(), st.integers(1, 40))
def test_any_cut_of_a_capture_gives_the_same_rows(text: str, cuts: list[int], eager: bool, stretch: int) -> None:
    wanted = parse(text)
    capture = opened(bundled("java"), SEGMENT)
    with pytest.MonkeyPatch.context() as patch:
        whole = [row for found in capture.select(wanted) for row in found.rows.tolist()]
        patch.setattr(selection, "FIRST_BATCH", stretch)
        patch.setattr(selection, "LARGEST_BATCH", stretch * 3)
        patch.setattr(selection, "DECODED_TOGETHER", stretch)
        patch.setattr(selection, "STEP", -1.0 if eager else 1e9)  # a result for each row, or none before the end
        places = [0, *sorted(min(cut, len(capture)) for cut in cuts), len(capture)]
        rows, upto = [], 0
        for start, stop in pairwise(places):
            for found in capture.select(wanted, start, stop):
                assert upto <= found.upto <= stop
                assert all(upto <= row < found.upto for row in found.rows.tolist())
                rows, upto = rows + found.rows.tolist(), found.upto
            assert upto == stop
        assert rows == whole


def test_rows_behind_the_last_requested_one_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []
    at = Capture.at

    def watched(self: Capture, rows: object) -> object:
        for exchange in at(self, rows):
            looked_at.append(exchange.fields.number)
            yield exchange

    monkeypatch.setattr(selection, "STEP", -1.0)
    capture = opened("librdkafka-pipelined")
    monkeypatch.setattr(Capture, "at", watched)
    steps = capture.select(parse("request.records.size > 0"))
    first = next(found for found in steps if len(found.rows))
    assert isinstance(steps, Generator)
    steps.close()
    assert looked_at
    assert max(looked_at) <= first.upto


@cases(
    ("text", "apis"),
    [
        ("request.max_wait_ms > 0", set()),  # a column of messages
        ("api_key == 3 and topic", set()),
        ("error", set()),  # a column of its own
        ("latency < 0ns && error", set()),
        ("request.records.size > 0", {"Produce"}),
        ("api == Fetch && records.size > 0", {"Fetch"}),
        ("api == Fetch && (max_wait_ms == 1 || response.records.size > 0)", {"Fetch"}),
        ("request.records.size > 0 && request.acks == 77", set()),
    ],
)
def test_only_apis_that_can_fit_are_decoded(text: str, apis: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = set()
    at = Capture.at

    def watched(self: Capture, rows: object) -> object:
        for exchange in at(self, rows):
            looked_at.add(exchange.fields.api)
            yield exchange

    capture = opened("java")
    monkeypatch.setattr(Capture, "at", watched)
    for _ in capture.select(parse(text)):
        pass
    assert looked_at == apis


def test_fields_of_the_row_decode_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "api == Fetch && latency > 1us && client_id contains a && server contains 9092 && size > 1 && time >= 0s"
    wanted = parse(text)
    assert wanted.is_indexed
    capture = opened("java")
    monkeypatch.setattr(Capture, "at", None)
    assert sum(len(found.rows) for found in capture.select(wanted))


def test_a_row_whose_response_comes_later_matches_then(tmp_path: Path) -> None:
    silent, complete = tmp_path / "silent", tmp_path / "complete"
    turns = [Turn(True, request(n)) for n in range(3)]
    silent.mkdir()
    complete.mkdir()
    capture = opened(capture_of(silent, conversation(turns)))
    assert capture.matching(parse("response"), np.arange(3)).tolist() == []
    assert capture.matching(parse("!response"), np.arange(3)).tolist() == [0, 1, 2]
    capture = opened(capture_of(complete, conversation([*turns, Turn(False, response(1))])))
    assert capture.matching(parse("response"), np.array([1, 2])).tolist() == [1]


def test_exchanges_of_a_filter_are_those_that_fit() -> None:
    with dissector.open(PCAPS / "java.pcapng") as capture:
        found = list(capture.exchanges("api == Fetch && latency > 50ms"))
        assert found
        assert all(each.api == "Fetch" and (each.latency_ns or 0) > 50_000_000 for each in found)
        everything = list(capture.exchanges())
    assert len(everything) > len(found)


def test_a_bad_filter_is_reported_before_anything_is_read() -> None:
    with dissector.open(PCAPS / "java.pcapng") as capture:
        with pytest.raises(dissector.FilterError, match="Fetch") as raised:
            capture.exchanges("api == Ftech")
        assert (raised.value.column, raised.value.near) == (7, ("Fetch",))
        assert repr(capture) == f"<capture of {PCAPS / 'java.pcapng'}>", "nothing was read"
