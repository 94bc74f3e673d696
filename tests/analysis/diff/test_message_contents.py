"""Messages whose contents have one number are equal for a comparison, as decoding each of them shows."""

import random
from pathlib import Path

import numpy as np
import pytest

from dissector.analysis.diff.message_contents import UNNUMBERED, MessageContents, content_numbers
from dissector.capture_session import Capture
from dissector.index.fetch_sessions import FetchSessions
from tests.analysis.diff.editing import bundled as path_of
from tests.index.test_fetch_sessions import fetch
from tests.traffic import Turn, capture_of, conversation
from tools.benchmarks.captures import repeated


def check(capture: Capture) -> tuple[int, int]:
    """Hold each message against the first one with its number; return how many messages have a number, and how many
    numbers there are."""
    for _ in capture.read():
        pass
    capture.connections.learn()
    columns = capture.index.numbers(np.arange(len(capture)))
    rows = np.flatnonzero(columns.is_exchange & (columns.request_size >= 0))
    sides = MessageContents(capture, is_request=True), MessageContents(capture, is_request=False)
    messages = numbers = 0
    for contents, found in zip(sides, content_numbers(*sides, rows), strict=True):
        for row, number in zip(rows.tolist(), found.tolist(), strict=True):
            if number != UNNUMBERED:
                assert contents.of(number, row) == contents.of(UNNUMBERED, row)
        messages += int((found != UNNUMBERED).sum())
        numbers += len(set(found.tolist()) - {UNNUMBERED})
    return messages, numbers


@pytest.mark.slow
def test_equal_messages_are_equal_decoded(bundled: Path) -> None:
    with Capture([str(bundled)]) as capture:
        check(capture)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("client", ["java", "librdkafka", "kafka-python", "aiokafka"])
def test_no_change_of_bytes_is_taken_for_none(client: str, tmp_path: Path) -> None:
    chance, path = random.Random(client), tmp_path / "changed.pcap"
    repeated(Path(path_of(f"compare-{client}-1")), path, 1_000)
    data = bytearray(path.read_bytes())
    for _ in range(1_000):
        data[chance.randrange(400, len(data))] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
    path.write_bytes(data)
    with Capture([str(path)]) as capture:
        messages, numbers = check(capture)
    assert messages > 2 * numbers  # many changes are of what no leaf shows


def test_the_partitions_of_a_fetch_session_are_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No leaf of a message has them, and a session that grows by a topic a Fetch makes lists of the square of these."""
    turns = [Turn(True, fetch(number, number, {f"t-{number}": [0]}, {})) for number in range(5)]
    path = capture_of(tmp_path, conversation(turns))
    with Capture([path]) as capture:
        for _ in capture.read():
            pass
        monkeypatch.setattr(FetchSessions, "partitions", lambda *_, **__: pytest.fail("listed"))
        contents = MessageContents(capture, is_request=True)
        assert all(contents.of(UNNUMBERED, row).leaves for row in range(5))
        monkeypatch.undo()
        assert capture.exchange(4).fetched == {f"t-{number}": [0] for number in range(5)}
