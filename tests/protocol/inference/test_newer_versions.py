"""Requests and responses of versions newer than the tables."""

import struct

from dissector.protocol.message import read, trace
from dissector.protocol.message_layout import MessageLayout, request_layout, response_layout
from tests.protocol.trees import assert_tiled
from tests.traffic import request, response

METADATA, NEWER = 3, 14
TOPIC = b"\x02" + bytes(16) + b"\x07orders\0"
BODY = TOPIC + b"\x01\0\0"
"""Of Metadata v13: one topic, two booleans, no tagged fields."""
HEADER_TAGS = b"\0"


def findings_by_code(frame: bytes, layout: MessageLayout) -> dict[str, str]:
    """The findings of a frame, by code."""
    assert_tiled(trace(frame, layout))
    return {finding.code: finding.message for finding in read(frame, layout).findings}


def request_frame(body: bytes, version: int = NEWER) -> tuple[bytes, MessageLayout]:
    frame = request(1, api_key=METADATA, version=version, body=HEADER_TAGS + body)
    return frame, request_layout(METADATA, version, frame)


def test_a_newer_request_with_the_layout_of_the_newest_is_read_and_called_a_guess() -> None:
    frame, layout = request_frame(BODY)
    [finding] = findings_by_code(frame, layout).values()
    assert finding == "Metadata v14 is not known to this release, which has v0-13: read as v13, which fits: a guess"
    [topic] = read(frame, layout).body["topics"]
    assert topic["name"] == "orders"


def test_a_field_at_its_end_becomes_trailing_bytes() -> None:
    frame, layout = request_frame(BODY[:-1] + b"\0" + struct.pack(">i", 7))
    assert set(findings_by_code(frame, layout)) == {"unknown-version", "trailing-bytes"}
    assert read(frame, layout).body


def test_another_layout_leaves_the_header_alone() -> None:
    for body in (b"\x02\x07orders\0\x01\0\0", b"what is this", bytes(200), BODY + bytes(100)):
        frame, layout = request_frame(body)
        assert findings_by_code(frame, layout)["unknown-version"].endswith("only the header can be read")
        assert not read(frame, layout).body
        assert read(frame, layout).header["client_id"] == "tests"


def test_without_its_bytes_nothing_is_guessed() -> None:
    assert request_layout(METADATA, NEWER).body is None


def test_a_newer_response_is_read_likewise() -> None:
    broker = struct.pack(">i", 1) + b"\x0akafka.lan" + struct.pack(">i", 9092) + b"\0\0"
    body = bytes(4) + b"\x02" + broker + b"\x08cluster" + struct.pack(">i", 1) + b"\x01" + bytes(2) + b"\0"
    frame = response(1, b"\0" + body)
    layout = response_layout(METADATA, NEWER, frame)
    assert set(findings_by_code(frame, layout)) == {"unknown-version"}
    assert read(frame, layout).body["cluster_id"] == "cluster"
    assert response_layout(METADATA, NEWER, response(1, b"not Kafka's at all")).body is None
