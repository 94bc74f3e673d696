"""Texts in places of compressed formats that no decoder shows (names, comments, skippable frames, what stands behind
the last frame) are not left in what redaction makes of a capture."""

from pathlib import Path

import pytest

import dissector
from dissector.protocol.schema.field_enums import CompressionType
from tests.cases import cases
from tests.traffic import Turn, capture_of, conversation
from tools.fuzz.hidden_texts import HIDDEN_IN, batch_with, message_with, produce_with
from tools.fuzz.redactions import left_of_names

NAME = b"WxZvqRtKpLmNwXcVbQ"
OF_MESSAGES = [place for place, (codec, _) in HIDDEN_IN.items() if codec != CompressionType.ZSTD]
REFUSED = "bytes behind"


def left(frame: bytes, folder: Path) -> str:
    """What is left of the name, in the file, in what is compressed in it, and in the texts that are made of it."""
    answer = {"responses": [{"name": "orders", "partition_responses": [{"index": 0, "base_offset": 1}]}]}
    turns = [Turn(True, frame), Turn(False, dissector.encode_response("Produce", 7, answer, correlation_id=1))]
    path = capture_of(folder, conversation(turns))
    assert NAME[:4] in Path(path).read_bytes()
    return left_of_names(Path(path), [NAME], texts=True)


@pytest.mark.long
@cases("place", HIDDEN_IN)
def test_a_batch_loses_what_is_hidden_in_its_section(place: str, tmp_path: Path) -> None:
    frame = produce_with(batch_with(place, NAME))
    refused = [each.code for each in dissector.decode_request(frame).traced.findings]
    assert refused == (["bad-compression"] if REFUSED in place else [])
    assert left(frame, tmp_path) == ""


@pytest.mark.long
@cases("place", OF_MESSAGES)
def test_a_wrapper_loses_what_is_hidden_in_its_value(place: str, tmp_path: Path) -> None:
    frame = produce_with(message_with(place, NAME), version=2)
    assert left(frame, tmp_path) == ""


def test_a_section_that_is_left_as_it_was_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("frames", "plain_frames"):
        monkeypatch.setattr(
            f"dissector.export.redaction.{module}.compress_to_size", lambda _codec, _plain, original, _free: original
        )
    for place in HIDDEN_IN:
        if REFUSED not in place:
            assert left(produce_with(batch_with(place, NAME)), tmp_path) != ""
