"""The JSON lines of many rows at once are those of each row decoded."""

from pathlib import Path

import numpy as np
import pytest

from dissector.bulk import decompressed_sections, json_bodies, json_fields
from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.exchange.to_json import json_line
from dissector.protocol.kernel import json_messages
from tests.bulk.test_info_texts import opened
from tests.conftest import BUNDLED, PCAPS
from tests.index.test_fetch_sessions import fetch
from tests.traffic import Turn, capture_of, conversation, response

CAREFUL = b"careful\n"


def check(capture: Capture) -> int:
    """Hold the lines against decoded rows; return how many there are."""
    rows = range(len(capture))
    lines = printed(capture, rows).splitlines(keepends=True)
    for line, exchange in zip(lines, capture.at(rows), strict=True):
        assert line in (CAREFUL, json_line(exchange))
    return len(lines) - lines.count(CAREFUL)


def printed(capture: Capture, rows: range | Int64) -> bytes:
    """The lines, in place of some `CAREFUL`."""
    texts = capture.messages.json_lines(rows)
    return b"".join(CAREFUL if part is None else bytes(part) for text in texts for part in text.parts())


@pytest.mark.parametrize("show_secrets", [False, True])
@pytest.mark.parametrize("path", BUNDLED)
def test_lines_are_those_of_decoded_rows(path: Path, show_secrets: bool) -> None:
    capture = opened(path, show_secrets=show_secrets)
    for _ in capture.findings.examine():
        pass
    check(capture)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("java-streams", 0.99),
        ("librdkafka-pipelined", 0.98),
        ("franz-go", 0.8),
        ("compare-java-1", 0.99),
        ("java-admin", 0.95),
        ("librdkafka-acks0", 0.95),
    ],
)
def test_the_kernel_writes_most_rows_of_clients(name: str, least: float) -> None:
    capture = opened(PCAPS / f"{name}.pcapng")
    assert check(capture) > least * len(capture)


@pytest.mark.long
def test_little_memory_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_messages, "FEW_BYTES", 1 << 8)
    monkeypatch.setattr(json_messages, "MOST_BYTES", 1 << 14)
    monkeypatch.setattr(json_messages, "HOLES_TOGETHER", 4)
    monkeypatch.setattr(json_fields, "MOST_BYTES", 1 << 10)
    monkeypatch.setattr(decompressed_sections, "MOST_BYTES", 1 << 10)
    monkeypatch.setattr(json_bodies, "MOST_FRAME_BYTES", 1 << 12)
    monkeypatch.setattr(json_bodies, "JOINED", 1 << 10)
    monkeypatch.setattr(json_bodies, "LARGE_PART", 1 << 8)
    assert check(opened(PCAPS / "librdkafka-pipelined.pcapng"))
    assert check(opened(PCAPS / "java-streams.pcapng"))


def a_session_that_changes(fetches: int) -> list[Turn]:
    """A Fetch of a session, and others of which two in three add a partition, with an empty response each."""
    turns = [Turn(True, fetch(0, 0, {"a": list(range(300))}, {})), Turn(False, response(0, bytes(14)))]
    for number in range(1, fetches):
        added = {"a": [1_000 + number]} if number % 3 else {}
        turns += [Turn(True, fetch(number, number, added, {})), Turn(False, response(number, bytes(14)))]
    return turns


def test_partitions_of_sessions_are_in_memory_a_part_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = opened(Path(capture_of(tmp_path, conversation(a_session_that_changes(30)))))
    rows = range(len(capture))
    [whole] = capture.messages.json_lines(rows)
    monkeypatch.setattr(json_bodies, "MOST_SESSIONS", 4_000)
    parts = list(capture.messages.json_lines(rows))
    texts = [b"".join(part.pieces) for part in parts]
    assert len(parts) > 6
    assert max(map(len, texts[1:])) < 4_000 * 3  # the first one has the whole session
    assert sum(len(part.ends) for part in parts) == len(rows)
    assert b"".join(texts) == b"".join(whole.pieces)
    assert check(capture) == len(rows)
    packed = [_packed(capture), _packed(capture)]
    monkeypatch.undo()
    assert packed == [_packed(capture)] * 2
    assert len(packed[0]) == len(rows)


def _packed(capture: Capture) -> list[tuple[int, bytes]]:
    """Rows for tables, and their requests."""
    found: list[tuple[int, bytes]] = []
    for each in capture.messages.packed_exchanges(range(len(capture))):
        data, sizes = each.bodies.requests
        ends = zip(np.cumsum(sizes).tolist(), sizes.tolist(), strict=True)
        texts = [bytes(data[end - size : end]) for end, size in ends]
        found += zip(each.rows.tolist(), texts, strict=True)
    return found


def test_programs_are_made_before_rows_are_read() -> None:
    json_bodies._program.cache_clear()
    capture = opened(PCAPS / "java-admin.pcapng")
    assert printed(capture, range(0)) == b""
    made = json_bodies._program.cache_info().misses
    assert check(capture)
    assert json_bodies._program.cache_info().misses == made > 0


def test_a_capture_without_frames_has_no_lines() -> None:
    assert check(opened(PCAPS / "mistakes" / "curl.pcapng")) == 0


@pytest.mark.long
def test_a_line_does_not_depend_on_which_rows_are_asked_for() -> None:
    capture = opened(PCAPS / "librdkafka.pcapng")
    single = [printed(capture, range(row, row + 1)) for row in range(len(capture))]
    assert b"".join(single) == printed(capture, range(len(capture)))
