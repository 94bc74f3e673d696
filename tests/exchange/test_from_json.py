"""Frames from values and from lines of JSON, as other programs ask for them."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dissector
from dissector.core.limits import DEFAULT
from dissector.exchange.model import Exchange, ExchangeRow
from dissector.exchange.to_json import json_line
from dissector.protocol.codec.plan import plan
from dissector.protocol.schema.loader import apis
from tests.cases import cases
from tests.protocol.random_messages import make
from tests.protocol.trees import same
from tests.traffic import request, response

METADATA: dict[str, Any] = {
    "api_key": 3, "api": "Metadata", "api_version": 0, "correlation_id": 7, "client_id": "tests",
    "request": {"body": {"topics": []}}, "response": {"body": {"brokers": [], "topics": []}},
}  # fmt: skip
APIS = st.sampled_from(apis()).filter(lambda api: api.versions.low <= api.versions.high)


@given(api=APIS, seed=st.integers(0, 2**32), correlation_id=st.integers(-(2**31), 2**31 - 1), data=st.data())
def test_made_messages_survive_values_and_json(api: Any, seed: int, correlation_id: int, data: st.DataObject) -> None:
    version = data.draw(st.integers(api.versions.low, api.versions.high))
    chance = random.Random(seed)
    values, _ = make(plan(api.request, version), chance)
    answer, _ = make(plan(api.response, version), chance)
    one = dissector.encode_request(api.name, version, values, correlation_id=correlation_id, client_id="é")
    other = dissector.encode_response(api.key, version, answer, correlation_id=correlation_id)
    asking = dissector.decode_request(one, show_secrets=True)
    answering = dissector.decode_response(other, api_key=api.key, api_version=version, show_secrets=True)
    assert same(asking.body, values)
    assert same(answering.body, answer)
    assert asking.header["correlation_id"] == answering.header["correlation_id"] == correlation_id
    assert asking.header.get("client_id", "é") == "é"
    row = ExchangeRow(
        1, "exchange", 0, 1, "", "", api.name, version, correlation_id, "é", 0, 0, 0, 0, 0, 0, 1, 2, "", None
    )
    line = json.loads(json_line(Exchange(row, api.key, asking, answering)))
    assert dissector.encode(line) == (one, other)


def test_a_short_line_is_enough() -> None:
    assert dissector.encode(METADATA) == (request(7), response(7))
    assert dissector.encode(METADATA | {"request": None}) == (None, response(7))
    assert dissector.encode(METADATA | {"api_key": None, "response": None}) == (request(7), None)


def test_the_header_overrules_the_line() -> None:
    line = METADATA | {"request": {"header": {"client_id": "other"}, "body": {"topics": []}}}
    assert dissector.encode(line)[0] == request(7, client_id=b"other")


def test_the_oldest_header_has_no_client_id() -> None:
    frame = dissector.encode_request("ControlledShutdown", 0, {"broker_id": 1}, correlation_id=2)
    assert frame == bytes.fromhex("0000000c 0007 0000 00000002 00000001")


@pytest.mark.parametrize(("body", "version"), [({"error_code": 35}, 0), ({"error_code": 0}, 3)])
def test_a_broker_that_lacks_the_version_answers_in_version_0(body: dict[str, object], version: int) -> None:
    assert dissector.encode_response("ApiVersions", 3, body) == dissector.encode_response("ApiVersions", version, body)


@cases(
    ("change", "words"),
    [
        ({"request": {"body": {"topics": [{"name": 7}]}}}, "request.body.topics[0].name: 7 is not a string"),
        ({"request": {"body": {"nonsense": 1}}}, "request.body.nonsense: no such field"),
        ({"request": {"body": []}}, "request.body: [] is not a structure"),
        ({"request": 1}, "request: is not an object"),
        ({"request": {"header": 1}}, "request.header: is not an object"),
        ({"request": {"header": {"x": 1}, "body": {}}}, "request.header.x: no such field"),
        ({"request": {"header": {"request_api_version": 1}}}, "request.header.request_api_version: 1, but the line"),
        ({"correlation_id": 2**31}, "request.header.correlation_id: 2147483648 is not in the range"),
        ({"client_id": "x" * 40_000}, "request.header.client_id: 40,000 bytes are too long"),
        ({"api_key": 999}, "request.body: API key 999 is in the range"),
        ({"api_key": 2**15}, "api_key: 32768 is not an integer from"),
        ({"api_key": True}, "api_key: True is not an integer from"),
        ({"api_key": None, "api": "Metadta"}, "api: no API is called 'Metadta'"),
        ({"api_key": None, "api": None}, "api_key: is required for a request"),
        ({"api_version": -1}, "request.body: Metadata v-1 is not known"),
        ({"api_version": None}, "api_version: None is not an integer"),
        ({"request": {"size": 40, "body": {}}}, "request: 21 of its bytes are not in the line"),
        ({"request": {"size": -1, "body": {}}}, "request.size: -1 is not an integer from 4"),
        ({"api_key": None, "api": None, "request": None, "response": {"size": 40, "body": {}}}, "response: 32 of its"),
        ({"response": {"body": {"brokers": [{"port": "x"}]}}}, "response.body.brokers[0].port: 'x' is not an integer"),
    ],
)
def test_a_value_that_cannot_be_written_is_reported_with_its_path(change: dict[str, object], words: str) -> None:
    with pytest.raises(dissector.EncodeError) as caught:
        dissector.encode(METADATA | change)
    assert str(caught.value).startswith(words)


@cases(("api", "version"), [("Nothing", 0), (999, 0), ("Metadata", 99), ("Metadata", -1)])
def test_apis_and_versions_that_are_not_known_are_errors(api: str | int, version: int) -> None:
    with pytest.raises(dissector.EncodeError):
        dissector.encode_request(api, version, {})
    with pytest.raises(dissector.EncodeError):
        dissector.encode_response(api, version, {})


NAMES = st.sampled_from(["topics", "size", "body", "header", "x"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner),
    max_leaves=6,
)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from([*METADATA, "kind"]), JSON), st.booleans())
def test_any_line_is_written_or_refused(line: dict[str, Any], over_a_good_one: bool) -> None:
    try:
        done = dissector.encode(METADATA | line if over_a_good_one else line)
    except dissector.EncodeError as error:
        done = (str(error).encode(), None)
    assert all(part is None or len(part) for part in done)


def test_a_frame_of_the_largest_size_of_which_little_was_captured_is_no_error() -> None:
    """Its size counts the prefix, which the limit does not."""
    size = DEFAULT.frame_size + 4
    line = METADATA | {"request": None, "response": {"size": size, "header": {"correlation_id": 7}, "rest": "00ff"}}
    with pytest.raises(dissector.EncodeError, match="of its bytes are not in the line"):
        dissector.encode(line)
    with pytest.raises(dissector.EncodeError, match="is not an integer"):
        dissector.encode(line | {"response": {"size": size + 1, "rest": "00ff"}})
