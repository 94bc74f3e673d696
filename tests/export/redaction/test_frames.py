"""A redacted message of any API has the same layout, and nothing that a user chose."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dissector
from dissector.capture_session import Capture
from dissector.export.redaction.frames import Redactor
from dissector.protocol.codec.plan import plan
from dissector.protocol.message import trace
from dissector.protocol.message_layout import request_layout, response_layout
from dissector.protocol.records.from_json import batch_bytes, message_bytes
from dissector.protocol.schema.loader import apis
from dissector.protocol.schema.model import Api
from dissector.protocol.tree import Node
from tests.cases import cases
from tests.conftest import PCAPS
from tests.protocol.random_messages import WORDS, make
from tests.traffic import seeds

MESSAGES = [(api, version) for api in apis() for version in api.versions]
HIDDEN = [word.encode() for word in WORDS if len(word) > 3]
SECRET = b"a very secret thing"


def shape(tree: Node) -> list[tuple[object, ...]]:
    return [(node.path, node.type, node.start, node.end, node.source) for node in tree.walk()]


@given(chance=seeds, which=st.sampled_from(MESSAGES), asks=st.booleans())
def test_a_message_of_any_api_keeps_its_layout_and_none_of_its_texts(
    chance: random.Random, which: tuple[Api, int], asks: bool
) -> None:
    api, version = which
    shaped = request_layout(api.key, version) if asks else response_layout(api.key, version, bytes(12))
    assert shaped.header is not None
    assert shaped.body is not None
    _, head = make(plan(shaped.header, shaped.header_version), chance)
    _, body = make(plan(shaped.body, shaped.body_version), chance)
    data = (len(head) + len(body)).to_bytes(4, "big") + head + body
    was = trace(data, shaped)
    made = Redactor().frame(was)
    assert len(made) == len(data)
    assert shape(trace(made, shaped).tree) == shape(was.tree)
    assert [word for word in HIDDEN if word in made] == []


def produce(records: bytes) -> bytes:
    partitions = [{"index": 0, "records": {"batches": [], "unknown": {"data": records.hex()}}}]
    topics = [{"name": "orders", "partition_data": partitions}]
    return dissector.encode_request("Produce", 9, {"acks": 1, "timeout_ms": 1, "topic_data": topics})


RECORDS = [{"key": SECRET, "value": SECRET * 3, "headers": [{"key": SECRET.decode(), "value": SECRET}]}] * 20
MESSAGES_INSIDE = [{"magic": 1, "key": SECRET, "value": SECRET * 3} for _ in range(20)]


@cases("codec", range(5))
def test_records_are_asterisks_with_a_valid_checksum(codec: int) -> None:
    data = produce(batch_bytes({"attributes": codec, "records": RECORDS}))
    message = dissector.decode_request(data, show_secrets=True)  # a header's name is that of a secret
    again = dissector.decode_request(Redactor().frame(message.traced), show_secrets=True)
    assert shape(again.tree) == shape(message.tree)
    [batch] = again.decoded_body["topic_data"][0]["partition_data"][0]["records"]["batches"]
    assert batch["crc_valid"]
    assert len(batch["records"]) == len(RECORDS)
    letters = set().union(*({*each["key"], *each["value"]} for each in batch["records"]))
    assert letters == {ord("*")} or codec == 3  # lz4 may take letters, to come out a little larger
    assert SECRET not in b"".join(source.data for source in again.sources)


@cases("codec", range(4))
def test_message_sets_are_asterisks_with_valid_checksums(codec: int) -> None:
    inner = {"messages": MESSAGES_INSIDE} if codec else {"value": SECRET}
    message = dissector.decode_request(produce(message_bytes({"magic": 1, "attributes": codec, **inner})))
    again = dissector.decode_request(Redactor().frame(message.traced))
    assert shape(again.tree) == shape(message.tree)
    crcs = [node.note for node in again.tree.walk() if node.name == "crc"]
    assert crcs == ["valid"] * (21 if codec else 1)
    assert SECRET not in b"".join(source.data for source in again.sources)


def test_an_invalid_checksum_stays_invalid() -> None:
    batch = bytearray(batch_bytes({"records": RECORDS}))
    batch[17] ^= 1
    message = dissector.decode_request(produce(bytes(batch)))
    again = dissector.decode_request(Redactor().frame(message.traced))
    assert (
        [each.code for each in again.traced.findings] == [each.code for each in message.traced.findings] == ["bad-crc"]
    )


def test_nothing_of_an_unreadable_section_remains() -> None:
    batch = bytearray(batch_bytes({"attributes": 4, "records": RECORDS}))
    batch[61:65] = b"sec!"
    message = dissector.decode_request(produce(bytes(batch)))
    made = Redactor().frame(message.traced)
    assert b"sec!" not in made
    assert shape(dissector.decode_request(made).tree) == shape(message.tree)


def test_a_truncated_batch_stays_a_truncated_batch() -> None:
    whole = batch_bytes({"records": RECORDS})
    message = dissector.decode_request(produce(whole + whole[: len(whole) // 2]))
    again = dissector.decode_request(Redactor().frame(message.traced))
    records = again.decoded_body["topic_data"][0]["partition_data"][0]["records"]
    assert set(bytes.fromhex(records["truncated"]["data"])[17:]) == {0}
    assert shape(again.tree) == shape(message.tree)


def test_a_host_in_a_message_still_equals_the_address_of_the_packets() -> None:
    redactor = Redactor()
    body = {"brokers": [{"node_id": 1, "host": "10.9.8.77", "port": 9092}], "topics": []}
    message = dissector.decode_response(dissector.encode_response("Metadata", 0, body), api_key=3, api_version=0)
    again = dissector.decode_response(redactor.frame(message.traced), api_key=3, api_version=0)
    assert again.body["brokers"][0]["host"] == redactor.addresses.of("10.9.8.77") != "10.9.8.77"


@pytest.mark.long
@pytest.mark.slow
def test_records_of_internal_topics_keep_their_type() -> None:
    with Capture([str(PCAPS / "kraft-quorum.pcapng")]) as capture:
        redactor, kinds = Redactor(), set()
        for exchange in capture.exchanges():
            if exchange.response is not None and exchange.fields.api == "Fetch":
                made = trace(redactor.frame(exchange.response.traced), exchange.response.layout)
                kinds |= {node.note for node in made.tree.walk() if node.note.endswith(" v0")}
    assert any("Record" in kind for kind in kinds)
