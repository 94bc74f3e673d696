"""What is read from columns of many messages is what decoding each of them gives."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dissector
from dissector.bulk.body_columns import BodyColumns
from dissector.capture_session import Capture
from dissector.findings.framework.body_reader import CleanResponses
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.produce_batches import ProduceBatchReader
from dissector.protocol.codec.structs import structs_with
from dissector.protocol.message import read as read_message
from dissector.protocol.message_layout import request_layout
from dissector.protocol.records.batch import Batch
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.field_names import ERROR_CODES
from dissector.protocol.wire import uuid_text
from tests.conftest import PCAPS, SOME_BUNDLED
from tests.traffic import Turn, capture_of, conversation

NAMES = st.text("abc", min_size=1, max_size=140)
IDS = st.binary(min_size=16, max_size=16).map(uuid_text)
BATCHES = st.fixed_dictionaries({
    "attributes": st.integers(0, 4), "producer_id": st.integers(-1, 5), "producer_epoch": st.integers(-1, 5),
    "base_sequence": st.integers(-1, 500),
    "records": st.integers(1, 4).map(lambda count: [{"offset": 0, "timestamp": 1, "value": b"cup"}] * count),
})  # fmt: skip


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """Produce requests with a few topics and partitions, whose records are batches or anything; some are damaged."""
    version = draw(st.integers(3, 13))
    records = st.one_of(st.none(), st.binary(max_size=90), BATCHES.map(lambda batch: {"batches": [batch]}))
    partitions = st.lists(st.fixed_dictionaries({"index": st.integers(0, 9), "records": records}), max_size=3)
    name = {"topic_id": IDS} if version >= 13 else {"name": NAMES}
    topics = draw(st.lists(st.fixed_dictionaries({**name, "partition_data": partitions}), max_size=3))
    body: dict[str, Any] = {"transactional_id": draw(st.one_of(st.none(), NAMES)), "acks": -1, "timeout_ms": 1,
                            "topic_data": topics}  # fmt: skip
    client = draw(st.one_of(st.none(), NAMES))
    frame = dissector.encode_request("Produce", version, body, correlation_id=1, client_id=client)
    if draw(st.integers(0, 3)):
        return frame
    at = draw(st.integers(14, len(frame) - 1))
    return frame[:at] + bytes([draw(st.integers(0, 255))]) + frame[at + 1 :]


def named(capture: Capture, topic: dict[str, Any]) -> str:
    """The name of a topic, or its id."""
    state = capture.pipeline.indexer.conversation_state
    return str(topic.get("name") or state.topic_name(str(topic.get("topic_id"))))


def read_batches(capture: Capture) -> tuple[list[int], list[tuple[Any, ...]]]:
    """The Produce requests of a capture that can't be read, and the batches of the others, by columns."""
    index, store = capture.pipeline.indexer, capture.pipeline.store
    table = index.table
    row = np.flatnonzero((table.api_key.values == ApiKey.PRODUCE) & (table.kind.values == 0)).astype(np.int64)
    if not len(row):
        return [], []
    none = np.zeros(len(row), np.int64)
    columns = {
        "row": row, "version": table.version.values[row].astype(np.int64), "request": table.request.values[row],
    }  # fmt: skip
    bodies = BodyColumns(index, store, show_secrets=True)
    found = ProduceBatchReader(bodies, index, partial(named, capture)).of(
        ExaminedRows(lambda _, name: columns.get(name, none))
    )
    batches = []
    for number, (at, *values) in enumerate(zip(*(column.tolist() for column in found.columns), strict=True)):
        values[2] = found.topics[values[2]]
        batches.append((int(row[at]), *values, found.path(number), found.records(number)))
    return row[~found.is_read].tolist(), batches


def decoded_batches(capture: Capture) -> tuple[list[int], list[tuple[Any, ...]]]:
    """The same of each request by itself."""
    unread, batches = [], []
    for exchange in capture.exchanges():
        request = exchange.request
        if exchange.row.kind != "exchange" or exchange.api_key != ApiKey.PRODUCE or request is None:
            continue
        row, version = exchange.row.number - 1, exchange.row.version or 0
        decoded = read_message(request.data, request_layout(ApiKey.PRODUCE, version, request.data), len(request.data))
        body = {} if decoded.rest else decoded.body
        if not body:
            unread.append(row)
        for topic_at, topic in enumerate(cast(list[dict[str, Any]], body.get("topic_data") or ())):
            for partition_at, partition in enumerate(topic["partition_data"]):
                data = partition["records"]
                if not data or len(data) < 61 or data[16] != 2:
                    continue
                batch = Batch.read(data)
                if batch.records_count <= 0:
                    continue
                batches.append((
                    row, topic_at, partition_at, named(capture, topic), partition["index"], len(data),
                    batch.attributes, batch.producer_id, batch.producer_epoch, batch.base_sequence,
                    batch.records_count,
                    f"request.body.topic_data[{topic_at}].partition_data[{partition_at}].records", data,
                ))  # fmt: skip
    return unread, batches


@pytest.mark.long
@given(st.lists(requests(), min_size=1, max_size=4))
def test_batches_are_those_of_decoded_requests(frames: list[bytes]) -> None:
    with TemporaryDirectory() as folder:
        path = capture_of(Path(folder), conversation([Turn(True, frame) for frame in frames]))
        with Capture([path], show_secrets=True) as capture:
            for _ in capture.read():
                pass
            wanted = decoded_batches(capture)  # names of topics are known then
            assert read_batches(capture) == wanted


def opened(path: Path) -> Capture:
    capture = Capture([str(path)], show_secrets=True)
    for _ in capture.read():
        pass
    return capture


@pytest.mark.parametrize("path", SOME_BUNDLED)
def test_batches_of_recordings_are_those_of_decoded_requests(path: Path) -> None:
    with opened(path) as capture:
        wanted = decoded_batches(capture)
        assert read_batches(capture) == wanted


def found_clean(capture: Capture) -> list[bool]:
    """Which responses are found to be clean; they are."""
    index, store = capture.pipeline.indexer, capture.pipeline.store
    found = CleanResponses(BodyColumns(index, store, show_secrets=True)).find(np.arange(len(index.table)))
    for exchange, is_found in zip(capture.exchanges(), found.tolist(), strict=False):
        if is_found:
            response = exchange.response
            assert response is not None
            structs = structs_with(response.layout, response.body, ERROR_CODES)
            assert not any(struct.get(name) for struct in structs for name in ERROR_CODES)
            assert not response.body.get("throttle_time_ms")
    return list(found.tolist())


@pytest.mark.parametrize("path", SOME_BUNDLED)
def test_clean_responses_have_no_error_and_were_not_throttled(path: Path) -> None:
    with opened(path) as capture:
        found_clean(capture)


def test_most_responses_are_found_to_be_clean() -> None:
    with opened(PCAPS / "librdkafka-pipelined.pcapng") as capture:
        assert sum(found_clean(capture)) > 0.9 * len(capture)
