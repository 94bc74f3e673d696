"""Frames that no schema fits, and responses in another version than that of the request."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.message import read, trace
from dissector.protocol.message_layout import request_layout, response_layout
from dissector.protocol.schema.loader import apis
from tests.protocol.trees import assert_tiled
from tests.traffic import request, response

FALLBACK = response(3, struct.pack(">hi", 35, 1) + struct.pack(">hhh", 18, 0, 3))


def codes(data: bytes, key: int, version: int) -> set[str]:
    traced = trace(data, request_layout(key, version))
    assert_tiled(traced)
    assert {f.code for f in traced.findings} == {f.code for f in read(data, request_layout(key, version)).findings}
    return {finding.code for finding in traced.findings}


def test_an_api_versions_answer_in_v0_is_read_and_explained() -> None:
    for request_version in (1, 2, 3, 4):
        layout = response_layout(18, request_version, FALLBACK)
        decoded = read(FALLBACK, layout)
        assert decoded.body == {"error_code": 35, "api_keys": [{"api_key": 18, "min_version": 0, "max_version": 3}]}
        assert [finding.code for finding in decoded.findings] == ["version-fallback"]
        assert_tiled(trace(FALLBACK, layout))


def test_error_35_in_the_requested_version_is_no_fallback() -> None:
    body = struct.pack(">h", 35) + b"\x01" + struct.pack(">i", 0) + b"\x00"
    frame = response(3, body)
    decoded = read(frame, response_layout(18, 3, frame))
    assert decoded.body == {"error_code": 35, "api_keys": [], "throttle_time_ms": 0}
    assert not decoded.findings


def test_an_unknown_api_keeps_its_header_and_its_bytes() -> None:
    frame = request(9, api_key=12345, version=3, client_id=b"fork", body=b"what is this")
    assert codes(frame, 12345, 3) == {"unknown-api"}
    assert read(frame, request_layout(12345, 3)).header["client_id"] == "fork"
    rest = trace(frame, request_layout(12345, 3)).tree.find("(rest)")
    assert rest is not None
    assert rest.value == b"what is this"


def test_a_version_from_the_future_says_which_are_known() -> None:
    frame = request(9, api_key=1, version=99)
    assert codes(frame, 1, 99) == {"unknown-version"}
    assert "which has v0-18" in read(frame, request_layout(1, 99)).findings[0].message


def test_bytes_after_the_last_field_are_reported() -> None:
    assert codes(request(1, body=bytes(4) + b"xyz"), 3, 0) == {"trailing-bytes"}


def test_a_frame_that_ends_early_keeps_what_was_read() -> None:
    frame = request(1, body=(2).to_bytes(4, "big") + b"\x00\x06orders\x00\x09cut")
    assert codes(frame, 3, 0) == {"malformed"}
    traced = trace(frame, request_layout(3, 0))
    found = traced.tree.find("body.topics[0].name")
    assert found is not None
    assert found.value == "orders"


def test_the_layout_that_an_older_release_had_for_a_version_is_found_by_its_length() -> None:
    partition = (
        struct.pack(">ihBi", 7, 0, 0, 3) + struct.pack(">q", 1000) + b"\0"
    )  # 4.x has a leader epoch of 4 bytes too
    body = b"\x02" + bytes(16) + b"\x02" + partition + b"\0\0"
    frame = response(1, b"\0" + body)
    layout = response_layout(87, 0, frame)
    decoded, traced = read(frame, layout), trace(frame, layout)
    assert_tiled(traced)
    assert [f.code for f in decoded.findings] == [f.code for f in traced.findings] == ["other-layout"]
    expected = {"partition": 7, "error_code": 0, "error_message": None, "state_epoch": 3, "start_offset": 1000}
    assert decoded.body == {"results": [{"topic_id": "A" * 22, "partitions": [expected]}]}
    offset = traced.tree.find("body.results[0].partitions[0].start_offset")
    assert offset is not None
    assert offset.value == 1000


def test_where_no_layout_fits_the_newest_says_why() -> None:
    frame = response(1, b"\0\x02")
    layout = response_layout(87, 0, frame)
    assert {f.code for f in trace(frame, layout).findings} == {"malformed"}
    assert {f.code for f in read(frame, layout).findings} == {"malformed"}


def test_text_that_is_not_utf_8_survives() -> None:
    frame = request(1, client_id=b"\xff\xfe")
    client_id = read(frame, request_layout(3, 0)).header["client_id"]
    assert isinstance(client_id, str)
    assert client_id.encode("utf-8", "surrogateescape") == b"\xff\xfe"


@given(
    key=st.sampled_from([api.key for api in apis()] + [-1, 9999]),
    version=st.integers(-1, 20),
    junk=st.binary(max_size=99),
)
def test_any_bytes_as_any_message_tile_and_raise_nothing(key: int, version: int, junk: bytes) -> None:
    for layout in (request_layout(key, version), response_layout(key, version, bytes(4) + junk)):
        read(bytes(4) + junk, layout)
        assert_tiled(trace(bytes(4) + junk, layout))
        assert_tiled(trace(junk, layout))
