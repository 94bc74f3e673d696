"""Logins from before Kafka 1.0, whose tokens have no header: which frames they are, and which response is whose."""

import struct
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from tests.traffic import Turn, capture_of, conversation, request, response

PLAIN = b"\x00\x05PLAIN"
OFFERED = struct.pack(">hi", 0, 1) + PLAIN


def login(correlation_id: int) -> list[Turn]:
    """A login with PLAIN, to which the broker says yes with an empty token, then a request with this correlation id."""
    token = b"\0alice\0alice-secret"
    return [
        Turn(True, request(-1, api_key=17, version=0, body=PLAIN)),
        Turn(False, response(-1, OFFERED)),
        Turn(True, struct.pack(">i", len(token)) + token),
        Turn(False, bytes(4)),
        Turn(True, request(correlation_id, api_key=18, version=0)),
        Turn(False, response(correlation_id, struct.pack(">hi", 0, 0))),
    ]


@pytest.mark.parametrize("correlation_id", [0, 1])
def test_an_empty_token_is_no_response_whatever_the_next_correlation_id(correlation_id: int, tmp_path: Path) -> None:
    with Capture([capture_of(tmp_path, conversation(login(correlation_id)))]) as capture:
        for _ in capture.read():
            pass
        rows = [(row.kind, row.api, row.response_size) for row in (exchange.row for exchange in capture.exchanges())]
        assert not capture.problems
    handshake, api_versions = len(response(-1, OFFERED)), len(response(0, bytes(6)))
    assert rows == [
        ("exchange", "SaslHandshake", handshake),
        ("sasl", "SASL token", None),
        ("sasl", "SASL token", 4),
        ("exchange", "ApiVersions", api_versions),
    ]
