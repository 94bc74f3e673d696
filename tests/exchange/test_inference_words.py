"""The words for an inferred response."""

import struct
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from dissector.exchange.inference_words import OrphanFrame, certainty, findings, layout_of_verdict
from dissector.protocol.embedded.context import EMPTY_CONTEXT
from dissector.protocol.inference.evidence import NOTHING
from dissector.protocol.inference.verdict import UNDECIDED, infer_response
from dissector.protocol.message_layout import UNKNOWN_RESPONSE
from tests.index.inferred_rows import FEW, conversations, rewritten
from tests.traffic import Turn, capture_of, conversation, response

BROKER = struct.pack(">iih9sih", 1, 9, 9, b"kafka.lan", 9092, -1)
NO_TOPICS = response(1, bytes(4) + BROKER + struct.pack(">h7sii", 7, b"cluster", 9, 0))
"""Of Metadata v3 to v7: the versions differ in what they say of topics, and there is none."""


def words_of(frame: bytes) -> str:
    [finding] = findings(infer_response(frame, len(frame), len(frame), NOTHING))
    return finding.message


def test_an_api_can_be_sure_and_its_version_not() -> None:
    assert certainty(infer_response(NO_TOPICS, len(NO_TOPICS), len(NO_TOPICS), NOTHING)) == "sure of the API"
    words = words_of(NO_TOPICS)
    assert words.startswith("read as Metadata v6 by inference: sure of the API; v5 has the same layout; else ")
    assert "Metadata v7 (" in words
    assert "Metadata v3-4 (" in words


def test_versions_of_the_same_layout_are_named() -> None:
    assert "read as Heartbeat v3 by inference: a guess; v1-2 have the same layout; else " in words_of(
        response(5, bytes(6))
    )


def test_a_frame_that_fits_nothing_is_a_response_without_a_request() -> None:
    assert findings(UNDECIDED) == []
    frame = OrphanFrame(bytes(12), 12, 12, EMPTY_CONTEXT)
    assert layout_of_verdict(UNDECIDED, frame) == UNKNOWN_RESPONSE


@pytest.mark.slow
def test_a_lone_response_cut_off_by_the_snap_length_is_recognized_by_its_beginning(tmp_path: Path) -> None:
    whole = max((e for e in conversations(FEW)[5] if e.row.api == "Metadata"), key=lambda e: e.row.response_size or 0)
    assert whole.response is not None
    packets = conversation([Turn(False, whole.response.data)])
    with Capture([capture_of(tmp_path, packets, snaplen=54 + 90)]) as capture:
        [lone] = capture.exchanges()
    assert lone.row.api == "Metadata?"
    assert {finding.code for finding in lone.findings} >= {"orphan", "inferred", "incomplete-frame"}


@pytest.mark.slow
def test_a_lone_response_is_read_as_its_exchange_was(tmp_path: Path) -> None:
    exchanges = conversations(FEW)[0]
    bodies = {each.response.data: each.response.body for each in exchanges if each.response is not None}
    with Capture([rewritten(tmp_path, exchanges, set())], show_secrets=True) as capture:
        lone = [each.response for each in capture.exchanges() if each.row.info.startswith("by inference, sure")]
    same = [message for message in lone if message is not None and message.body == bodies[message.data]]
    assert len(same) > 0.9 * len(lone) > 10
