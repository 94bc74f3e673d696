"""Rows of partitions by columns are those made of JSON, also where the sides differ, or one names a partition twice."""

from pathlib import Path
from typing import Any

import pytest

from tests.findings.conversations import Talk, written
from tests.pipeline.test_packed_rows import assert_same
from tests.pipeline.without_spark import tables

Object = dict[str, Any]
ID = "AAAAAAAAQACAAAAAAAAACg"


def produce(talk: Talk, at: int, topic: str, asked: list[int], answered: list[int], error: int = 0) -> None:
    talk.ask(
        at, "Produce", 9,
        {"transactional_id": "tx" if error else None, "acks": -1, "timeout_ms": 1, "topic_data": [
            {"name": topic, "partition_data": [{"index": each, "records": None} for each in asked]}
        ]},
        {"throttle_time_ms": 0, "responses": [
            {"name": topic, "partition_responses": [
                {"index": each, "error_code": error, "base_offset": 7, "log_start_offset": 3} for each in answered
            ]}
        ]},
    )  # fmt: skip


def fetch(talk: Talk, at: int, version: int, topic: Object, asked: list[int], answered: list[int]) -> None:
    talk.ask(
        at, "Fetch", version,
        {"max_wait_ms": 5, "min_bytes": 1, "isolation_level": 1, "forgotten_topics_data": [], "topics": [
            topic | {"partitions": [
                {"partition": each, "fetch_offset": 40 + each, "partition_max_bytes": 9} for each in asked
            ]}
        ]},
        {"error_code": 0, "session_id": 0, "responses": [
            topic | {"partitions": [
                {"partition_index": each, "error_code": 0, "high_watermark": 50, "aborted_transactions": None,
                 "records": None} for each in answered
            ]}
        ]},
    )  # fmt: skip


def commit(talk: Talk, at: int, asked: list[int], answered: list[int]) -> None:
    talk.ask(
        at, "OffsetCommit", 8,
        {"group_id": "g", "member_id": "m", "topics": [
            {"name": "t", "partitions": [{"partition_index": each, "committed_offset": each} for each in asked]}
        ]},
        {"topics": [
            {"name": "t", "partitions": [{"partition_index": each, "error_code": 22} for each in answered]}
        ]},
    )  # fmt: skip


def rows(files: list[Path]) -> list[tuple[Any, ...]]:
    names = ("api", "topic", "partition", "group_id", "acks", "isolation_level", "offset", "high_watermark", "error")
    return [tuple(row.get(name) for name in names) for row in tables(files)["partitions"]]


def test_sides_that_differ_and_names_that_are_odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk()
    produce(talk, 0, "orders", [2, 0, 1], [1, 3, 0, 2])
    produce(talk, 10, "orders", [0, 0], [0])
    produce(talk, 20, "orders", [5], [5, 5], error=3)
    produce(talk, 30, "tøpic", [4], [4])
    produce(talk, 40, 'quo"te\n', [4], [])
    produce(talk, 50, "errors", [6, 7], [7, 6], error=3)
    fetch(talk, 60, 12, {"topic": "orders"}, [3, 1], [1])
    fetch(talk, 70, 12, {"topic": "orders"}, [], [2])
    fetch(talk, 80, 13, {"topic_id": ID}, [8], [8])
    commit(talk, 90, [1, 2], [2, 1])
    files = [Path(written(tmp_path, talk))]
    assert_same(files, 1, monkeypatch)
    found = rows(files)
    assert found[:4] == [
        ("Produce", "orders", 2, None, -1, None, 7, None, None),
        ("Produce", "orders", 0, None, -1, None, 7, None, None),
        ("Produce", "orders", 1, None, -1, None, 7, None, None),
        ("Produce", "orders", 3, None, -1, None, 7, None, None),
    ]
    assert {row[1] for row in found} == {"orders", "tøpic", 'quo"te\n', "errors", ID, "t"}
    assert ("Fetch", "orders", 3, None, None, "read_committed", 43, None, None) in found
    assert ("Fetch", "orders", 2, None, None, "read_committed", None, 50, None) in found
    assert ("OffsetCommit", "t", 2, "g", None, None, 2, None, "ILLEGAL_GENERATION") in found
