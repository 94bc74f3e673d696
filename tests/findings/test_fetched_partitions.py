"""What is read of Fetch exchanges in columns is what decoding each of them gives."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dissector
from dissector.bulk.body_columns import BodyColumns
from dissector.capture_session import Capture
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.fetched_partitions import FetchedPartitionReader
from dissector.index.exchange_table import NO_FRAME
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.wire import uuid_text
from tests.conftest import PCAPS, SOME_BUNDLED
from tests.traffic import Turn, capture_of, conversation

Found = dict[int, list[tuple[Any, ...]]]
NAMES = st.sampled_from(["a", "b", "None", ""])
IDS = st.integers(0, 2).map(lambda number: uuid_text(bytes([number]) * 16))


@st.composite
def fetches(draw: st.DrawFn) -> list[bytes]:
    """A request and a response that name a few topics and partitions, some of them twice; some are damaged."""
    version = draw(st.integers(4, 18))
    name, names = ("topic_id", IDS) if version >= 13 else ("topic", NAMES)
    numbers, offsets = st.integers(0, 2), st.integers(-1, 3)
    asked = st.builds(lambda number, offset: {"partition": number, "fetch_offset": offset}, numbers, offsets)
    had = st.builds(
        lambda number, end, data: {"partition_index": number, "high_watermark": end, "records": data},
        numbers, offsets, st.one_of(st.none(), st.binary(max_size=9)),
    )  # fmt: skip
    topics, responses = (
        draw(
            st.lists(
                st.builds(lambda topic, some: {name: topic, "partitions": some}, names, st.lists(each)), max_size=3
            )
        )
        for each in (asked, had)
    )
    replica = {"replica_id": draw(st.sampled_from([-1, -1, -1, 0, 5]))}
    replica = replica if version < 15 else draw(st.sampled_from([{}, {"replica_state": replica}]))
    waits = {"max_wait_ms": draw(st.integers(-1, 500)), "min_bytes": 1}
    frames = [
        dissector.encode_request(
            "Fetch", version, {"topics": topics, **replica, **waits}, correlation_id=1, client_id="c"
        ),
        dissector.encode_response("Fetch", version, {"responses": responses}, correlation_id=1),
    ]
    if draw(st.integers(0, 3)):
        return frames
    side = draw(st.integers(0, 1))
    at = draw(st.integers((14, 8)[side], len(frames[side]) - 1))
    frames[side] = frames[side][:at] + bytes([draw(st.integers(0, 255))]) + frames[side][at + 1 :]
    return frames


def read_fetched(capture: Capture) -> tuple[Found, dict[int, int]]:
    """By row, the partitions and how long the response may wait, by columns."""
    indexer, table = capture.pipeline.indexer, capture.pipeline.indexer.table
    is_fetch = (table.api_key.values == ApiKey.FETCH) & (table.kind.values == 0) & (table.request.values != NO_FRAME)
    row = np.flatnonzero(is_fetch).astype(np.int64)
    some: Found = {each: [] for each in row.tolist()}
    if not len(row):
        return some, {}
    capture.connections.learn()
    none = np.zeros(len(row), np.int64)
    columns = {"row": row} | {
        name: getattr(table, name).values[row].astype(np.int64) for name in ("version", "request", "response")
    }  # fmt: skip
    bodies = BodyColumns(indexer, capture.pipeline.store, show_secrets=True)
    reader = FetchedPartitionReader(bodies, indexer, lambda named: _name(capture, named))
    found = reader.of(ExaminedRows(lambda _, name: columns.get(name, none)))
    for at, topic_at, partition_at, topic, *values in zip(*(column.tolist() for column in found.columns), strict=True):
        some[int(row[at])].append((topic_at, partition_at, found.topics[topic], *values))
    waits = {int(row[at]): int(found.max_wait_ms.values[at]) for at in np.flatnonzero(found.max_wait_ms.is_there)}
    return some, waits


def _name(capture: Capture, named: dict[str, Any]) -> str:
    names = capture.pipeline.indexer.conversation_state
    return named.get("topic") or names.topic_name(str(named.get("topic_id")))


def check(capture: Capture) -> int:
    """Hold columns to decoded exchanges; return how many partitions there are."""
    found, waits = read_fetched(capture)
    for exchange in capture.exchanges():
        row, request, response = exchange.row.number - 1, exchange.request, exchange.response
        if row not in found or request is None:
            continue
        sent: dict[str, Any] = {} if request.decoded.rest else request.body
        received: dict[str, Any] = {} if response is None or response.decoded.rest else response.body
        offsets = {
            (_name(capture, topic), each["partition"]): each["fetch_offset"]
            for topic in sent.get("topics") or ()
            for each in topic["partitions"]
        }
        expected = [
            (topic_at, partition_at, name, number, offsets[name, number], each["high_watermark"])
            for topic_at, topic in enumerate(received.get("responses") or ())
            for name in [_name(capture, topic)]
            for partition_at, each in enumerate(topic["partitions"] or ())
            for number in [each["partition_index"]]
            if (name, number) in offsets and sent.get("replica_state", sent).get("replica_id", -1) < 0
        ]
        assert found[row] == expected
        assert row not in waits or waits[row] == sent["max_wait_ms"]
    return sum(map(len, found.values()))


def opened(path: str) -> Capture:
    capture = Capture([path], show_secrets=True)
    for _ in capture.read():
        pass
    return capture


@pytest.mark.long
@given(st.lists(fetches(), min_size=1, max_size=3))
def test_partitions_are_those_of_decoded_exchanges(pairs: list[list[bytes]]) -> None:
    turns = [Turn(at == 0, frame) for frames in pairs for at, frame in enumerate(frames)]
    with TemporaryDirectory() as folder, opened(capture_of(Path(folder), conversation(turns))) as capture:
        check(capture)


@pytest.mark.parametrize("path", SOME_BUNDLED)
def test_partitions_of_recordings_are_those_of_decoded_exchanges(path: Path) -> None:
    with opened(str(path)) as capture:
        check(capture)


def test_a_consumer_s_recording_has_partitions() -> None:
    with opened(str(PCAPS / "franz-go.pcapng")) as capture:
        assert check(capture)
