"""Which messages are plain: those that the kernel reads as the decoder does."""

import struct
from pathlib import Path

import numpy as np

from dissector.capture_session import Capture
from dissector.exchange.body_columns import JOINED_TOGETHER, BodyColumns
from tests.conftest import PCAPS
from tests.traffic import Turn, capture_of, conversation, request, response

UNSUPPORTED_VERSION = 35


def api_versions(error: int) -> bytes:
    """A body that fits version 1, and with that error version 0 with bytes behind it."""
    return struct.pack(">hihhhi", error, 1, 18, 0, 3, 5)


def test_a_response_of_api_versions_that_may_have_the_body_of_version_0_is_not_plain(tmp_path: Path) -> None:
    asked = [request(number, api_key=18, version=1, body=b"") for number in (1, 2)]
    answered = [response(1, api_versions(0)), response(2, api_versions(UNSUPPORTED_VERSION))]
    turns = [turn for one, other in zip(asked, answered, strict=True) for turn in (Turn(True, one), Turn(False, other))]
    with Capture([capture_of(tmp_path, conversation(turns))]) as capture:
        exchanges = list(capture.exchanges())
        assert [each.response.body.get("throttle_time_ms") for each in exchanges if each.response] == [5, None]
        bodies = BodyColumns(capture.pipeline.indexer, capture.pipeline.store, show_secrets=False)
        [plain] = bodies.messages(np.arange(len(capture)), is_request=False)
        assert plain.at.tolist() == [0]
        assert [each.fields.number for each in capture.exchanges("response.throttle_time_ms == 5")] == [1]


def test_a_message_that_claims_more_bytes_than_it_has_parts_no_others() -> None:
    with Capture([str(PCAPS / "trouble-oversized-request.pcapng")]) as capture:
        for _ in capture.read():
            pass
        table, frames = capture.pipeline.indexer.table, capture.pipeline.indexer.frames
        assert frames.size.values[table.request.values[:]].max() > JOINED_TOGETHER
        bodies = BodyColumns(capture.pipeline.indexer, capture.pipeline.store, show_secrets=False)
        rows = np.tile(np.arange(len(capture)), 9)
        kinds = [(each.api_key, each.layout) for each in bodies.messages(rows, is_request=True)]
        assert len(kinds) == len(set(kinds))
