"""What is said of batches that a broker refused: what their bytes show, and nothing where they show nothing."""

import gzip
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.cases import cases
from tests.findings.wire import Wire, pcap_of
from tests.test_mistakes import findings

CORRUPT, INVALID_RECORD, FORMAT, CODEC, TOO_LARGE, UNKNOWN, NOT_LEADER = 2, 87, 43, 76, 10, -1, 6


def message(offset: int = 0, magic: int = 1, key: bytes | None = b"k", value: bytes = b"v", codec: int = 0) -> bytes:
    """A message of a message set."""
    body = struct.pack(">bb", magic, codec) + (struct.pack(">q", 0) if magic else b"")
    for each in (key, value):
        body += struct.pack(">i", -1) if each is None else struct.pack(">i", len(each)) + each
    body = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", offset, len(body)) + body


def wrapper(*offsets: int) -> bytes:
    return message(value=gzip.compress(b"".join(message(each) for each in offsets)), key=None, codec=1)


def raw(data: bytes) -> dict[str, Any]:
    return {"size": len(data), "batches": [], "truncated": {"size": len(data), "data": data.hex()}}


def batch(*, key: bytes | None = b"k", headers: int = 0, **more: Any) -> dict[str, Any]:
    header = [{"key": "trace", "value": b"1"}] * headers
    return {
        "batches": [{"records": [{"offset": 0, "timestamp": 5, "key": key, "value": b"v", "headers": header}], **more}]
    }


def damaged() -> dict[str, Any]:
    return batch(crc=1, crc_valid=False)


def said(folder: Path, version: int, records: dict[str, Any], error: int) -> list[str]:
    wire = Wire()
    sent = [{"index": 3, "records": batch()}, {"index": 5, "records": records}]
    got = [{"index": 5, "error_code": error}, {"index": 3, "error_code": 0}]
    wire.exchange(
        1, "Produce", version, {"acks": 1, "topic_data": [{"name": "a", "partition_data": sent[version < 3 :]}]},
        {"responses": [{"name": "a", "partition_responses": got[: 1 if version < 3 else 2]}]},
    )  # fmt: skip
    found = [each for each in findings(Path(pcap_of(folder, wire))) if each.code == "refused-batch"]
    place = 0 if version < 3 else 1
    assert all(each.path == f"request.body.topic_data[0].partition_data[{place}].records" for each in found)
    return [each.message for each in found]


@pytest.mark.long
@cases(
    ("version", "records", "error", "words"),
    [
        (2, batch(), CORRUPT, "records of magic 2 in Produce v2, which has magic 1 at most"),
        (1, raw(message(magic=1)), CORRUPT, "records of magic 1 in Produce v1, which has magic 0 at most"),
        (2, raw(wrapper(0, 0, 0)), CORRUPT, "offsets of 3 inner messages do not rise (KIP-31)"),
        (2, raw(wrapper(4, 5)), CORRUPT, "inner offsets from 4 to 5: relative ones begin at 0"),
        (2, raw(message(key=None)), CORRUPT, "cleanup.policy=compact"),
        (3, batch(attributes=4), CORRUPT, "zstd in Produce v3, which brokers take from v7 on"),
        (5, batch(attributes=4), CODEC, "zstd in Produce v5"),
        (7, batch(key=None), CORRUPT, "a record has no key"),
        (9, batch(key=None), INVALID_RECORD, "a record has no key"),
        (7, damaged(), CORRUPT, "the checksum is not that of the batch's bytes, already here"),
        (7, batch(last_offset_delta=4), CORRUPT, "last_offset_delta is 4 of 1 record"),
        (7, {"batches": batch()["batches"] * 2}, CORRUPT, "2 batches for one partition"),
        (5, batch(producer_id=7, producer_epoch=0, base_sequence=0), FORMAT, "a producer id (enable.idempotence"),
        (7, batch(attributes=2), FORMAT, "the batch is compressed (snappy)"),
        (7, batch(headers=1), UNKNOWN, "a record has headers"),
        (7, batch(), TOO_LARGE, "the records are"),
    ],
)
def test_what_the_bytes_show(tmp_path: Path, version: int, records: dict[str, Any], error: int, words: str) -> None:
    [found] = said(tmp_path, version, records, error)
    assert words in found


@cases(
    ("version", "records", "error"),
    [
        (7, batch(), CORRUPT),
        (7, batch(), INVALID_RECORD),
        (7, batch(), UNKNOWN),
        (7, batch(), FORMAT),
        (7, batch(attributes=4), CORRUPT),
        (7, batch(key=None), NOT_LEADER),
        (7, batch(key=None), UNKNOWN),
        (7, batch(key=None), 0),
        (2, raw(wrapper(0, 1, 2)), CORRUPT),
        (2, raw(message()), CORRUPT),
        (2, raw(message()), UNKNOWN),
        (7, {"batches": []}, CORRUPT),
    ],
)
def test_bytes_that_show_nothing(tmp_path: Path, version: int, records: dict[str, Any], error: int) -> None:
    assert not said(tmp_path, version, records, error)
