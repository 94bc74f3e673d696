"""What one frame may cost, whatever it promises: nodes of its tree, bytes of its JSON. What is left out is said."""

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import google_crc32c
import pytest

from dissector.core import limits
from dissector.core.json_text import dumps
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.codec.writer import write
from dissector.protocol.embedded.context import EMPTY_CONTEXT
from dissector.protocol.embedded.telemetry import metrics
from dissector.protocol.message import trace
from dissector.protocol.message_layout import request_layout
from dissector.protocol.records.compression import CODECS
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.wire import LimitError
from dissector.tables.carried_records import CarriedRecords
from dissector.tables.packing import Packer
from tests.protocol.embedded.test_formats import looked_at
from tests.protocol.records.test_batch import zigzag
from tests.protocol.trees import assert_tiled

VERSION = 9
ZSTD = 4
MEGABYTE = 1 << 20


class Cost(NamedTuple):
    """What the faces of a frame have."""

    nodes: int
    json_bytes: int
    table_records: int
    codes: set[str]
    errors: int
    """Batches without records in JSON."""


def produce(*batches: bytes) -> bytes:
    partitions = [{"index": number, "records": each} for number, each in enumerate(batches)]
    body = write("ProduceRequest", VERSION, {"topic_data": [{"name": "t", "partition_data": partitions}]})
    header = {"request_api_key": ApiKey.PRODUCE, "request_api_version": VERSION, "correlation_id": 7, "client_id": "c"}
    frame = write("RequestHeader", 2, header) + body
    return len(frame).to_bytes(4, "big") + frame


def batch(section: bytes, count: int, codec: int) -> bytes:
    packed = CODECS[codec].compress(section)
    body = struct.pack(">hiqqqhii", codec, count - 1, 0, 0, -1, -1, -1, count) + packed
    return struct.pack(">qiibI", 0, len(body) + 9, 0, 2, google_crc32c.value(body)) + body


def with_headers(count: int, codec: int) -> bytes:
    """A batch of one record with headers that have an empty key and a value of null."""
    fields = b"\0\0\0\x01\x01" + zigzag(count) + b"\0\x01" * count
    return batch(zigzag(len(fields)) + fields, 1, codec)


def with_value(size: int, codec: int) -> bytes:
    fields = b"\0\0\0\x01" + zigzag(size) + bytes(size) + b"\0"
    return batch(zigzag(len(fields)) + fields, 1, codec)


def cost(frame: bytes) -> Cost:
    layout = request_layout(ApiKey.PRODUCE, VERSION)
    message = ExchangeMessage.of_frame(0, len(frame), frame, len(frame), layout, EMPTY_CONTEXT, show_secrets=False)
    assert_tiled(message.traced)
    body: dict[str, Any] = message.decoded_body
    parts = [part["records"]["batches"] for topic in body["topic_data"] for part in topic["partition_data"]]
    carried: list[CarriedRecords] = []
    message.body_with(Packer(message, carried))
    return Cost(
        sum(1 for _ in message.tree.walk()), len(dumps(body)), sum(1 for each in carried if each.records),
        {finding.code for finding in message.traced.findings},
        sum("error" in each for batches in parts for each in batches),
    )  # fmt: skip


@pytest.mark.parametrize("codec", [0, ZSTD])
def test_headers_are_charged_to_the_frame(codec: int) -> None:
    count = 100_000 if codec else limits.DEFAULT.frame_records + 1
    found = cost(produce(with_headers(count, codec), with_headers(5, codec)))
    assert found.nodes < 100
    assert found.codes == {"over-limit"}
    assert found.errors == 1  # the batch behind it is read
    assert found.table_records == 1
    assert found.json_bytes < 10 * MEGABYTE


@pytest.mark.long
@pytest.mark.slow
def test_headers_that_a_frame_has_room_for_are_all_shown() -> None:
    found = cost(produce(with_headers(10_000, ZSTD), with_headers(10_000, 0)))
    assert found.nodes > 60_000
    assert not found.codes
    assert found.table_records == 2


@pytest.mark.long
def test_headers_of_many_records_have_one_budget() -> None:
    found = cost(produce(*(with_headers(9_000, ZSTD) for _ in range(5))))
    assert found.errors == 3


@pytest.mark.long
@pytest.mark.slow
def test_values_grow_with_the_size_on_the_wire() -> None:
    frame = produce(*(with_value(15 * MEGABYTE, ZSTD) for _ in range(16)))
    assert len(frame) < 12_000
    found = cost(frame)
    assert found.json_bytes < 40 * MEGABYTE
    assert found.errors >= 14
    assert found.codes == {"bad-compression"}


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("make", [
    lambda: produce(*[batch(b"\x0c\0\0\0\x01\x01\0" * 20_000, 20_000, ZSTD)] * 10),
    lambda: produce(*[batch(b"\x0c\0\0\0\x01\x01\0" * 20_000, 20_000, 0)] * 2),
])  # fmt: skip
def test_the_tree_of_a_frame_is_bounded(make: Callable[[], bytes]) -> None:
    bounds = limits.Limits(tree_nodes=100_000)
    frame = make()
    traced = trace(frame, request_layout(ApiKey.PRODUCE, VERSION), bounds=bounds)
    assert_tiled(traced)
    nodes = sum(1 for _ in traced.tree.walk())
    assert 50_000 < nodes < bounds.tree_nodes + 100
    assert "over-limit" in {finding.code for finding in traced.findings}


@pytest.mark.long
@pytest.mark.slow
def test_a_body_with_too_many_fields_keeps_the_first() -> None:
    topics = [{"name": f"{number}", "partition_data": []} for number in range(50_000)]
    body = write("ProduceRequest", VERSION, {"topic_data": topics})
    header = {"request_api_key": ApiKey.PRODUCE, "request_api_version": VERSION, "correlation_id": 7, "client_id": "c"}
    frame = write("RequestHeader", 2, header) + body
    frame = len(frame).to_bytes(4, "big") + frame
    traced = trace(frame, request_layout(ApiKey.PRODUCE, VERSION), bounds=limits.Limits(tree_nodes=1_000))
    assert_tiled(traced)
    assert 900 < sum(1 for _ in traced.tree.walk()) <= 1_010
    [finding] = traced.findings
    assert finding.code == "over-limit"
    assert "left out" in finding.message


def test_metrics_have_no_more_fields_than_a_frame_may_show() -> None:
    raw = CODECS[ZSTD].compress(b"\x78\x01" * 4_000_000)
    with pytest.raises(LimitError, match="more fields of metrics than one frame may have"):
        metrics(raw, ZSTD)
    few = metrics(CODECS[ZSTD].compress(b"\x78\x01" * 400), ZSTD)
    assert few is not None
    assert len(few.items) == 400


@pytest.mark.parametrize("plain", [b"\x78\x01" * 4_000_000, bytes(60 * MEGABYTE)], ids=["fields", "bytes"])
def test_metrics_that_are_left_out_have_a_finding(plain: bytes) -> None:
    raw = CODECS[ZSTD].compress(plain)
    decoded, tree = looked_at("PushTelemetryRequest", 0, {"compression_type": ZSTD, "metrics": raw})
    assert "metrics_decoded" not in decoded
    [finding] = tree.findings
    assert finding.code == "over-limit"
    assert f"{len(raw):,} bytes left out" in finding.message
    assert next(node for node in tree.tree.walk() if node.name == "metrics").value == raw
