"""A body without its records, and back: over all captures, and over whatever batches there may be."""

from pathlib import Path
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture_session import Capture
from dissector.core.json_text import dumps
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.embedded.context import EMPTY_CONTEXT
from dissector.protocol.message_layout import request_layout
from dissector.tables.carried_records import CarriedRecords, has_records_field
from dissector.tables.packing import Packer, unpacked
from tests.cases import cases
from tests.conftest import PCAPS
from tests.protocol.records.test_batch import batch, many_records
from tests.protocol.records.test_legacy import Made, many, wrapper

FIELD = "topic_data", "partition_data", "records"


def plain(value: Any) -> Any:
    return orjson.loads(dumps(value))


def test_bodies_come_back_whole(bundled: Path) -> None:
    with Capture([str(bundled)]) as capture:
        for exchange in capture.exchanges():
            for side in (exchange.request, exchange.response):
                if side is not None and has_records_field(side.layout) and side.body:
                    packed = plain(side.body_with(Packer(side, [])))
                    assert unpacked(packed, side.layout.body or "") == plain(side.decoded_body)


def produced(topic: str, field: bytes) -> ExchangeMessage:
    """A Produce request v3 of these bytes."""
    name = len(topic).to_bytes(2, "big") + topic.encode()
    body = b"\xff\xff\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01" + name + b"\x00\x00\x00\x01\x00\x00\x00\x00"
    body += len(field).to_bytes(4, "big") + field
    data = b"\x00\x00\x00\x03\x00\x00\x00\x01\xff\xff" + body
    data = len(data).to_bytes(4, "big") + data
    return ExchangeMessage(0, len(data), data, len(data), request_layout(0, 3, data), EMPTY_CONTEXT)


def both(side: ExchangeMessage) -> tuple[Any, list[CarriedRecords]]:
    """The one field of records as it is packed; and, on the way, whether it comes back."""
    carried: list[CarriedRecords] = []
    packed = plain(side.body_with(Packer(side, carried)))
    assert unpacked(packed, "ProduceRequest") == plain(side.decoded_body)
    topics, partitions, field = FIELD
    return packed[topics][0][partitions][0][field], carried


@given(some=st.lists(many_records, min_size=1, max_size=3), codec=st.integers(0, 4), cut=st.integers(0, 40))
def test_batches_have_bytes_in_place_of_records_whatever_they_hold(some: list[Any], codec: int, cut: int) -> None:
    data = b"".join(batch(each, codec) for each in some)
    field, carried = both(produced("orders", data[: len(data) - cut]))
    assert not [each for each in field["batches"] if each.get("records")]
    if not cut:
        assert sum(len(each.records) for each in carried) == sum(map(len, some))


@given(messages=many, magic=st.sampled_from([0, 1]), codec=st.sampled_from([1, 2, 3]))
def test_wrappers_have_bytes_in_place_of_messages(messages: list[Made], magic: int, codec: int) -> None:
    field, carried = both(produced("orders", wrapper(messages, magic, codec)))
    assert "messages" not in field["batches"][0]
    assert [each.records[0][0] for each in carried] == [made.offset for made in messages]


@given(data=st.binary(max_size=200))
def test_what_is_no_batch_comes_back_too(data: bytes) -> None:
    both(produced("orders", data))


@given(some=many_records, at=st.integers(0, 90), value=st.integers(0, 255))
def test_damaged_batches_come_back_as_they_were(some: list[Any], at: int, value: int) -> None:
    data = bytearray(batch(some))
    if at < len(data):
        data[at] = value
    both(produced("orders", bytes(data)))


def test_records_of_internal_topics_stay_with_what_they_hold() -> None:
    [path] = (PCAPS / "segments").glob("__consumer_offsets-*/*.log")
    field, carried = both(produced("__consumer_offsets", path.read_bytes()))
    assert any("key_decoded" in record for each in field["batches"] for record in each["records"])
    assert carried


@cases("body", [{}, {"topic_data": None}, {"topic_data": []}])
def test_a_body_without_topics_is_as_it_was(body: dict[str, Any]) -> None:
    assert unpacked(body, "ProduceRequest") == body
