"""A producer that sends when responses come batches what it got meanwhile: that is no linger and no difference."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from dissector.analysis.diff import DiffReason
from dissector.analysis.diff.produce_pace import produce_pace
from dissector.analysis.diff.side_profile import SideProfile
from tests.analysis.diff.editing import Lines, compared, edited, entry_texts, of, side
from tests.survey.recorded import text_of
from tools.lab.survey.recording_files import recording_path

pytestmark = [pytest.mark.slow, pytest.mark.long]

STEADY = str(recording_path("kafka-python", "leader-moved"))
"""Three records a second, each in a request of its own."""
MS = 1_000_000


def waiting(before_next_ms: int) -> Callable[[Lines], None]:
    """Let each response to Produce come so long before the next request, whose records came while it was waited for."""

    def edit(lines: Lines) -> None:
        produced = of(lines, "Produce")
        for one, following in pairwise(produced):
            sent_ns, next_ns = one["request"]["time_ns"], following["request"]["time_ns"]
            if one["connection"] != following["connection"]:
                continue
            one["response"]["time_ns"] = next_ns - before_next_ms * MS
            one["latency_ns"] = one["response"]["time_ns"] - sent_ns
            for topic in following["request"]["body"]["topic_data"]:
                for partition in topic["partition_data"]:
                    for batch in partition["records"]["batches"]:
                        first_ms = sent_ns // MS + 10
                        for each in (batch, *batch["records"]):
                            for name in {"base_timestamp", "max_timestamp", "timestamp"} & set(each):
                                each[name] = first_ms

    return edit


def test_who_waits_for_responses_does_not_linger(tmp_path: Path) -> None:
    path = edited(STEADY, tmp_path, waiting(20))
    assert produce_pace(SideProfile(side(path), {}, {})).follows_responses
    assert not produce_pace(SideProfile(side(STEADY), {}, {})).follows_responses
    assert entry_texts(compared(STEADY, path)) == entry_texts(compared(path, STEADY)) == []
    assert "linger" in text_of(STEADY)
    assert "linger" not in text_of(path)


def test_who_sends_long_after_a_response_lingers(tmp_path: Path) -> None:
    path = edited(STEADY, tmp_path, waiting(150))
    assert not produce_pace(SideProfile(side(path), {}, {})).follows_responses
    [entry] = compared(STEADY, path).entries
    assert (entry.path, entry.reason) == ("linger", DiffReason.TIMING)


def overtaken_by(records_ms: int) -> Callable[[Lines], None]:
    """Let the first record of each request come so long after the request before it."""

    def edit(lines: Lines) -> None:
        for one, following in pairwise(of(lines, "Produce")):
            for topic in following["request"]["body"]["topic_data"]:
                for partition in topic["partition_data"]:
                    for batch in partition["records"]["batches"]:
                        batch["base_timestamp"] = one["request"]["time_ns"] // MS + records_ms

    return edit


def test_a_record_may_come_before_the_batch_is_sent_that_has_no_room_for_it(tmp_path: Path) -> None:
    for name, records_ms in (("before", -1), ("while", 0), ("after", 1)):
        (tmp_path / name).mkdir()
        path = edited(STEADY, tmp_path / name, overtaken_by(records_ms))
        batches = SideProfile(side(path), {}, {}).batches
        assert len(batches.overtaken) == (0 if records_ms > 0 else len(batches.waits_ms) - 1)
        assert set(batches.overtaken) <= set(batches.sizes)
