"""Fetch sessions: the partitions of a Fetch that names none are those of its session (KIP-227)."""

import json
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector import encode_request
from dissector.capture_session import Capture
from dissector.exchange.to_json import json_line
from dissector.index import fetch_sessions
from dissector.index.exchange_table import RowsByConnection
from tests.conftest import PCAPS
from tests.index.test_indexer import Fed
from tests.traffic import Turn, capture_of, conversation

VERSION = 11


def fetch(
    number: int, epoch: int, topics: dict[str, list[int]], forgotten: dict[str, list[int]], version: int = VERSION
) -> bytes:
    body = {
        "session_id": 0 if epoch == 0 else 77,
        "session_epoch": epoch,
        "topics": [
            {"topic": topic, "partitions": [{"partition": n} for n in numbers]} for topic, numbers in topics.items()
        ],
        "forgotten_topics_data": [{"topic": topic, "partitions": numbers} for topic, numbers in forgotten.items()],
    }
    return encode_request("Fetch", version, body, correlation_id=number, client_id="tests")


def fetched(path: str, order: random.Random | None = None) -> list[Any]:
    """What each Fetch of a capture asks for, looked at in order or in any."""
    with Capture([path]) as capture:
        list(capture.read())
        numbers = list(range(len(capture)))
        if order:
            order.shuffle(numbers)
        found = {number: capture.exchange(number).fetched for number in numbers}
    return [found[number] for number in sorted(found)]


steps = st.lists(
    st.tuples(st.sampled_from(["begin", "add", "forget", "nothing"]), st.sampled_from("ab"), st.integers(0, 3)),
    max_size=20,
)


@pytest.mark.slow
@given(steps=steps, seed=st.integers(0, 99))
def test_any_session_looked_at_in_any_order(
    tmp_path_factory: Any, steps: list[tuple[str, str, int]], seed: int
) -> None:
    """A plain set beside it says what must be found."""
    expected: list[dict[str, list[int]] | None] = []
    turns: list[Turn] = []
    model: set[tuple[str, int]] | None = None
    epoch = 1
    for n, (step, topic, partition) in enumerate([("begin", "a", 0), *steps]):
        named = {topic: [partition]} if step in ("begin", "add") else {}
        forgotten = {topic: [partition]} if step == "forget" else {}
        epoch = 0 if step == "begin" else epoch + 1
        turns.append(Turn(True, fetch(n, epoch, named, forgotten)))
        if step == "begin":
            model = {(topic, partition)}
            expected.append(None)
            continue
        assert model is not None
        model = model | {(topic, partition)} if step == "add" else model
        model = model - {(topic, partition)} if step == "forget" else model
        expected.append({each: sorted(n for t, n in model if t == each) for each in {t for t, _ in model}})
    path = capture_of(tmp_path_factory.mktemp("fetch"), conversation(turns))
    assert fetched(path) == expected
    assert fetched(path, random.Random(seed)) == expected


def test_a_session_whose_beginning_was_not_captured_is_not_known(tmp_path: Path) -> None:
    path = capture_of(tmp_path, conversation([Turn(True, fetch(n, n + 5, {}, {})) for n in range(3)]))
    assert fetched(path) == [None, None, None]


@pytest.mark.parametrize("most", [10, 5_000], ids=["longer than is read back", "shorter"])
def test_a_session_that_began_before_the_capture_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """And not, for each Fetch, all the way back again. What begins later is known."""
    monkeypatch.setattr(fetch_sessions, "MAX_REQUESTS", most)
    reads: list[int] = []
    request = fetch_sessions.FetchSessions._request
    monkeypatch.setattr(
        fetch_sessions.FetchSessions, "_request", lambda self, row: reads.append(row) or request(self, row)
    )
    turns = [Turn(True, fetch(n, n + 5, {}, {})) for n in range(100)]
    turns += [Turn(True, fetch(100, 0, {"a": [1]}, {})), Turn(True, fetch(101, 1, {}, {}))]
    assert fetched(capture_of(tmp_path, conversation(turns))) == [None] * 101 + [{"a": [1]}]
    assert len(reads) == len(turns)


def test_a_way_back_that_is_too_long_makes_nothing_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_sessions, "MAX_REQUESTS", 3)
    steps = [fetch(0, 0, {"a": [0]}, {}), *(fetch(n, n, {"a": [n]}, {}) for n in range(1, 8))]
    path = capture_of(tmp_path, conversation([Turn(True, data) for data in steps]))
    with Capture([path]) as capture:
        list(capture.read())
        assert capture.exchange(1).fetched == {"a": [0, 1]}
        assert capture.exchange(7).fetched is None  # what it was at the second is too long ago
        assert capture.exchange(2).fetched == {"a": [0, 1, 2]}
        assert capture.exchange(5).fetched == {"a": [0, 1, 2, 3, 4, 5]}


def test_what_is_remembered_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_sessions, "CACHE_SIZE", 2)
    packets = [
        packet
        for port in range(5)
        for packet in conversation(
            [Turn(True, fetch(n, n, {"a": [n]}, {})) for n in range(3)], client=("10.0.0.1", 40_001 + port)
        )
    ]
    assert fetched(capture_of(tmp_path, packets)) == [None, {"a": [0, 1]}, {"a": [0, 1, 2]}] * 5


def test_a_recording_says_what_its_empty_fetches_ask_for() -> None:
    with Capture([str(PCAPS / "java.pcapng")]) as capture:
        lines = [json.loads(json_line(exchange)) for exchange in capture.exchanges() if exchange.fetched]
    assert lines
    assert all(line["request"]["fetch_session"] for line in lines)


def test_the_list_says_it_where_the_fetch_names_nothing(tmp_path: Path) -> None:
    turns = [Turn(True, fetch(0, 0, {"orders": [0, 1, 2]}, {})), Turn(True, fetch(1, 1, {}, {}))]
    with Capture([capture_of(tmp_path, conversation(turns))]) as capture:
        first, second = capture.exchanges()
    assert first.row.info == "orders[0..2]"
    assert second.row.info == "session orders[0..2]"


def test_many_rows_at_once_know_what_a_session_forgets(tmp_path: Path) -> None:
    steps = [({"a": [0, 1, 2]}, {}), ({}, {}), ({}, {"a": [1]}), ({}, {}), ({"b": [4]}, {}), ({}, {"a": [0]}), ({}, {})]
    turns = [Turn(True, fetch(n, n, *step)) for n, step in enumerate(steps)]
    with Capture([capture_of(tmp_path, conversation(turns))]) as capture:
        infos = [exchange.row.info for exchange in capture.exchanges()]
        assert list(capture.messages.info(range(len(infos)))) == infos
    assert infos[3] == "session a[0,2]"


def test_rows_asked_for_twice_or_backward_are_read_about_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an export does, which needs requests and responses in the order of time."""
    reads: list[int] = []
    request = fetch_sessions.FetchSessions._request
    monkeypatch.setattr(
        fetch_sessions.FetchSessions, "_request", lambda self, row: reads.append(row) or request(self, row)
    )
    count = 300
    path = capture_of(tmp_path, conversation([Turn(True, fetch(n, n, {"a": [n]}, {})) for n in range(count)]))
    with Capture([path]) as capture:
        list(capture.read())
        for row in range(1, count - 1):
            for each in (row, row + 1, row, row - 1):
                fetched = capture.exchange(each).fetched
                assert fetched == (None if not each else {"a": list(range(each + 1))})
    assert len(reads) < 2 * count


@pytest.mark.parametrize("version", [7, 12])
def test_sessions_are_known_from_version_7_on(tmp_path: Path, version: int) -> None:
    turns = [Turn(True, fetch(0, 0, {"a": [1]}, {}, version)), Turn(True, fetch(1, 1, {}, {}, version))]
    assert fetched(capture_of(tmp_path, conversation(turns))) == [None, {"a": [1]}]


def test_a_checkpoint_has_the_set_before_what_is_pending_and_no_list_of_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = capture_of(tmp_path, conversation([Turn(True, fetch(n, n, {"a": [n]}, {})) for n in range(6)]))
    with Capture([path]) as capture:
        list(capture.read())
        indexer = capture.pipeline.indexer
        by_connection = RowsByConnection(indexer.table)
        sessions = fetch_sessions.FetchSessions(indexer.frames, indexer.table, by_connection)
        now, reads = indexer.generation, list[int]()
        assert sessions.retain(np.array([0]), np.array([3, 5]), now).tolist() == [3, 4, 5]
        assert not sessions._known_fetches
        request = sessions._request
        monkeypatch.setattr(sessions, "_request", lambda row: reads.append(row) or request(row))
        assert sessions.partitions(4, now + 1) == {"a": {0, 1, 2, 3, 4}}
        assert sorted(reads) == [3, 4]
        assert sessions.retain(np.array([0]), np.array([], np.int64), now + 2).tolist() == []
        assert sessions.retain(np.array([0]), np.array([0]), now + 2).tolist() == [0, 1, 2, 3, 4, 5]


def test_a_set_is_computed_with_the_rows_that_have_come_since() -> None:
    fed = Fed().feed(*((0, n, fetch(n, n, {"a": [n]}, {})) for n in range(2)))
    by_connection = RowsByConnection(fed.indexer.table)
    sessions = fetch_sessions.FetchSessions(fed.indexer.frames, fed.indexer.table, by_connection)
    assert sessions.partitions(1, fed.indexer.generation) == {"a": {0, 1}}
    fed.feed((0, 2, fetch(2, 2, {"a": [2]}, {})))
    assert sessions.partitions(2, fed.indexer.generation) == {"a": {0, 1, 2}}


def test_threads_that_ask_in_turn_get_what_each_row_has() -> None:
    """One prints rows, another one counts them."""
    fed = Fed().feed(*((0, n, fetch(n, n, {f"t{n}": [n]}, {f"t{n - 1}": [n - 1]} if n % 3 else {})) for n in range(40)))
    by_connection = RowsByConnection(fed.indexer.table)
    sessions = fetch_sessions.FetchSessions(fed.indexer.frames, fed.indexer.table, by_connection)
    expected = {row: sessions.partitions(row, 0) for row in range(1, 40)}

    def ask(seed: int) -> bool:
        rows = random.Random(seed).sample(range(1, 40), 39)
        return all(sessions.partitions(row, seed + 2 * turn) == expected[row] for turn in range(100) for row in rows)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(2) as threads:
            assert all(threads.map(ask, (1, 2)))
    finally:
        sys.setswitchinterval(interval)
