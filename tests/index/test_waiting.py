"""Requests whose response may wait on purpose, at the end of a capture."""

from pathlib import Path

from dissector.capture_session import Capture
from dissector.protocol.schema.api_keys import ApiKey
from tests.traffic import FIN, Packet, Turn, capture_of, conversation, request


def severities(folder: Path, api_key: int, *later: Packet) -> list[tuple[str, str]]:
    packets = conversation([Turn(True, request(1, api_key=api_key, version=0))])
    with Capture([capture_of(folder, [*packets, *later])]) as capture:
        [exchange] = capture.exchanges()
        return [(each.code, each.severity.value) for each in exchange.findings if each.code == "unanswered"]


def test_a_waiting_long_poll_is_a_note_and_another_request_a_warning(tmp_path: Path) -> None:
    assert severities(tmp_path, ApiKey.FETCH) == [("unanswered", "note")]
    assert severities(tmp_path, ApiKey.JOIN_GROUP) == [("unanswered", "note")]
    assert severities(tmp_path, ApiKey.METADATA) == [("unanswered", "note")]


def test_one_whose_connection_was_closed_is_a_warning(tmp_path: Path) -> None:
    closes = Packet(True, 1000 + 1 + len(request(1, api_key=1, version=0)), b"", flags=FIN)
    assert severities(tmp_path, ApiKey.FETCH, closes) == [("unanswered", "note")]
