"""What other programs may import."""

import json
import math
import struct

import pytest

import dissector
from dissector.exchange.model import Exchange, ExchangeRow
from dissector.exchange.to_json import json_line
from tests.cases import cases
from tests.conftest import PCAPS
from tests.traffic import request, response


def test_open_gives_exchanges_with_values_and_spans() -> None:
    with dissector.open(PCAPS / "java.pcapng") as capture:
        [first, *_] = capture.exchanges()
        assert first.request is not None
        assert first.request.body["client_software_name"] == "apache-kafka-java"
        field = first.request.tree.find("body.client_software_name")
        assert field is not None
        assert first.request.data[field.start + 1 : field.end] == b"apache-kafka-java"


def test_exchanges_outlive_the_capture() -> None:
    with dissector.open(PCAPS / "java.pcapng") as capture:
        kept = list(capture.exchanges())
    assert kept[3].request is not None
    assert kept[3].request.tree.find("body") is not None


def test_opening_no_file_is_a_distinct_error() -> None:
    with pytest.raises(Exception, match="no such file"):
        dissector.open("nowhere.pcap")


def test_a_comparison_of_files_that_are_not_open_says_how_to_open_them() -> None:
    with pytest.raises(TypeError, match=r"str is not a capture: open it with dissector\.open"):
        dissector.diff("a.pcapng", "b.pcapng")


def test_a_field_that_an_exchange_does_not_have_is_an_error_that_names_the_way_without_one() -> None:
    with dissector.open(PCAPS / "java.pcapng") as capture:
        exchange = next(capture.exchanges("!error"))
    assert exchange.get("error") is None
    with pytest.raises(KeyError, match=r"get\('error'\) returns None"):
        exchange["error"]


def test_lone_frames_are_decoded() -> None:
    assert dissector.decode_request(request(7)).header["correlation_id"] == 7
    assert dissector.decode_response(response(7), api_key=3, api_version=0).body == {"brokers": [], "topics": []}


def test_a_lone_response_without_its_api_is_inferred() -> None:
    with dissector.open(PCAPS / "java.pcapng") as capture:
        exchange_of = {each.api: each for each in capture.exchanges()}
    for name in ("Metadata", "Fetch", "ApiVersions"):
        paired = exchange_of[name].response
        assert paired is not None
        lone = dissector.decode_response(paired.data)
        assert lone.body == paired.body
        [finding] = lone.findings
        assert finding.code == "inferred"
        assert f"{name} v{exchange_of[name].api_version}" in finding.message or "the same layout" in finding.message
        assert lone.tree.find("body") is not None


def test_a_lone_response_that_many_fit_is_not_claimed() -> None:
    lone = dissector.decode_response(response(1, bytes(9)))
    assert lone.body == {}
    assert [finding.message.partition(";")[0] for finding in lone.findings] == ["too little to tell what it answers"]


def test_an_api_without_its_version_is_a_mistake() -> None:
    with pytest.raises(TypeError, match="both the API and its version"):
        dissector.decode_response(response(1), api_key=3)


@cases("number", [math.inf, -math.inf, math.nan, 1.5])
def test_numbers_that_json_lacks_are_strings(number: float) -> None:
    # DescribeClientQuotas v0: throttle, error, message, one entry without entities that has one value.
    value = struct.pack(">h", 1) + b"q" + struct.pack(">d", number)
    body = struct.pack(">ihhi", 0, 0, -1, 1) + struct.pack(">ii", 0, 1) + value
    message = dissector.decode_response(response(1, body), api_key=48, api_version=0)
    assert not message.findings
    row = ExchangeRow(1, "exchange", 0, 1, "", "", "", 0, 1, *(None,) * 9, "", None)
    [entry] = json.loads(json_line(Exchange(row, 48, None, message)))["response"]["body"]["entries"]
    assert entry["values"][0]["value"] == (number if math.isfinite(number) else str(number))


@pytest.mark.parametrize("version", [0, 4])
def test_a_response_without_its_size_prefix_is_said(version: int) -> None:
    frame = dissector.encode_response("ApiVersions", version, {"error_code": 0, "api_keys": []}, correlation_id=7)
    assert dissector.decode_response(frame, api_key=18, api_version=version).header["correlation_id"] == 7
    with pytest.raises(ValueError, match="no size prefix"):
        dissector.decode_response(frame[4:], api_key=18, api_version=version)
    cut = dissector.decode_response(frame[:-1], api_key=18, api_version=version)
    assert [finding.code for finding in cut.findings], "damage is no error"
