"""Which messages are plain: those that the kernel reads as the decoder does."""

import random
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dissector
from dissector.bulk.body_columns import READ_TOGETHER, BodyColumns
from dissector.capture_session import Capture
from dissector.protocol.codec.plan import plan
from dissector.protocol.codec.program import message_program
from dissector.protocol.embedded.context import EMPTY_CONTEXT
from dissector.protocol.kernel.shredding import Arena, FrameMemory
from dissector.protocol.masking import is_public, mask_secrets
from dissector.protocol.message_layout import PREFIX, MessageLayout, request_layout, response_layout
from dissector.protocol.schema.loader import alternatives, apis
from dissector.protocol.schema.model import Api
from tests.analysis.conformance.steps import batch
from tests.cases import cases
from tests.conftest import PCAPS
from tests.protocol.random_messages import make
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
        assert frames.size.values[table.request.values[:]].max() > READ_TOGETHER
        bodies = BodyColumns(capture.pipeline.indexer, capture.pipeline.store, show_secrets=False)
        rows = np.tile(np.arange(len(capture)), 9)
        kinds = [(each.api_key, each.layout) for each in bodies.messages(rows, is_request=True)]
        assert len(kinds) == len(set(kinds))


def test_messages_come_in_parts_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them, in the same order within a layout."""
    with Capture([str(PCAPS / "java.pcapng")]) as capture:
        for _ in capture.read():
            pass
        rows = np.arange(len(capture))

        def found(rows: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> tuple[int, dict[object, list[int]]]:
            bodies = BodyColumns(capture.pipeline.indexer, capture.pipeline.store, show_secrets=False)
            parts, by_layout = 0, dict[object, list[int]]()
            for each in bodies.messages(rows, is_request=True):
                parts += 1
                by_layout.setdefault((each.api_key, each.layout), []).extend(each.at.tolist())
            return parts, by_layout

        together, expected = found(rows)
        assert together == len(expected)
        monkeypatch.setattr("dissector.bulk.body_columns.READ_TOGETHER", 1 << 12)
        parts, by_layout = found(rows)
        assert parts > together
        assert by_layout == expected


NEAR_SECRETS = replace(EMPTY_CONTEXT, may_have_secrets=True, may_cut_secrets=True, has_secrets=True)
UNKNOWN_TAG = b"\x01\x8f\x4e\x06secret"


def framed(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def frames_of(layout: MessageLayout, chance: random.Random) -> list[bytes]:
    """Messages of random values with a client id that is text: as they are, with bytes behind, cut, and with texts that
    are not UTF-8. Their headers have tagged fields that no schema has, or not."""
    assert layout.header is not None
    assert layout.body is not None
    _, body = make(plan(layout.body, layout.body_version), chance)
    is_request = layout.header == "RequestHeader"
    client_id = b"\0\x04made" if is_request and layout.header_version else b""
    is_flexible = layout.header_version == (2 if is_request else 1)
    header = bytes(8 if is_request else 4) + client_id
    found = []
    for tags in (b"\0", UNKNOWN_TAG) if is_flexible else (b"",):
        content = header + tags + body
        found += [content, content + b"\0", content[:-1], content.replace(b"orders", b"or\xff\xc0rs")]
    return [framed(each) for each in found]


def are_read(layout: MessageLayout, frames: list[bytes]) -> list[bool]:
    """Which of them the kernel reads to their end."""
    assert layout.header is not None
    assert layout.body is not None
    program = message_program(layout.header, layout.header_version, layout.body, layout.body_version)
    sizes = np.array([len(each) for each in frames], np.int64)
    memory = FrameMemory.of_buffer(np.frombuffer(b"".join(frames), np.uint8), np.cumsum(sizes) - sizes, sizes)
    [part] = Arena().shred(memory, program, program.wanted(), PREFIX)
    return (part.errors == 0).tolist()


@pytest.mark.long
@pytest.mark.slow
@cases("known", apis(), ids=lambda known: known.name)
def test_what_the_kernel_reads_is_not_masked_where_secrets_may_be(known: Api) -> None:
    for version in known.versions:
        for layout in (request_layout(known.key, version), response_layout(known.key, version, b"")):
            if not is_public(layout, EMPTY_CONTEXT) or alternatives(layout.body or "", version):
                continue
            frames = frames_of(layout, random.Random(f"{layout.body} {version}"))
            shown = [mask_secrets(each, len(each), layout, len(each), NEAR_SECRETS) for each in frames]
            assert are_read(layout, frames) == [each.layout == layout for each in shown]


def with_unknown_tag(frame: bytes, at: int) -> bytes:
    """A frame whose header ends with an empty list of tagged fields, with one in it."""
    assert frame[at] == 0
    return framed(frame[4:at] + UNKNOWN_TAG + frame[at + 1 :])


@pytest.mark.parametrize("is_odd", [False, True])
def test_no_field_and_no_record_is_found_of_a_message_that_is_masked_whole(tmp_path: Path, is_odd: bool) -> None:
    body = {"acks": -1, "topic_data": [{"name": "t", "partition_data": [{"records": {"batches": [batch()]}}]}]}
    produce = dissector.encode_request("Produce", 9, body, client_id="made", correlation_id=2)
    login = dissector.encode_request("SaslAuthenticate", 2, {"auth_bytes": b"\0alice\0hunter2"}, correlation_id=1)
    sent = with_unknown_tag(produce, 18) if is_odd else produce
    path = capture_of(tmp_path, conversation([Turn(True, login), Turn(True, sent)]))
    with Capture([path]) as capture:
        found = [each.fields.number for each in capture.exchanges("request.acks == ALL")]
        [exchange] = [each for each in capture.exchanges() if each.fields.api == "Produce"]
        assert exchange.request is not None
        assert (exchange.request.layout.masked_from is not None) == is_odd
        assert found == ([] if is_odd else [exchange.fields.number])
    with dissector.open(path) as opened:
        assert [record.value for record in opened.records()] == ([] if is_odd else [b"v", b"v"])


def test_no_field_and_no_record_is_found_of_a_masked_response_from_the_metadata_log(tmp_path: Path) -> None:
    """Damage hit the name in the response, so that only the request says what it is."""
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}
    fetched = {"batches": [batch()]}
    asked = {"topics": [{"topic": "__cluster_metadata", "partitions": [partition]}]}
    turns = []
    for number, topic in ((1, "plain"), (2, "\x01odd")):
        answer = {"throttle_time_ms": 7, "responses": [{"topic": topic, "partitions": [{"records": fetched}]}]}
        turns.append(Turn(True, dissector.encode_request("Fetch", 12, asked, correlation_id=number)))
        turns.append(Turn(False, dissector.encode_response("Fetch", 12, answer, correlation_id=number)))
    path = capture_of(tmp_path, conversation(turns))
    with Capture([path]) as capture:
        responses = [each.response for each in capture.exchanges() if each.response is not None]
        assert [each.layout.masked_from is None for each in responses] == [True, False]
        assert [each.fields.number for each in capture.exchanges("response.throttle_time_ms == 7")] == [1]
    with dissector.open(path) as opened:
        assert list(opened.records()) == []
