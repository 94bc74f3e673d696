"""Records equal those that Kafka's tool prints, and those on the wire, in every kind of message."""

import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture_session import Capture
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.protocol.embedded.values import records_with_decoded
from dissector.protocol.records.batch import HEADER, NO_SEQUENCE, Batch, Record, RecordHeader
from dissector.protocol.records.compression import CODECS
from dissector.protocol.records.to_json import frame_budget, records_object
from dissector.protocol.schema.loader import apis, message
from dissector.protocol.schema.model import Field
from dissector.tables.carried_records import (
    CarriedRecords,
    LogPartition,
    has_records_field,
    records_of_batch,
    records_of_entry,
    records_of_object,
)
from dissector.tables.packing import Packer
from tests.cases import cases
from tests.conftest import PCAPS
from tests.protocol.records.test_batch import batch, many_records
from tests.protocol.records.test_legacy import Made, many, wrapper

LOGS = [path for path in sorted((PCAPS / "segments").glob("*/*")) if path.suffix in (".log", ".checkpoint")]
PRODUCER_AT = 43
"""Where a batch has its producer's id, epoch and first sequence."""
WORDS = re.compile(r"([A-Za-z]+): (\[.*?\]|\S+)")


def dumped(path: Path) -> Iterator[dict[str, str]]:
    """A line a record, with the codec of its batch."""
    codec = {}
    for line in path.with_name(f"{path.name}.dump.txt").read_text().splitlines():
        words = dict(WORDS.findall(line))
        if line.startswith("baseOffset: "):
            codec = {"codec": words["compresscodec"], "control": words["isControl"], "id": words["producerId"]}
        elif line.startswith("| offset: "):
            yield words | codec


class Each(NamedTuple):
    """A record by itself, and what its batch says of it."""

    topic: str
    partition: int | None
    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[RecordHeader]
    producer_id: int
    producer_epoch: int
    sequence: int
    codec: str
    control: bool


def one_by_one(batches: Iterable[CarriedRecords]) -> Iterator[Each]:
    for some in batches:
        for record, sequence in zip(some.records, some.sequences, strict=True):
            yield Each(
                some.topic, some.partition, *record, some.producer_id, some.producer_epoch, sequence, some.codec,
                some.control,
            )  # fmt: skip


def size(value: bytes | None) -> int:
    return -1 if value is None else len(value)


@cases("path", LOGS, ids=lambda path: f"{path.parent.name}{path.suffix}")
def test_records_of_logs_are_those_that_kafkas_tool_prints(path: Path) -> None:
    with Capture([str(path)], show_secrets=True) as capture:
        found = [
            record
            for exchange in capture.exchanges()
            if exchange.request
            for record in one_by_one(records_of_entry(str(path), exchange.request.body))
        ]
    topic, _, partition = path.parent.name.rpartition("-")
    assert {(record.topic, record.partition) for record in found} == {(topic, int(partition))}
    for record, truth in zip(found, dumped(path), strict=True):
        ours = {
            "offset": record.offset, "CreateTime": record.timestamp, "keySize": size(record.key),
            "valueSize": size(record.value), "sequence": record.sequence, "codec": record.codec,
            "control": record.control, "id": record.producer_id,
        }  # fmt: skip
        assert {name: str(value).lower() for name, value in ours.items()} == {name: truth[name] for name in ours}
        assert "[" + ",".join(header.key for header in record.headers) + "]" == truth["headerKeys"]


def in_capture(name: str) -> list[tuple[str, Each]]:
    with Capture([str(PCAPS / f"{name}.pcapng")]) as capture:
        return [
            (exchange.row.api, record)
            for exchange in capture.exchanges()
            for side in (exchange.request, exchange.response)
            if side is not None
            for record in one_by_one(in_message(side))
        ]


def in_message(side: ExchangeMessage) -> list[CarriedRecords]:
    found: list[CarriedRecords] = []
    side.body_with(Packer(side, found))
    return found


@cases(
    ("name", "takes"), [("librdkafka", "Fetch"), ("java-share", "ShareFetch"), ("plain-socket-message-sets", "Fetch")]
)
def test_fetched_records_equal_the_produced_ones(name: str, takes: str) -> None:
    """By the same clients, in the same capture: the broker changes offsets and nothing else."""
    found = in_capture(name)

    def side(api: str) -> Counter[tuple[str, int | None, bytes | None, bytes | None]]:
        return Counter((r.topic, r.partition, r.key, r.value) for each, r in found if each == api and not r.control)

    produced, fetched = side("Produce"), side(takes)
    assert produced
    assert set(fetched) & set(produced)
    topics = {topic for topic, *_ in produced}
    assert {each for each in fetched if each[0] in topics} <= set(produced)


def test_topics_with_an_id_only_have_their_names() -> None:
    found = in_capture("java-share")
    assert {api for api, _ in found} == {"Produce", "ShareFetch"}
    assert not [record.topic for _, record in found if len(record.topic) == 22]


@pytest.mark.long
def test_every_codec_and_control_records_are_covered() -> None:
    with_codecs = {record.codec for _, record in in_capture("librdkafka")}
    assert with_codecs == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert {record.control for _, record in in_capture("librdkafka-transactions")} == {True, False}


def of_batch(data: bytes) -> list[Each]:
    return list(one_by_one(records_of_entry("/logs/orders-7/0.log", records_with_decoded(data, None)["batches"][0])))


@given(first=st.integers(2**31 - 3, 2**31 - 1), count=st.integers(1, 5))
def test_sequences_wrap_around_to_zero(first: int, count: int) -> None:
    """As DefaultRecordBatch.incrementSequence has it."""
    records = [Record(100 + n, 5, None, b"x", []) for n in range(count)]
    data = bytearray(batch(records))
    struct.pack_into(">qhi", data, PRODUCER_AT, 9, 1, first)
    found = of_batch(bytes(data))
    expected = [first + n if first + n < 2**31 else first + n - 2**31 for n in range(count)]
    assert [record.sequence for record in found] == expected
    assert {(record.producer_id, record.producer_epoch) for record in found} == {(9, 1)}


@given(messages=many, magic=st.sampled_from([0, 1]), codec=st.sampled_from([1, 2, 3]))
def test_messages_in_a_wrapper_are_records(messages: list[Made], magic: int, codec: int) -> None:
    found = of_batch(wrapper(messages, magic, codec))
    expected = [(made.offset, made.timestamp if magic else None, made.key, made.value) for made in messages]
    assert [(r.offset, r.timestamp, r.key, r.value) for r in found] == expected
    assert {(r.topic, r.partition, r.sequence) for r in found} == {("orders", 7, NO_SEQUENCE)}
    assert {r.codec for r in found} == {("", "gzip", "snappy", "lz4")[codec]}


def test_an_unreadable_batch_has_no_records() -> None:
    data = batch([Record(1, 5, b"k", b"v", [])])
    assert len(of_batch(data)) == 1
    assert of_batch(data[:-3] + b"\xff\xff\xff") == []


def records_fields(fields: tuple[Field, ...], path: str = "") -> Iterator[str]:
    for field in fields:
        if field.type == "records":
            yield f"{path}{field.snake_name}"
        yield from records_fields(field.fields, f"{path}{field.snake_name}.")


def test_every_records_field_of_the_schema_is_read() -> None:
    names = [name for api in apis() for name in (api.request, api.response)]
    found: dict[str, Any] = {name: path for name in names for path in records_fields(message(name).fields)}
    assert found == RECORDS_FIELDS


def test_only_messages_with_a_records_field_carry_records() -> None:
    with Capture([str(PCAPS / "librdkafka.pcapng")]) as capture:
        side = [(e.row.api, m) for e in capture.exchanges() for m in (e.request, e.response) if m is not None]
    assert {api for api, each in side if has_records_field(each.layout)} == {"Produce", "Fetch"}


ORDERS = LogPartition("orders", 3)


def of_bytes(data: bytes) -> CarriedRecords:
    return records_of_batch(Batch.read(data), frame_budget(), ORDERS)


@given(many_records, st.sampled_from(list(CODECS)), st.integers(0, 1 << 30), st.binary(min_size=1, max_size=9))
def test_a_batch_has_what_its_json_has_whatever_damage_did_to_it(
    records: list[Record], codec: int, at: int, garbage: bytes
) -> None:
    whole = batch(records, codec)
    sound = of_bytes(whole)
    assert sound.head is not None
    assert (sound.head.error, list(sound.records)) == (None, records)
    assert sound.head.uncompressed_size == len(batch(records))
    at = HEADER.size + at % (len(whole) - HEADER.size + 1)
    damaged = (whole[:at] + garbage + whole[at + len(garbage) :])[: len(whole)]
    for data in (whole, damaged):
        [shown] = records_object(data)["batches"]
        [carried] = records_of_object(shown, ORDERS)
        assert carried == of_bytes(data)


@cases(
    ("data", "error", "size"),
    [
        (batch([Record(100, 5_000, None, b"v", [])], 4)[: HEADER.size] + b"!" * 9, "frame descriptor", None),
        (batch([Record(100, 5_000, None, b"v", [])])[:-1] + b"!", "header count runs past", 0),
        (batch([Record(100, 5_000, None, b"value", [])])[: HEADER.size] + b"*" * 12, "masked", None),
    ],
    ids=["compressed", "plain", "masked"],
)
def test_a_batch_that_cannot_be_read_has_no_records_and_the_reason(data: bytes, error: str, size: int | None) -> None:
    found = of_bytes(data)
    assert found.head is not None
    assert (found.records, found.head.record_count) == ([], 1)
    assert error in (found.head.error or "none")
    assert found.head.uncompressed_size == (size if size is None else len(data))
