"""What JSON makes of values that are rare: numbers beyond 64 bits, formats inside themselves, sections that burst."""

import json
import struct
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dissector.capture_session import Capture
from dissector.exchange.to_json import json_line
from dissector.protocol.codec.writer import write
from dissector.protocol.records.compression import CODECS
from dissector.protocol.schema.api_keys import ApiKey
from tests.traffic import Turn, capture_of, conversation, request


def line_of(folder: Path, *, api_key: int, version: int, body: bytes, show_secrets: bool = False) -> dict[str, Any]:
    """The request's object, as a program reads it."""
    flexible = b"\x00" if api_key == ApiKey.ENVELOPE else b""
    request_frame = request(7, api_key=api_key, version=version, body=flexible + body)
    path = capture_of(folder, conversation([Turn(True, request_frame)]))
    with Capture([path], show_secrets=show_secrets) as capture:
        [exchange] = capture.exchanges()
        value: dict[str, Any] = json.loads(json_line(exchange))
    return value["request"]["body"]


def produced(folder: Path, *fields: bytes, show_secrets: bool = False) -> list[dict[str, Any]]:
    """The batches of a Produce request with one partition a field."""
    partitions = [{"index": n, "records": field} for n, field in enumerate(fields)]
    topics = [{"name": "orders", "partition_data": partitions}]
    data = write("ProduceRequest", 3, {"acks": 1, "topic_data": topics})
    body = line_of(folder, api_key=0, version=3, body=data, show_secrets=show_secrets)
    return [batch for each in body["topic_data"][0]["partition_data"] for batch in each["records"]["batches"]]


def test_times_and_offsets_below_64_bits_are_numbers_all_the_same(tmp_path: Path) -> None:
    least = -(2**63)
    record = b"\x20\x00" + b"\xff" * 9 + b"\x01" + b"\x01" + b"\x01" + b"\x02v" + b"\x00"  # time least, offset -1
    head = struct.pack(">hiqqqhii", 0, 0, least, 0, -1, -1, -1, 1)
    raw = struct.pack(">qiibI", least, len(head) + len(record) + 9, 0, 2, 0) + head + record
    [batch] = produced(tmp_path, raw)
    assert batch["records"] == [
        {"offset": least - 1, "timestamp": 2 * least, "key": None, "value": "76", "headers": []}
    ]


def test_an_envelope_in_an_envelope_is_not_opened(tmp_path: Path) -> None:
    inner = request(1, api_key=3, version=0)[4:]
    for _ in range(400):
        values = {"request_data": inner, "request_principal": None, "client_host_address": b"1234"}
        outer = write("EnvelopeRequest", 0, values)
        inner = request(1, api_key=ApiKey.ENVELOPE, version=0, body=b"\x00" + outer)[4:]
    assert "request_data_decoded" not in line_of(tmp_path, api_key=ApiKey.ENVELOPE, version=0, body=outer)


@pytest.mark.long
@pytest.mark.slow
def test_all_sections_of_a_frame_share_what_they_may_become(tmp_path: Path) -> None:
    codec = 1
    content = Random(0).randbytes(700_000)  # zeros alone would be a bomb
    section = CODECS[codec].compress(content.ljust(60 << 20, b"\0"))
    head = struct.pack(">hiqqqhii", codec, 0, 0, 0, -1, -1, -1, 1)
    raw = struct.pack(">qiibI", 0, len(head) + len(section) + 9, 0, 2, 0) + head + section
    errors = [batch["error"] for batch in produced(tmp_path, *[raw] * 6, show_secrets=True)]
    assert ["larger than" in words for words in errors] == [False] * 4 + [True] * 2
