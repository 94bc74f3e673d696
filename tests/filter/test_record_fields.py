"""Filters that reach into records."""

import pytest

from dissector.capture_session import Capture
from dissector.filter import FilterError, complete, parse
from dissector.protocol.records.batch import RecordHeader
from dissector.records.record import ExchangeRecord
from dissector.records.values.schemas import opener_with
from tests.cases import cases
from tests.conftest import PCAPS

ORDER = b'{"order": {"id": 17, "lines": [{"sku": "tea"}, {"sku": "pot", "n": null}]}, "paid": false, "a.b": 1.5}'
RECORD = ExchangeRecord(
    "orders", 3, 41, 1_795_245_525_626, b"18", ORDER, [RecordHeader("x-tenant.id", b"7"), RecordHeader("none", None)]
)
CONNECT = ExchangeRecord("o", 0, 1, None, None, b'{"schema": null, "payload": {"id": 5}}', ())


class Subject:
    exchange = None

    def __init__(self, record: ExchangeRecord) -> None:
        self.record = record


def matches(text: str, record: ExchangeRecord = RECORD) -> bool:
    return parse(text).matches_record(Subject(record))


@cases("text", [
    "record.value.order.id == 17", "record.value.order.id in {1..20}", "record.value.order.lines.sku == pot",
    "record.value.order.lines.n == null", "record.value.paid == false", "record.value.a.b > 1", "record.key == 18",
    'record.key == "18"', "record.key == 0x3138", "record.key >= 18", "record.value contains sku",
    'record.value matches "tea.*pot"', "record.headers.x-tenant.id == 7", "record.headers.x-tenant.id exists",
    "exists record.value.order", "record.headers contains x-tenant || record.headers exists", "record.offset == 41",
    "record.partition == 3 && record.topic == orders", "record.timestamp > 2026-11-21", "record.format == json",
    "record.key_size == 2", "!record.unreadable", "record.control == false", "!record.control", "topic == orders",
    "!(record.headers.none exists)", "!(record.value.order.id == 18)", "record.value.order.id != 18",
])  # fmt: skip
def test_conditions_that_hold(text: str) -> None:
    if "headers contains" in text:
        with pytest.raises(FilterError):
            parse(text)
        return
    assert matches(text)


@cases("text", [
    "record.value.order.id == 18", 'record.value.order.id == "17 "', "record.value.nothing exists",
    "record.key == 19", "record.value.order.lines.sku == kettle", "record.headers.other exists", "record.control",
    "record.value.paid == true", "record.offset < 41", "partition == 2",
])  # fmt: skip
def test_conditions_that_do_not_hold(text: str) -> None:
    assert not matches(text)


def test_connects_schema_need_not_be_named() -> None:
    assert matches("record.value.id == 5", CONNECT)
    assert matches("record.value.payload.id == 5 && record.envelope == Connect", CONNECT)


@cases(("text", "words"), [
    ("record.valu.x == 1", "did you mean record.value"), ("record.value. == 1", "unknown field"),
    ("record.offset == tea", "not a number"), ("record.format == jsn", "did you mean json"),
    ("record.value.x < abc", "not a number"), ("record.headers == 1", "structure"), ("record. == 1", "unknown field"),
])  # fmt: skip
def test_errors_are_clear(text: str, words: str) -> None:
    with pytest.raises(FilterError, match=words):
        parse(text)


def test_names_complete() -> None:
    def offered(text: str, *paths: str) -> list[str]:
        return [each.text for each in complete(text, len(text), paths)]

    assert "record." in offered("reco")
    assert "record.value" in offered("record.va")
    assert "record.value.order.id" in offered("api == Fetch && record.value.o", "value.order.id", "value.paid")
    assert offered("record.format == js") == ["json"]
    assert "==" in offered("record.value.order.id ")
    assert "&&" in offered("record.value.order.id exists ")


def test_filters_open_avro_and_protobuf_with_schemas() -> None:
    opener = opener_with(str(PCAPS / "records/schemas"))
    with Capture([str(PCAPS / "records/orders.pcapng")], opener=opener) as capture:
        counts = {text: len(list(capture.exchanges(text))) for text in (
            "record.value.lines.sku == teapot", "record.value.carrier == BIKE && api == Fetch", "record.unreadable",
            "record.value.order.id == 17 && record.headers.traceparent exists", "record.schema_id == 8",
        )}  # fmt: skip
    assert all(counts.values()), counts
