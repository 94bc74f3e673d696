"""Heartbeats that change nothing are found by columns: those that are steady when they are decoded, and no others."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector import encode_request, encode_response
from dissector.bulk.body_columns import BodyColumns
from dissector.capture_session import Capture
from dissector.groups.group_event import EPOCH_APIS, group_fields, is_steady
from dissector.groups.steady_heartbeats import SteadyHeartbeats
from dissector.protocol.schema.error_codes import ErrorCode
from tests.cases import cases
from tests.conftest import PCAPS
from tests.traffic import Turn, capture_of, conversation

RECORDINGS = (
    "java-kip848.pcapng", "librdkafka-kip848.pcapng", "java-share.pcapng", "java-streams.pcapng",
    "groups/poll-timeout-kip848.pcapng.gz", "groups/frozen-kip848.pcapng.gz", "groups/same-instance-kip848.pcapng.gz",
)  # fmt: skip
CONSUMER = "ConsumerGroupHeartbeat"
STEADY: dict[str, Any] = {"group_id": "readers", "member_id": "one", "member_epoch": 3, "rebalance_timeout_ms": -1}


def found(path: str) -> tuple[list[bool], list[bool]]:
    """Which heartbeats with an epoch are found, and which are steady, decoded one by one."""
    with Capture([path]) as capture:
        list(capture.read())
        table = capture.pipeline.indexer.table
        rows = np.flatnonzero(np.isin(table.api_key.values, list(EPOCH_APIS)))
        bodies = BodyColumns(capture.pipeline.indexer, capture.pipeline.store, show_secrets=True)
        steady = []
        for row in rows.tolist():
            exchange = capture.exchange(row)
            assert exchange.request is not None
            answer = exchange.response.body if exchange.response is not None else {}
            said = group_fields(
                int(table.api_key.values[row]), exchange.row.version or 0, exchange.request.body, answer
            )
            steady.append(any(map(is_steady, said)))
        return SteadyHeartbeats(bodies).find(rows).tolist(), steady


@cases("name", RECORDINGS)
def test_of_recordings_all_that_are_steady_are_found(name: str) -> None:
    by_columns, steady = found(str(PCAPS / name))
    assert by_columns == steady
    assert {*steady} == {True, False}


def made(folder: Path, *exchanges: tuple[dict[str, Any], dict[str, Any] | None], version: int = 1) -> str:
    turns = []
    for number, (asked, answered) in enumerate(exchanges):
        turns.append(Turn(True, encode_request(CONSUMER, version, asked, correlation_id=number)))
        if answered is not None:
            turns.append(Turn(False, encode_response(CONSUMER, version, answered, correlation_id=number)))
    return capture_of(folder, conversation(turns))


def test_a_heartbeat_is_steady_if_its_epoch_stays_and_it_subscribes_to_nothing_new(tmp_path: Path) -> None:
    answer = {"member_epoch": 3, "heartbeat_interval_ms": 5_000}
    path = made(
        tmp_path,
        (STEADY, answer),
        (STEADY | {"subscribed_topic_names": []}, answer),
        (STEADY | {"subscribed_topic_regex": ""}, answer),
        (STEADY | {"subscribed_topic_names": ["orders"]}, answer),
        (STEADY | {"subscribed_topic_names": [""]}, answer),
        (STEADY | {"subscribed_topic_regex": "o.*"}, answer),
        (STEADY, answer | {"member_epoch": 4}),
        (STEADY | {"member_epoch": 0}, answer | {"member_epoch": 0}),
        (STEADY | {"member_epoch": -1}, answer | {"member_epoch": -1}),
        (STEADY | {"member_epoch": 1}, answer | {"member_epoch": 1}),
        (STEADY, answer | {"assignment": {"topic_partitions": []}}),
        (STEADY, None),
    )
    by_columns, steady = found(path)
    assert by_columns == [True, True, True, False, False, False, False, False, False, True, True, False]
    assert by_columns == steady


def test_one_that_may_be_read_in_two_ways_is_left_to_decoding(tmp_path: Path) -> None:
    """Version 0 of early brokers had other fields."""
    by_columns, steady = found(made(tmp_path, (STEADY, {"member_epoch": 3}), version=0))
    assert (by_columns, steady) == ([False], [True])


@cases("side", [0, 1])
def test_one_with_a_byte_too_many_is_left_to_decoding(tmp_path: Path, side: int) -> None:
    frames = [encode_request(CONSUMER, 1, STEADY), encode_response(CONSUMER, 1, {"member_epoch": 3})]
    for damaged in (False, True):
        if damaged:
            frames[side] = (len(frames[side]) - 3).to_bytes(4, "big") + frames[side][4:] + b"\0"
        path = capture_of(tmp_path, conversation([Turn(True, frames[0]), Turn(False, frames[1])]))
        assert found(path)[0] == [not damaged]


EPOCHS = st.sampled_from([-2, -1, 0, 1, 2, 2**31 - 1])
ASKED = st.fixed_dictionaries({
    "group_id": st.just("readers"), "member_id": st.just("one"), "member_epoch": EPOCHS,
    "subscribed_topic_names": st.none() | st.lists(st.sampled_from(["", "a"]), max_size=2),
    "subscribed_topic_regex": st.sampled_from([None, "", "a"]),
})  # fmt: skip
ANSWERED = st.fixed_dictionaries({
    "error_code": st.sampled_from([0, 0, int(ErrorCode.STALE_MEMBER_EPOCH)]), "member_epoch": EPOCHS,
})  # fmt: skip


@given(st.lists(st.tuples(ASKED, ANSWERED), min_size=1, max_size=6))
def test_what_is_found_is_steady_when_decoded(
    tmp_path_factory: pytest.TempPathFactory, exchanges: list[tuple[dict[str, Any], dict[str, Any]]]
) -> None:
    by_columns, steady = found(made(tmp_path_factory.mktemp("made"), *exchanges))
    errors = [bool(answered["error_code"]) for _, answered in exchanges]
    pairs = zip(by_columns, steady, errors, strict=True)
    assert all(is_found == is_so for is_found, is_so, has_error in pairs if not has_error)
