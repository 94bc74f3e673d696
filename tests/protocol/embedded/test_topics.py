"""Records of Kafka's internal topics and control records, in a Fetch: made by the writer, found again."""

import json
import struct
from typing import Any

from dissector.core.json_text import dumps
from dissector.protocol.codec.writer import write
from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.embedded.topics import CLUSTER_METADATA, CLUSTER_METADATA_ID
from dissector.protocol.embedded.values import with_annotations
from dissector.protocol.message import read, trace
from dissector.protocol.records.batch import CONTROL
from dissector.protocol.records.from_json import batch_bytes
from dissector.protocol.schema.index import IndexEntry
from dissector.protocol.schema.loader import entries
from dissector.protocol.wire import uvarint_bytes
from tests.cases import cases
from tests.protocol.embedded.test_formats import framed
from tests.protocol.trees import assert_tiled

GROUP_KEYS = [entry for entry in entries() if entry.type == "coordinator-key"]
METADATA = [entry for entry in entries() if entry.type == "metadata"]
OTHER_TOPICS = {"TransactionLogKey": "__transaction_state", "ShareSnapshotKey": "__share_group_state",
                "ShareUpdateKey": "__share_group_state"}  # fmt: skip


def fetched(topic: str, records: list[dict[str, Any]], attributes: int = 0) -> tuple[Any, Any]:
    """What a Fetch of that topic shows: its first record as JSON has it, and its tree."""
    raw = batch_bytes({"attributes": attributes, "records": records})
    values = {"responses": [{"topic": topic, "partitions": [{"records": raw}]}]}
    data, layout = framed("FetchResponse", 4, values)
    tree = trace(data, layout)
    assert_tiled(tree)
    assert not tree.findings
    body = with_annotations("FetchResponse", 4, read(data, layout).body, DecodingContext())
    content = body["responses"][0]["partitions"][0]["records"]
    return content["batches"][0]["records"][0], tree.tree


@cases("entry", GROUP_KEYS, ids=lambda entry: entry.name)
def test_every_record_of_the_coordinators(entry: IndexEntry) -> None:
    assert entry.api_key is not None
    topic = OTHER_TOPICS.get(entry.name, "__consumer_offsets")
    value_name = entry.name.removesuffix("Key") + "Value"
    key = struct.pack(">h", entry.api_key) + write(entry.name, 0, {})
    for version in next(each for each in entries() if each.name == value_name).valid_versions:
        value = struct.pack(">h", version) + write(value_name, version, {})
        record, tree = fetched(topic, [{"key": key, "value": value}])
        assert record["key_decoded"]["type"] == entry.api_key
        assert record["value_decoded"]["version"] == version
        base = "body.responses[0].partitions[0].records[0].records[0]"
        assert tree.find(f"{base}.key.decoded").note == f"{entry.name} v0"
        assert tree.find(f"{base}.value.decoded").note == f"{value_name} v{version}"
        assert "key_decoded" not in fetched("orders", [{"key": key, "value": value}])[0]


def test_a_tombstone_has_a_key_alone() -> None:
    key = struct.pack(">h", 1) + write("OffsetCommitKey", 0, {"group": "billing", "topic": "orders", "partition": 4})
    record, _ = fetched("__consumer_offsets", [{"key": key, "value": None}])
    assert record["key_decoded"] == {"type": 1, "group": "billing", "topic": "orders", "partition": 4}
    assert "value_decoded" not in record


@cases("entry", METADATA, ids=lambda entry: entry.name)
def test_every_record_of_the_metadata_logs(entry: IndexEntry) -> None:
    for version in entry.valid_versions:
        value = b"\x01" + uvarint_bytes(entry.api_key) + uvarint_bytes(version) + write(entry.name, version, {})
        topic = "__remote_log_metadata" if entry.name.startswith("Remote") else CLUSTER_METADATA
        record, tree = fetched(topic, [{"key": None, "value": value}])
        assert record["value_decoded"]["type"] == entry.api_key
        node = tree.find("body.responses[0].partitions[0].records[0].records[0].value.decoded")
        assert node.note == f"{entry.name} v{version}"


def test_the_metadata_log_is_known_by_its_id() -> None:
    value = b"\x01\x02\x00" + write("TopicRecord", 0, {"name": "orders"})
    raw = batch_bytes({"records": [{"value": value}]})
    values = {"responses": [{"topic_id": CLUSTER_METADATA_ID, "partitions": [{"records": raw}]}]}
    data, layout = framed("FetchResponse", 17, values)
    tree = trace(data, layout)
    assert_tiled(tree)
    node = tree.tree.find("body.responses[0].partitions[0].records[0].records[0].value.decoded.name")
    assert node is not None
    assert node.value == "orders"


CONTROL_VALUES = [
    (0, "EndTxnMarker", struct.pack(">hi", 0, 12), {"version": 0, "coordinator_epoch": 12}),
    (1, "EndTxnMarker", struct.pack(">hi", 0, 5), {"version": 0, "coordinator_epoch": 5}),
    (2, "LeaderChangeMessage", write("LeaderChangeMessage", 1, {"version": 1, "leader_id": 3}), {"leader_id": 3}),
    (3, "SnapshotHeaderRecord", write("SnapshotHeaderRecord", 0, {}), {"version": 0}),
    (4, "SnapshotFooterRecord", write("SnapshotFooterRecord", 0, {}), {"version": 0}),
    (5, "KRaftVersionRecord", write("KRaftVersionRecord", 0, {"kraft_version": 1}), {"kraft_version": 1}),
    (6, "VotersRecord", write("VotersRecord", 0, {}), {"voters": []}),
]


@cases(("kind", "name", "value", "expected"), CONTROL_VALUES)
def test_every_control_record(kind: int, name: str, value: bytes, expected: dict[str, Any]) -> None:
    record, tree = fetched("orders", [{"key": struct.pack(">hh", 0, kind), "value": value}], CONTROL)
    assert record["key_decoded"] == {"version": 0, "type": kind}
    assert expected.items() <= record["value_decoded"].items()
    base = "body.responses[0].partitions[0].records[0].records[0]"
    assert tree.find(f"{base}.value.decoded").note.startswith(name)
    assert tree.find(f"{base}.key.decoded.type").note in ("ABORT", "COMMIT") or kind > 1


def test_junk_in_an_internal_topic_stays_bytes() -> None:
    for junk in (b"", b"\x00", b"\x00\x01\xff", bytes(40)):
        record, _ = fetched("__consumer_offsets", [{"key": junk, "value": junk}])
        assert record["key"] == junk
        fetched(CLUSTER_METADATA, [{"key": None, "value": junk}])
        fetched("orders", [{"key": junk, "value": junk}], CONTROL)


@cases("number", ["nan", "inf", "-inf"])
def test_numbers_that_json_lacks_are_text(number: str) -> None:
    entry = next(each for each in METADATA if each.name == "ClientQuotaRecord")
    quota = write(entry.name, 0, {"entity": [], "key": "producer_byte_rate", "value": float(number)})
    value = b"\x01" + uvarint_bytes(entry.api_key or 0) + b"\0" + quota
    record, _ = fetched(CLUSTER_METADATA, [{"key": None, "value": value}])
    assert json.loads(dumps(record))["value_decoded"]["value"] == number
