"""Secrets of records are masked in the bytes of frames and segments: wherever they are, in every codec and format."""

import json
import random
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from dissector.capture_session import Capture
from dissector.protocol.codec.writer import write
from dissector.protocol.embedded.context import EMPTY_CONTEXT
from dissector.protocol.embedded.topics import CLUSTER_METADATA, CLUSTER_METADATA_ID
from dissector.protocol.masking import mask_secrets
from dissector.protocol.message import read
from dissector.protocol.message_layout import request_layout, response_layout
from dissector.protocol.record_masking import masked_records, masked_unread
from dissector.protocol.records.batch import Batch
from dissector.protocol.records.entries import RecordsEntryKind, split_entries
from dissector.protocol.records.from_json import batch_bytes, message_bytes
from dissector.protocol.records.to_json import frame_budget, records_object
from tests.cases import cases
from tests.conftest import PCAPS
from tools.fuzz.leaks import leak, rare_faces
from tools.fuzz.logins import login_file, segment_file
from tools.fuzz.records_with_secrets import metadata_records
from tools.fuzz.seeds import framed

HIDDEN = b"hUnTeR2hUnTeR2"
CONFIG = b'{"properties":{"connection.password":"' + HIDDEN + b'","topics":"orders"}}'
RECORDS: list[dict[str, Any]] = [
    {"key": b"a", "value": CONFIG},
    {"value": b"x", "headers": [{"key": "Authorization", "value": HIDDEN}, {"key": "traceparent", "value": b"00-1"}]},
    {"value": b"untouched" * 20},
]


def objects(field: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = records_object(field)["batches"]
    return found


@pytest.mark.parametrize("codec", range(5))
def test_of_a_batch_only_the_secrets_are_masked(codec: int) -> None:
    field = batch_bytes({"records": RECORDS, "attributes": codec, "base_offset": 7})
    found = masked_records(field)
    assert len(found) == len(field)
    [batch], [before] = objects(found), objects(field)
    assert batch["crc_valid"]
    assert HIDDEN not in Batch.read(found).decompressed(frame_budget())
    one, two, three = batch["records"]
    json.loads(one["value"])
    assert one["value"].startswith(CONFIG[: CONFIG.index(HIDDEN)])
    assert one["value"].endswith(b'","topics":"orders"}}')
    assert two["headers"][1]["value"] == b"00-1"
    assert three == before["records"][2]
    assert masked_records(found) == found


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", range(4))
def test_of_a_message_of_old_formats_too(magic: int, codec: int) -> None:
    message: dict[str, Any] = {"magic": magic, "key": b"k", "value": CONFIG}
    field = message_bytes({"magic": magic, "attributes": codec, "messages": [message] * 3, "value": None})
    field = field if codec else message_bytes(message)
    found = masked_records(field)
    assert len(found) == len(field)
    [shown] = objects(found)
    assert shown["crc_valid"]
    assert HIDDEN.hex() not in json.dumps(shown, default=bytes.hex)


@pytest.mark.parametrize("codec", [0, 1, 3])
@pytest.mark.parametrize("cut", [1, 30, 140])
def test_of_a_batch_that_was_cut_what_may_be_a_secret_is_masked(codec: int, cut: int) -> None:
    field = batch_bytes({"records": RECORDS, "attributes": codec})
    found = masked_records(field[:-cut])
    assert HIDDEN[:6] not in found
    assert found[:61] == field[:61]


def test_what_has_no_secrets_is_the_same_object() -> None:
    for attributes in range(5):
        field = batch_bytes({"records": RECORDS[2:], "attributes": attributes})
        assert masked_records(field) is field
    assert masked_records(b"") == b""


@cases(("value", "is_masked"), [
    (bytes([1, 4, 0, 4, 2]) + b"1" + bytes([17]) + b"ssl.key.password" + bytes([15]) + HIDDEN + b"\0", True),
    (bytes([0, 4, 0, 4, 1, 17]) + b"ssl.key.password" + bytes([15]) + HIDDEN + b"\0", True),
    (bytes([1, 4, 1, 4, 1, 17]) + b"ssl.key.password" + bytes([15]) + HIDDEN + b"\0new", True),  # a newer version
    (bytes([1, 4, 0, 4, 1, 9]) + b"log.dirs" + bytes([15]) + HIDDEN + b"\0", False),  # a public config
    (bytes([1, 5, 0, 4, 1, 17]) + b"ssl.key.password" + bytes([15]) + HIDDEN + b"\0", False),  # of another type
    (bytes([2, 4, 0, 4, 1, 17]) + b"ssl.key.password" + bytes([15]) + HIDDEN + b"\0", False),  # of no frame's version
    (bytes([1, 4, 0, 4, 1, 17]) + b"ssl.key\1password" + bytes([15]) + HIDDEN + b"\0", False),  # no name
    (bytes([1, 4, 0, 4, 1, 17]) + b"ssl.key.password" + bytes([99]) + HIDDEN + b"\0", False),  # does not fit
])  # fmt: skip
def test_a_record_of_the_metadata_log_is_told_by_its_bytes(value: bytes, is_masked: bool) -> None:
    field = batch_bytes({"records": [{"value": b"x"}, {"key": b"key", "value": value}]})
    assert (HIDDEN not in masked_records(field)) == is_masked


@pytest.mark.parametrize("by_id", [False, True])
@pytest.mark.parametrize("name", ["ProduceRequest", "ShareFetchResponse"])
def test_records_of_the_log_are_masked_in_other_messages_too(name: str, by_id: bool) -> None:
    """What can't be read of the log is masked whole, as in a Fetch."""
    field = batch_bytes({"records": metadata_records(HIDDEN.decode(), HIDDEN.decode())})
    field = field[:-1] + b"\x07"  # tagged fields that are none
    topic = {"topic_id": CLUSTER_METADATA_ID} if by_id or name != "ProduceRequest" else {"name": CLUSTER_METADATA}
    if name == "ProduceRequest":
        version = 13 if by_id else 9
        body = write(name, version, {"topic_data": [topic | {"partition_data": [{"records": field}]}]})
        layout, data = request_layout(0, version), framed("request", 0, version, body)
    else:
        body = write(name, 1, {"responses": [topic | {"partitions": [{"records": field}]}]})
        layout, data = response_layout(78, 1, b""), framed("response", 78, 1, body)
    assert HIDDEN in data
    found = mask_secrets(data, len(data), layout, len(data), EMPTY_CONTEXT)
    assert HIDDEN not in found.data
    assert len(found.data) == len(data)


def test_a_copy_of_a_field_in_front_of_it_hides_nothing() -> None:
    field = batch_bytes({"records": RECORDS[:1]})
    body = write("ProduceRequest", 3, {"transactional_id": None, "topic_data": [
        {"name": field.decode("latin-1"), "partition_data": [{"records": field}]}]})  # fmt: skip
    raw = field.decode("latin-1").encode()
    body = body.replace(len(raw).to_bytes(2, "big") + raw, len(field).to_bytes(2, "big") + field)
    data = framed("request", 0, 3, body)
    layout = request_layout(0, 3)
    assert read(data, layout).body
    found = mask_secrets(data, len(data), layout, len(data), EMPTY_CONTEXT)
    [entry] = list(split_entries(field))
    assert found.data[-entry.end :].count(HIDDEN) == 0


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("make", [login_file, segment_file])
def test_no_face_shows_secrets_of_records(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.fuzz.logins.LOGINS", [_records()])
    for number in range(24):
        chance = random.Random(f"records {number}")
        data, secrets = make(chance, recorded=0) if make is login_file else make(chance)
        path = tmp_path / f"{number}.pcap"
        path.write_bytes(data)
        with Capture([str(path)]) as capture:
            deque(capture.read(), maxlen=0)
            assert len(capture)
            assert not leak(capture, secrets, *([rare_faces] if number % 8 == 0 else [])), number


def _records() -> Any:
    from tools.fuzz.logins import records

    return records


LOGS = sorted((PCAPS / "segments" / "__cluster_metadata-0").glob("*.log"))


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_a_piece_of_the_metadata_log_is_masked_like_the_whole(path: Path, tmp_path: Path) -> None:
    """Apache's own log, from each of its batches on, in a folder of another name."""
    data = path.read_bytes()
    whole = shown(path)
    folder = tmp_path / "orders-0"
    folder.mkdir()
    starts = [entry.start for entry in split_entries(data) if entry.kind is RecordsEntryKind.BATCH]
    assert len(starts) > 20
    for number in range(1, len(starts), 5):
        piece = folder / "copy.bak"
        piece.write_bytes(data[starts[number] :])
        assert shown(piece) == whole[number:], number


def shown(path: Path) -> list[object]:
    with Capture([str(path)]) as capture:
        deque(capture.read(), maxlen=0)
        return [row.request.body | {"position": 0} for row in capture.exchanges() if row.request is not None]


def test_fields_in_front_of_records_that_were_cut_are_shown() -> None:
    """Correlation id 11 and the length of the client id read like the beginning of a record of the metadata log."""
    whole = batch_bytes({"records": RECORDS, "attributes": 0, "base_offset": 7})
    body = {
        "transactional_id": None, "acks": -1, "timeout_ms": 30_000,
        "topic_data": [{"name": "orders", "partition_data": [{"index": n, "records": whole} for n in range(2)]}],
    }  # fmt: skip
    frame = framed("request", 0, 9, write("ProduceRequest", 9, body)).replace(
        bytes([0, 0, 0, 7]), bytes([0, 0, 0, 11]), 1
    )
    first = frame.index(whole)
    for kept in (first + 20, first + len(whole) // 2, frame.rindex(whole) + 5, len(frame) - 200):
        data = frame[:kept]
        found = mask_secrets(data, len(frame), request_layout(0, 9, data), kept, EMPTY_CONTEXT).data
        assert found[:first] == data[:first]
        assert HIDDEN not in found
        assert len(found) == kept
        if kept > first + len(whole):  # the first field is there: of it only the secrets are masked
            assert found[first : first + len(whole)] == masked_records(whole)


@pytest.mark.parametrize("codec", range(1, 5))
def test_of_a_frame_that_was_cut_whole_batches_without_secrets_are_shown(codec: int) -> None:
    plain = batch_bytes({"records": RECORDS[2:], "attributes": codec})
    secret = batch_bytes({"records": RECORDS, "attributes": codec})
    assert masked_unread(plain + plain[:50]) == plain + plain[:50]
    found = masked_unread(plain + secret + plain)
    assert HIDDEN[:6] not in found
    assert found[: len(plain)] == plain
    assert found[-len(plain) :] == plain


@pytest.mark.parametrize("head", [b"\0\x04\x02", b"\0\x0b\x02"])
def test_pieces_of_users_records_are_no_records_of_the_metadata_log(head: bytes) -> None:
    """Attributes, a timestamp and an offset, and the length of a key, may be as such a record begins."""
    value = b'{"customer":"' + b"teapot no. 7 " * 200 + b'"}'
    data = (head + b"\x10order-17\xb0\x20" + value + b"\0") * 3
    assert masked_unread(data) == data


@pytest.mark.parametrize("resource", ["1", "", "orders"])
@pytest.mark.parametrize("cut", [0, 1, 6, 10])
def test_pieces_of_the_metadata_log_are_masked_where_they_are_cut(resource: str, cut: int) -> None:
    for name in ("ssl.key.password", "x"):
        values = {"resource_type": 4, "resource_name": resource, "name": name, "value": HIDDEN.decode()}
        data = b"xx" + bytes([1, 4, 0]) + write("ConfigRecord", 0, values)
        assert HIDDEN[:6] not in masked_unread(data[: len(data) - cut])
    values = {"name": "alice", "salt": HIDDEN, "stored_key": HIDDEN, "server_key": HIDDEN, "mechanism": 2}
    data = b"xx" + bytes([1, 11, 0]) + write("UserScramCredentialRecord", 0, values)
    assert HIDDEN[:6] not in masked_unread(data[: len(data) - cut])


def test_what_is_around_a_2_is_no_batch_if_its_offset_would_be_of_text() -> None:
    batch = batch_bytes({"records": RECORDS, "attributes": 2})[:-20]
    assert HIDDEN[:6] not in masked_unread(batch)
    plain = batch_bytes({"records": RECORDS[2:] * 9, "attributes": 2})[:-20]
    assert masked_unread(plain) != plain
    for offset in (b"teapot, ", (1 << 48).to_bytes(8, "big")):
        assert masked_unread(offset + plain[8:]) == offset + plain[8:]
    largest = ((1 << 48) - 1).to_bytes(8, "big")
    assert masked_unread(largest + plain[8:]) != largest + plain[8:]
