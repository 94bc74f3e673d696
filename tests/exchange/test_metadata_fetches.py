"""Which fetches are of the metadata log: those that name it, and not those in which other bytes look like its name."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import dissector
from dissector.capture_session import Capture
from dissector.exchange.to_json import json_line
from tests.conftest import PCAPS
from tests.traffic import Turn, capture_of, conversation

OTHER_ID = "cc5YhV7MQzG5zyNQ-Qksgg"
LOG_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
BY_ID = 13
"""The first version that names topics by their ids."""
LOOKS_LIKE_THE_LOG = (bytes(15) + b"\x01", b"__cluster_metadata", b"ter_met")


def fetch(version: int, name: str, topic_id: str, value: bytes, offset: int = 0) -> list[Turn]:
    """A fetch of one record from partition 0, at leader epoch 0."""
    topic = {"topic": name} if version < BY_ID else {"topic_id": topic_id}
    record = {"offset": offset, "timestamp": 1_000, "key": None, "value": value.hex(), "headers": []}
    fetched = {"batches": [{"base_offset": offset, "magic": 2, "attributes": 0, "records": [record]}]}
    partition = {"partition": 0, "current_leader_epoch": 0, "fetch_offset": offset, "partition_max_bytes": 1}
    asked = {"topics": [{**topic, "partitions": [partition]}]}
    answer = {"responses": [{**topic, "partitions": [{"partition_index": 0, "records": fetched}]}]}
    return [
        Turn(True, dissector.encode_request("Fetch", version, asked, correlation_id=1)),
        Turn(False, dissector.encode_response("Fetch", version, answer, correlation_id=1)),
    ]


def values(path: str) -> Iterator[bytes | None]:
    with dissector.open(path) as capture:
        yield from (record.value for record in capture.records())


@pytest.mark.parametrize("version", [9, 11, 12, 13, 18])
def test_a_fetch_from_offset_1_is_not_of_the_metadata_log(version: int, tmp_path: Path) -> None:
    """Partition 0, epoch 0 and offset 1 are the bytes of the log's topic id."""
    path = capture_of(tmp_path, conversation(fetch(version, "orders", OTHER_ID, b"shown", offset=1)))
    assert list(values(path)) == [b"shown"]
    with Capture([path]) as capture:
        [line] = map(json_line, capture.exchanges())
        assert b"shown".hex().encode() in line
        assert b"masked" not in line


@pytest.mark.parametrize("like", LOOKS_LIKE_THE_LOG)
@pytest.mark.parametrize("version", [11, 18])
def test_records_may_look_like_the_metadata_log(version: int, like: bytes, tmp_path: Path) -> None:
    path = capture_of(tmp_path, conversation(fetch(version, "orders", OTHER_ID, b"\x01" + like)))
    assert list(values(path)) == [b"\x01" + like]


@pytest.mark.parametrize("version", [11, 18])
def test_what_is_of_the_metadata_log_or_may_be_is_masked(version: int, tmp_path: Path) -> None:
    for name, topic_id in (("__cluster_metadata", LOG_ID), ("__cluster_metadatb", "AAAAAAAAAAAAAAAAAAAAAw")):
        path = capture_of(tmp_path, conversation(fetch(version, name, topic_id, b"secret")))
        assert list(values(path)) == [], name
        with Capture([path]) as capture:
            assert all(b"secret".hex().encode() not in json_line(each) for each in capture.exchanges())


def test_what_a_follower_fetches_from_offset_1_is_shown() -> None:
    with dissector.open(PCAPS / "two-brokers.pcapng") as capture:
        fetched = [
            record for record in capture.records("topic == java-replicated && api == Fetch") if record.offset == 1
        ]
    assert fetched
    assert all(record.value for record in fetched)
