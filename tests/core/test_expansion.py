"""What all frames of a run become together is bounded, and what was left out is said."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import lz4.frame
import numpy as np
import pytest

import dissector
from dissector.analysis.record_list import RecordList
from dissector.capture_session import Capture, stage_pipeline
from dissector.core.expansion import AS_OBJECT, FEWEST_BYTES, LISTED, MOST_LISTED, NEW, RUN, TRACED, USED_UP, Expansion
from dissector.core.limits import DEFAULT
from dissector.protocol.records.batch import HEADER
from dissector.protocol.records.compression import CODECS, DecompressionBudget, DecompressionError
from dissector.protocol.records.from_json import records_bytes
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.records.tracing import RecordTracer
from dissector.protocol.tree import ByteSource, Node
from dissector.records.record import records_of
from tests.cases import cases
from tests.index.test_fetch_sessions import fetch
from tests.traffic import Turn, capture_of, conversation, response

LZ4, ZSTD = 3, 4
PLAIN = bytes(1 << 20)
SECTION = CODECS[ZSTD].compress(PLAIN)


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Iterator[Expansion]:
    """The run of this process, with room for one section and a half."""
    for name in ("_most", "_size"):
        monkeypatch.setattr(RUN, name, 3 * len(PLAIN) // 2)
    RUN.begin()
    yield RUN
    monkeypatch.undo()
    RUN.begin()


def test_what_few_bytes_become_is_taken_from_the_room_of_the_run(room: Expansion) -> None:
    assert frame_budget().decompressed(ZSTD, SECTION) == PLAIN
    assert room.has_room
    assert frame_budget().decompressed(ZSTD, SECTION) == PLAIN
    assert not room.has_room
    assert not room.complaint()
    with pytest.raises(DecompressionError, match=USED_UP):
        frame_budget().decompressed(ZSTD, SECTION)
    assert "compressed records were not decompressed" in room.complaint()
    room.begin()
    assert frame_budget().decompressed(ZSTD, SECTION) == PLAIN
    assert not room.complaint()


def test_what_becomes_a_hundred_times_as_large_takes_nothing(room: Expansion) -> None:
    room.take(10, 10 * DEFAULT.packed_ratio)
    assert room._numbers[0] == room._size
    room.take(10, 10 * DEFAULT.packed_ratio + 1)
    assert room._numbers[0] == room._size - 1


def test_uncompressed_records_are_always_read(room: Expansion) -> None:
    room.take(0, 1 << 40)
    assert frame_budget().decompressed(0, b"abc") == b"abc"
    with pytest.raises(DecompressionError):
        DecompressionBudget(9, 9, replace(DEFAULT)).decompressed(ZSTD, SECTION)


def produce(number: int, zeros: int) -> list[Turn]:
    """A Produce of a record of so many zeros, compressed as Java's client does, which the kernel reads; a response."""
    record = {"offset": 0, "timestamp": 0, "key": None, "value": "00" * zeros, "headers": []}
    batch = {"base_offset": 0, "magic": 2, "attributes": 0, "base_timestamp": 0, "records": [record]}
    plain = records_bytes({"batches": [batch]})
    section = lz4.frame.compress(plain[HEADER.size :], block_linked=False, store_size=False)
    head = list(HEADER.unpack_from(plain))
    head[1], head[5] = HEADER.size - 12 + len(section), LZ4
    data = [{"name": "a", "partition_data": [{"index": 0, "records": HEADER.pack(*head) + section}]}]
    asked = dissector.encode_request("Produce", 9, {"acks": -1, "topic_data": data}, correlation_id=number)
    answer = dissector.encode_response("Produce", 9, {"responses": []}, correlation_id=number)
    return [Turn(True, asked), Turn(False, answer)]


def nodes_of(records: int, codec: int) -> int:
    """How many records the tree of a batch of so many has."""
    record = {"timestamp": 0, "key": None, "value": "00", "headers": []}
    made = [record | {"offset": number} for number in range(records)]
    batch = {"base_offset": 0, "magic": 2, "attributes": codec, "base_timestamp": 0, "records": made}
    data = records_bytes({"batches": [batch]})
    sources = [ByteSource(0, "frame", data)]
    root = Node("records", "records", "RECORDS", 0, len(data))
    RecordTracer(sources, frame_budget()).field(data, 0, len(data), root)
    return sum(node.type == "RECORD" for node in root.walk())


def test_trees_of_compressed_records_take_room(room: Expansion) -> None:
    """A record of one compressed byte becomes ten nodes."""
    most = room._size // TRACED
    assert nodes_of(most, ZSTD) == most
    assert room.has_room  # as its bytes on the wire allow some
    assert nodes_of(most, ZSTD) == most
    assert not room.has_room
    assert nodes_of(most, ZSTD) == 0
    assert "compressed records were not decompressed" in room.complaint()


def test_trees_of_plain_records_take_none(room: Expansion) -> None:
    for _ in range(3):
        assert nodes_of(room._size // TRACED, 0) == room._size // TRACED
    assert room._numbers[0] == room._size


@cases(("zeros", "are_written"), [
    (len(PLAIN), [True, True, True, False]), (10 * DEFAULT.packed_ratio, [True, True, True, True]),
])  # fmt: skip
def test_sections_that_the_kernel_decompresses_are_taken_from_the_room(
    zeros: int, are_written: list[bool], tmp_path: Path, room: Expansion
) -> None:
    room.begin()
    path = capture_of(tmp_path, conversation([turn for number in range(4) for turn in produce(number, zeros)]))
    with Capture([path]) as capture:
        list(capture.read())
        rows = (capture.messages.json_lines(range(row, row + 1)) for row in range(4))
        found = [b"".join(bytes(part) for text in row for part in text.parts() if part) for row in rows]
    assert [b"00" * zeros in line for line in found] == are_written
    assert room.has_room == all(are_written)


def test_sessions_beyond_the_room_are_not_listed_and_that_is_said(tmp_path: Path, room: Expansion) -> None:
    turns = [Turn(True, fetch(0, 0, {"a": list(range(9))}, {})), Turn(False, response(0, bytes(14)))]
    for number in (1, 2):
        turns += [Turn(True, fetch(number, number, {}, {})), Turn(False, response(number, bytes(14)))]
    path = capture_of(tmp_path, conversation(turns))
    room._numbers[0] = 1
    with Capture([path]) as capture:
        list(capture.read())
        lines = [bytes(part) for text in capture.messages.json_lines(range(3)) for part in text.parts() if part]
    found = [json.loads(line)["request"].get("fetch_session") for line in b"".join(lines).splitlines()]
    assert found == [None, [{"topic": "a", "partitions": list(range(9))}], None]
    assert "partitions of fetch sessions were not listed" in room.complaint()


def test_a_list_that_is_made_anew_costs_as_much_as_sixteen(room: Expansion) -> None:
    """Of sessions of several connections, too, whose Fetches come in turn."""
    room._numbers[0] = 1_000
    one, other = {"a": [1]}, {"a": [1]}
    for session, size, is_left in ((one, 10, 840), (one, 10, 830), (other, 10, 670), (one, 30, 640), (other, 639, 1)):
        room.take_session(session, size)
        assert room._numbers[0] == is_left
    assert room.has_room
    room.take_session(one, 1)
    assert not room.has_room


def test_sessions_that_are_too_many_to_be_kept_are_made_anew(room: Expansion) -> None:
    sessions = [{"a": [n]} for n in range(3)]
    for session in sessions:
        room.take_session(session, MOST_LISTED // 2)
    room._numbers[0] = 100
    for session, size, is_left in ((sessions[2], 1, 99), (sessions[0], 1, 83)):
        room.take_session(session, size)
        assert room._numbers[0] == is_left


def test_sessions_of_many_partitions_are_not_kept_for_the_few_bytes_that_are_listed(room: Expansion) -> None:
    """Those of one topic, whose name alone a filter on topics reads."""
    first = {"a": list(range(MOST_LISTED // 2))}
    for session in (first, {"a": list(range(MOST_LISTED // 2))}, {"a": [1]}):
        room.take_session(session, LISTED)
    room._numbers[0] = 1_000
    room.take_session(first, LISTED)
    assert room._numbers[0] == 1_000 - NEW * LISTED


def test_the_room_grows_with_what_is_read_up_to_its_most() -> None:
    room = Expansion()
    assert room._numbers[0] == DEFAULT.most_run_expansion  # of bytes of a program nobody knows how many come
    room.grow(1_000)
    room.take(0, 5)
    assert room._numbers[0] == DEFAULT.run_expansion + 1_000 * DEFAULT.run_expansion_ratio - 5
    room.grow(1)
    assert room._numbers[0] == DEFAULT.run_expansion + 1_001 * DEFAULT.run_expansion_ratio - 5
    room.grow(1 << 40)
    assert room._numbers[0] == DEFAULT.most_run_expansion - 5
    room.begin()
    assert room._numbers[0] == DEFAULT.most_run_expansion


def test_a_capture_has_the_room_of_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = Expansion()
    monkeypatch.setattr(stage_pipeline, "RUN", room)
    path = capture_of(tmp_path, conversation([turn for number in range(3) for turn in produce(number, 9)]))
    with Capture([path]) as capture:
        list(capture.read())
    assert room._size == DEFAULT.run_expansion + DEFAULT.run_expansion_ratio * Path(path).stat().st_size
    with Capture([path]):
        assert room._size == DEFAULT.run_expansion + 2 * DEFAULT.run_expansion_ratio * Path(path).stat().st_size


def test_a_filter_lists_no_sessions_beyond_the_room(tmp_path: Path, room: Expansion) -> None:
    turns = [Turn(True, fetch(0, 0, {"a": list(range(90))}, {})), Turn(False, response(0, bytes(14)))]
    for number in range(1, 4):  # each changes the session
        turns += [Turn(True, fetch(number, number, {"a": [90 + number]}, {})), Turn(False, response(number, bytes(14)))]
    path = capture_of(tmp_path, conversation(turns))
    with Capture([path]) as capture:
        assert [each.fields.number for each in capture.exchanges("partition == 9")] == [1, 2, 3, 4]
        assert not room.complaint()
        room._numbers[0] = LISTED * NEW * (91 + 1) + 1
        assert [each.fields.number for each in capture.exchanges("partition == 9")] == [1, 2, 3]
    assert "partitions of fetch sessions were not listed" in room.complaint()


def test_records_that_take_less_than_any_real_one_take_room(room: Expansion) -> None:
    room.take_read(FEWEST_BYTES * 10, 10, AS_OBJECT)
    assert room._numbers[0] == room._size
    room.take_read(FEWEST_BYTES * 10 - 1, 11, AS_OBJECT)
    assert room._numbers[0] == room._size - 2 * AS_OBJECT


@pytest.mark.parametrize("way", ["listed", "filtered"])
def test_lists_of_tiny_records_end_with_the_room(tmp_path: Path, room: Expansion, way: str) -> None:
    """Each of 2,000 records is a byte on the wire, and less."""
    record = {"timestamp": 0, "key": None, "value": "00", "headers": []}
    made = [record | {"offset": number} for number in range(2_000)]
    batch = {"base_offset": 0, "magic": 2, "attributes": ZSTD, "base_timestamp": 0, "records": made}
    data = [{"name": "a", "partition_data": [{"index": 0, "records": records_bytes({"batches": [batch]})}]}]
    asked = dissector.encode_request("Produce", 9, {"acks": -1, "topic_data": data}, correlation_id=7)
    path = capture_of(tmp_path, conversation([Turn(True, asked)] * 3))
    most = 1_500 * AS_OBJECT  # what less than one of the batches takes
    room._numbers[0] = most
    with Capture([path]) as capture:
        list(capture.read())
        rows = np.arange(len(capture))
        if way == "listed":
            found = [len(list(RecordList(capture).contents(rows[n : n + 1]))) for n in range(3)]
        else:
            found = [sum(1 for _ in records_of(each)) for each in capture.at(rows)]
    assert found == [2_000, 0, 0]
    assert "compressed records were not decompressed" in room.complaint()


def test_a_fork_that_leaves_takes_nothing_from_others() -> None:
    for leaves in (False, True):
        room = Expansion()
        child = os.fork()
        if not child:
            if leaves:
                room.leave()
            room.take(0, DEFAULT.most_run_expansion)
            os._exit(room.has_room)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert room.has_room == leaves
