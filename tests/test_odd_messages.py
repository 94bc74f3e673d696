"""What rows, findings and the Python API say of messages that are odd, and what they do not say."""

from pathlib import Path

import pytest

import dissector
from tests.cases import cases
from tests.traffic import Turn, capture_of, conversation, request, response

METADATA = request(1)


def test_values_of_a_body_that_does_not_fit_make_no_finding(tmp_path: Path) -> None:
    """As librdkafka's mock cluster responds to a version of ApiVersions that it lacks: its array has one entry less
    than it says, and a throttle time seems to follow."""
    mock = bytes.fromhex("000000110000000100230100120000000200000000")
    turns = [Turn(True, request(1, api_key=18, version=4, body=b"\0\x06tests\x021\0")), Turn(False, mock)]
    with dissector.open(capture_of(tmp_path, conversation(turns)), show_secrets=True) as capture:
        assert {each.code for exchange in capture.exchanges() for each in exchange.findings} == {"trailing-bytes"}


def test_version_0_is_read_behind_error_35_with_more_behind_it() -> None:
    frame = response(1, bytes.fromhex("0023 00000001 0012 0000 0003 00000000"))
    message = dissector.decode_response(frame, api_key=18, api_version=4)
    assert message.body["api_keys"] == [{"api_key": 18, "min_version": 0, "max_version": 3}]
    assert {each.code for each in message.findings} == {"version-fallback", "trailing-bytes"}


def test_a_request_without_its_size_prefix_is_an_error() -> None:
    assert dissector.decode_request(METADATA).header["correlation_id"] == 1
    with pytest.raises(ValueError, match="no size prefix"):
        dissector.decode_request(METADATA[4:])
    assert dissector.decode_request(METADATA[:-1]).findings


@cases(("key", "vendor"), [(501, "AutoMQ"), (10_003, "Confluent"), (15_000, "Redpanda")])
def test_private_apis_are_named_by_their_range(key: int, vendor: str) -> None:
    message = dissector.decode_request(request(1, api_key=key, body=b"\0rest"), show_secrets=True)
    [found] = message.findings
    assert found.code == "unknown-api"
    assert f"{vendor}'s private APIs" in found.message
    assert message.rest == b"rest"


def test_a_header_of_an_unknown_api_without_tagged_fields_is_read_too() -> None:
    message = dissector.decode_request(request(1, api_key=10_003, body=b"\xff\xff"), show_secrets=True)
    assert (message.header["client_id"], message.rest) == ("tests", b"\xff\xff")
