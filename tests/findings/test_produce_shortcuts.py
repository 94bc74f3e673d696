"""What is read from bytes without decoding a message is what decoding it gives."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import dissector
from dissector.core.store import Store
from dissector.findings.framework.clean_responses import CleanResponses
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.produce_batches import produce_batches, single_batch
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.wire import uuid_text
from tests.conftest import CAPTURES
from tests.findings.conversations import START

VERSIONS = st.integers(3, 13)
NAMES = st.text("abc", min_size=1, max_size=140)
IDS = st.binary(min_size=16, max_size=16).map(uuid_text)


@st.composite
def requests(draw: st.DrawFn) -> tuple[int, bytes]:
    """Produce requests with a few topics and partitions, whose records are batches or anything."""
    version = draw(VERSIONS)
    batches = st.fixed_dictionaries({
        "attributes": st.integers(0, 4), "producer_id": st.integers(-1, 5), "producer_epoch": st.integers(-1, 5),
        "base_sequence": st.integers(-1, 500),
        "records": st.just([{"offset": 0, "timestamp": 1, "value": b"cup"}] * 2),
    })  # fmt: skip
    records = st.one_of(st.none(), st.binary(max_size=90), batches.map(lambda batch: {"batches": [batch]}))
    partitions = st.lists(st.fixed_dictionaries({"index": st.integers(0, 9), "records": records}), max_size=2)
    name = {"topic_id": IDS} if version >= 13 else {"name": NAMES}
    topics = draw(st.lists(st.fixed_dictionaries({**name, "partition_data": partitions}), max_size=2))
    body: dict[str, Any] = {"transactional_id": draw(st.one_of(st.none(), NAMES)), "acks": -1, "timeout_ms": 1,
                            "topic_data": topics}  # fmt: skip
    client = draw(st.one_of(st.none(), NAMES))
    return version, dissector.encode_request("Produce", version, body, correlation_id=1, client_id=client)


def assert_same(data: bytes, version: int) -> bool:
    """Whether there was an only batch; it is as the whole request has it."""
    only = single_batch(data, version)
    if only is not None:
        [whole] = produce_batches(dissector.decode_request(data).body)
        assert only._replace(topic={}) == whole._replace(topic={})
        assert only.topic.items() <= whole.topic.items()
    return only is not None


@given(requests())
def test_the_only_batch_is_that_of_the_whole_request(made: tuple[int, bytes]) -> None:
    version, data = made
    assert_same(data, version)


@given(requests(), st.data())
def test_damage_ends_the_shortcut_and_nothing_else(made: tuple[int, bytes], data: st.DataObject) -> None:
    version, whole = made
    at = data.draw(st.integers(0, len(whole) - 1))
    single_batch(whole[:at], version)
    single_batch(whole[:at] + data.draw(st.binary(max_size=9)) + whole[at:], version)


def test_most_requests_of_real_producers_are_of_the_simple_kind() -> None:
    [pipelined] = [path for path in CAPTURES if path.stem == "librdkafka-pipelined"]
    with dissector.open(pipelined) as capture:
        produced = [each for each in capture.exchanges() if each.api_key == ApiKey.PRODUCE and each.request is not None]
        simple = [
            assert_same(each.request.data, each.row.version or 0) for each in produced if each.request is not None
        ]
    assert sum(simple) > 300


def answer(offset: int, index: int, error: int, throttle: int, name: str) -> bytes:
    partition = {"index": index, "error_code": error, "base_offset": offset, "log_append_time_ms": START + offset}
    body = {"responses": [{"name": name, "partition_responses": [partition]}], "throttle_time_ms": throttle}
    return dissector.encode_response("Produce", 10, body, correlation_id=offset)


ANSWERS = st.builds(
    answer, st.integers(0, 2**31 - 1), st.integers(0, 9), st.sampled_from([0, 0, 6]), st.sampled_from([0, 0, 70]),
    st.sampled_from(["orders", "drinks"]),
)  # fmt: skip


@given(st.lists(ANSWERS, min_size=1), st.lists(ANSWERS, min_size=1))
def test_responses_recognized_as_clean_have_no_error_nor_throttling(learned: list[bytes], later: list[bytes]) -> None:
    store = Store()
    addresses = [store.add(data) for data in later]
    patterns = CleanResponses(store, ApiKey.PRODUCE)
    clean = [data for data in learned if _is_clean(data)]
    for data in clean * 2:
        patterns.learn(10, data)
    none = np.zeros(len(later), np.int64)
    columns = dict.fromkeys(ExaminedRows._fields, none) | {
        "version": none + 10, "response_address": np.array(addresses), "response_size": np.array([*map(len, later)]),
    }  # fmt: skip
    for data, recognized in zip(later, patterns.find(ExaminedRows(**columns)).tolist(), strict=True):
        assert _is_clean(data) or not recognized
        assert recognized or not clean or not _is_clean(data) or _name(data) not in map(_name, clean)


def _is_clean(data: bytes) -> bool:
    body: dict[str, Any] = dissector.decode_response(data, api_key=ApiKey.PRODUCE, api_version=10).body
    [partition] = body["responses"][0]["partition_responses"]
    return not partition["error_code"] and not body["throttle_time_ms"]


def _name(data: bytes) -> str:
    body: dict[str, Any] = dissector.decode_response(data, api_key=ApiKey.PRODUCE, api_version=10).body
    return str(body["responses"][0]["name"])
