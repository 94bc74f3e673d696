"""Exports look up the partitions of fetch sessions only where they write them: that takes as long as these are many."""

from pathlib import Path

import pytest

from dissector.capture_session import Capture
from dissector.core.expansion import NEW, RUN
from dissector.export.exporter import export_rows
from dissector.export.formats import ExportFormat, ExportRequest
from dissector.index.fetch_sessions import FetchSessions
from tests.index.test_fetch_sessions import fetch
from tests.traffic import Turn, capture_of, conversation

COUNT = 20


def exported(tmp_path: Path, form: ExportFormat, monkeypatch: pytest.MonkeyPatch, *, has_room: bool) -> tuple[str, int]:
    """What is exported of Fetches of a session that grows, and how many sessions were looked up for it."""
    looked_up: list[int] = []
    find = FetchSessions.partitions

    def watched(self: FetchSessions, row: int, generation: int, *, names_topics: bool) -> object:
        looked_up.append(row)
        return find(self, row, generation, names_topics=names_topics)

    monkeypatch.setattr(FetchSessions, "partitions", watched)
    turns = [Turn(True, fetch(n, n, {f"topic-{n}": [0]}, {})) for n in range(COUNT)]
    with Capture([capture_of(tmp_path, conversation(turns))]) as capture:
        list(capture.read())
        if not has_room:
            RUN.take(0, 1 << 40)
        pieces = export_rows(capture, range(len(capture)), ExportRequest(form), lambda words: None)
        text = b"".join(pieces).decode()
    RUN.begin()
    return text, len(looked_up)


@pytest.mark.parametrize("form", [ExportFormat.TRANSCRIPT, ExportFormat.PYTEST])
def test_formats_without_sessions_look_up_none(
    tmp_path: Path, form: ExportFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, count = exported(tmp_path, form, monkeypatch, has_room=True)
    assert "tests" in text
    assert count == 0


def test_json_looks_up_those_that_it_has_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, count = exported(tmp_path, ExportFormat.JSON, monkeypatch, has_room=True)
    assert text.count('fetch_session"') == COUNT - 1
    assert count == COUNT - 1
    text, count = exported(tmp_path, ExportFormat.JSON, monkeypatch, has_room=False)
    assert 'fetch_session"' not in text
    assert count == 0


def test_what_json_takes_of_the_room_of_a_run_is_about_what_it_writes_of_topics_of_one_partition(
    tmp_path: Path,
) -> None:
    """Their names are most of it."""
    topics = {f"orders-of-customers-{n}": [0] for n in range(200)}
    turns = [Turn(True, fetch(n, n, topics if not n else {}, {})) for n in range(4)]
    with Capture([capture_of(tmp_path, conversation(turns))]) as capture:
        list(capture.read())
        left = int(RUN._numbers[0])
        pieces = export_rows(capture, range(1, len(capture)), ExportRequest(ExportFormat.JSON), lambda words: None)
        written = len(b"".join(pieces)) // 3
        taken = left - int(RUN._numbers[0])
    RUN.begin()
    assert 0.7 * (NEW + 2) * written < taken < 1.5 * (NEW + 2) * written
