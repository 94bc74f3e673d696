"""What a message is said to be that does not fit its own layout: exactly one other, or none."""

from typing import Any

import pytest

import dissector
from dissector.exchange.decoding_findings import MOST_TRIED, ExactReadings
from dissector.protocol.exact_readings import exact_readings
from dissector.protocol.message_layout import request_layout, response_layout
from dissector.protocol.schema.api_keys import ApiKey
from tests.cases import cases

OFFERS = {"api_keys": [{"api_key": n, "min_version": 0, "max_version": 9} for n in (0, 1, 3, 18)]}
FETCHED: dict[str, Any] = {
    "responses": [{"topic": "orders", "partitions": [{"partition_index": 1, "high_watermark": 5, "records": None}]}]
}
METADATA: dict[str, Any] = {
    "brokers": [{"node_id": 1, "host": "broker", "port": 9092}],
    "topics": [{"name": "orders", "partitions": [{"leader_id": 1, "replica_nodes": [1], "isr_nodes": [1]}]}],
}


def of_response(data: bytes, key: int, version: int, size: int | None = None) -> list[str]:
    layout = response_layout(key, version, data)
    return [each.words for each in exact_readings(data, len(data) if size is None else size, layout, key)]


def sized(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def test_a_response_in_the_layout_of_an_older_version() -> None:
    data = dissector.encode_response("Fetch", 0, FETCHED, correlation_id=1)
    assert of_response(data, ApiKey.FETCH, 1) == ["v0"]


@cases(("sent", "asked"), [(1, 5), (8, 4), (12, 3), (2, 9)])
def test_all_versions_of_the_api_are_tried(sent: int, asked: int) -> None:
    data = dissector.encode_response("Metadata", sent, METADATA, correlation_id=1)
    found = of_response(data, ApiKey.METADATA, asked)
    assert f"v{sent}" in found
    assert len(found) < 3  # null in the name of a topic is all that tells v11 from v12


def test_a_request_in_a_newer_version_than_its_header_says() -> None:
    data = bytearray(dissector.encode_request("Metadata", 9, {"topics": [{"name": "orders"}]}, correlation_id=1))
    data[6:8] = (4).to_bytes(2, "big")
    [words] = [each.words for each in exact_readings(
        bytes(data), len(data), request_layout(ApiKey.METADATA, 4), ApiKey.METADATA
    )]  # fmt: skip
    assert words.startswith("v9")


def test_a_response_header_with_tagged_fields_where_there_are_none() -> None:
    data = dissector.encode_response("ApiVersions", 3, OFFERS, correlation_id=1)
    data = sized(data[4:8] + b"\0" + data[8:])
    assert of_response(data, ApiKey.API_VERSIONS, 3) == ["v3 with response header v1"]


def test_a_response_header_without_tagged_fields_where_there_are_some() -> None:
    data = dissector.encode_response("Metadata", 9, METADATA, correlation_id=1)
    data = sized(data[4:8] + data[9:])
    assert of_response(data, ApiKey.METADATA, 9) == ["v9 with response header v0"]


def test_compact_lengths_to_which_one_was_not_added() -> None:
    data = bytearray(dissector.encode_response("ApiVersions", 3, OFFERS, correlation_id=1))
    data[10] -= 1
    assert of_response(bytes(data), ApiKey.API_VERSIONS, 3) == ["v3 with compact lengths to which 1 was not added"]


def test_no_tagged_fields_at_the_end() -> None:
    data = dissector.encode_response("ApiVersions", 3, OFFERS, correlation_id=1)
    assert of_response(sized(data[4:-1]), ApiKey.API_VERSIONS, 3) == ["v3 without tagged fields at its end"]


def test_a_size_that_counts_itself() -> None:
    data = dissector.encode_response("Metadata", 1, METADATA, correlation_id=1)
    assert of_response(data, ApiKey.METADATA, 1, len(data) + 4) == ["v1 with a size that counts itself"]
    with_next = data + b"\0\0\0\x20"
    assert of_response(with_next, ApiKey.METADATA, 1) == ["v1 with a size that counts itself"]


def test_null_where_the_version_has_none() -> None:
    data = bytearray(dissector.encode_response("SaslAuthenticate", 0, {"error_code": 58, "auth_bytes": ""}))
    data[-4:] = b"\xff" * 4
    assert of_response(bytes(data), ApiKey.SASL_AUTHENTICATE, 0) == ["v0 with null where it has none"]


@cases("damage", [b"\xff" * 16, bytes(range(200, 240)), b"HTTP/1.1 400 Bad Request"])
def test_what_is_no_layout_of_the_api_reads_as_none(damage: bytes) -> None:
    data = dissector.encode_response("Metadata", 4, METADATA, correlation_id=1)
    assert not of_response(sized(data[4:20] + damage), ApiKey.METADATA, 4)


def test_a_text_that_is_none_does_not_fit() -> None:
    """A short body fits many layouts by chance: texts and error codes must be such."""
    data = dissector.encode_response("Metadata", 1, METADATA, correlation_id=1).replace(
        b"broker", b"\x01\x02\x03\x04\x05\x06"
    )
    assert not of_response(data, ApiKey.METADATA, 5)


def test_the_search_of_a_connection_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    searched = []

    def search(*_: object) -> tuple[()]:
        searched.append(1)
        return ()

    monkeypatch.setattr("dissector.exchange.decoding_findings.exact_readings", search)
    layout = response_layout(ApiKey.METADATA, 4, b"")
    readings = ExactReadings()
    for _ in range(MOST_TRIED + 5):
        assert readings.finding((1, 3, 4, False), sized(b"\xff" * 20), 24, layout) is None
    assert len(searched) == MOST_TRIED
    readings.finding((2, 3, 4, False), sized(b"\xff" * 20), 24, layout)
    assert len(searched) == MOST_TRIED + 1


def test_what_fit_the_last_message_is_tried_first(monkeypatch: pytest.MonkeyPatch) -> None:
    data = dissector.encode_response("Fetch", 0, FETCHED, correlation_id=1)
    layout, readings = response_layout(ApiKey.FETCH, 1, data), ExactReadings()
    first = readings.finding((1, 1, 1, False), data, len(data), layout)
    monkeypatch.setattr("dissector.exchange.decoding_findings.exact_readings", lambda *_: pytest.fail("searched"))
    assert first is not None
    assert readings.finding((1, 1, 1, False), data, len(data), layout) == first
