"""Message sets of magic 0 and 1: made by hand from Kafka's documentation, read, traced, compressed, nested, damaged."""

import struct
import zlib
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.records.batch import Record
from dissector.protocol.records.compression import DecompressionBudget, DecompressionError
from dissector.protocol.records.entries import RecordsEntryKind, split_entries
from dissector.protocol.records.legacy import DEEPEST, LegacyRecord, data_messages
from dissector.protocol.records.lz4 import with_right_checksum, with_wrong_checksum
from tests.cases import cases
from tests.protocol.records.test_batch import COMPRESS, batch, traced
from tests.protocol.trees import assert_tiled

LIMIT = 1 << 20


class Made(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def blob(value: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if value is None else struct.pack(">i", len(value)) + value


def message(made: Made, magic: int, attributes: int = 0, *, crc: int | None = None) -> bytes:
    body = struct.pack(">bb", magic, attributes) + (struct.pack(">q", made.timestamp) if magic else b"")
    body += blob(made.key) + blob(made.value)
    crc = zlib.crc32(body) if crc is None else crc
    return struct.pack(">qiI", made.offset, len(body) + 4, crc) + body


def wrapper(messages: list[Made], magic: int, codec: int, attributes: int = 0, *, offset: int | None = None) -> bytes:
    """What a broker sends: relative offsets inside and that of the last outside (magic 1), absolute ones (magic 0)."""
    first = messages[0].offset if magic else 0
    inner = b"".join(message(made._replace(offset=made.offset - first), magic) for made in messages)
    section = COMPRESS[codec](inner)
    if magic == 0 and codec == 3:
        section = with_wrong_checksum(section)
    last = messages[-1].offset if offset is None else offset
    return message(Made(last, messages[-1].timestamp, None, section), magic, codec | attributes)


def values(data: bytes) -> list[Made]:
    budget = DecompressionBudget(LIMIT, LIMIT)
    found = [
        one
        for part in split_entries(data)
        for one in data_messages(LegacyRecord.read(data[part.start : part.end]), budget)
    ]
    return [Made(one.offset, one.timestamp or 0, one.key, one.value) for one in found]


many = st.lists(
    st.builds(Made, st.just(0), st.integers(0, 2**40), st.none() | st.binary(max_size=99),
              st.none() | st.binary(max_size=99)),
    min_size=1, max_size=6,
).map(lambda each: [made._replace(offset=500 + 3 * n) for n, made in enumerate(each)])  # fmt: skip


def timed(messages: list[Made], magic: int) -> list[Made]:
    return messages if magic else [made._replace(timestamp=0) for made in messages]


@given(messages=many, magic=st.integers(0, 1), codec=st.integers(0, 3))
def test_messages_are_read_as_they_were_made_and_tile(messages: list[Made], magic: int, codec: int) -> None:
    data = wrapper(messages, magic, codec) if codec else b"".join(message(made, magic) for made in messages)
    assert values(data) == timed(messages, magic)
    tree = traced(data)
    assert_tiled(tree)
    assert not tree.findings
    holding = [node for node in tree.tree.walk() if node.type == "MESSAGE" and "wrapper" not in node.note]
    assert [int(node.note.split()[1]) for node in holding] == [made.offset for made in messages]
    assert [node.value for node in tree.tree.walk() if node.name == "key"][codec > 0 :] == [m.key for m in messages]


@pytest.mark.slow
@given(messages=many, magic=st.integers(0, 1), codec=st.integers(0, 3), data=st.data())
def test_damage_is_a_finding_and_loses_no_byte(
    messages: list[Made], magic: int, codec: int, data: st.DataObject
) -> None:
    raw = bytearray(wrapper(messages, magic, codec) if codec else message(messages[0], magic))
    at = data.draw(st.integers(12, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    tree = traced(bytes(raw))
    assert_tiled(tree)
    whole = all(part.kind in (RecordsEntryKind.MESSAGE, RecordsEntryKind.BATCH) for part in split_entries(bytes(raw)))
    assert tree.findings or not whole


@given(messages=many, magic=st.integers(0, 1))
def test_all_formats_may_stand_in_one_field_and_the_last_may_be_cut(messages: list[Made], magic: int) -> None:
    new = batch([Record(9_000, 5_000, b"k", b"v", [])])
    data = wrapper(messages, magic, 1) + new + message(messages[0], magic) + new[:30]
    kinds = [part.kind for part in split_entries(data)]
    assert kinds == [
        RecordsEntryKind.MESSAGE,
        RecordsEntryKind.BATCH,
        RecordsEntryKind.MESSAGE,
        RecordsEntryKind.TRUNCATED,
    ]
    tree = traced(data)
    assert_tiled(tree)
    assert not tree.findings


def test_a_producer_may_leave_the_wrappers_offset_at_zero() -> None:
    messages = [Made(n, 5, None, b"v") for n in range(3)]
    assert [made.offset for made in values(wrapper(messages, 1, 1, offset=0))] == [0, 1, 2]


def test_the_brokers_time_is_that_of_all_messages_inside() -> None:
    messages = [Made(n, n, None, b"v") for n in range(3)]
    assert [made.timestamp for made in values(wrapper(messages, 1, 1, 0x08))] == [2, 2, 2]


def test_more_messages_than_a_wrapper_can_mean_are_not_read() -> None:
    data = message(Made(0, 0, None, COMPRESS[1](message(Made(0, 0, None, None), 1) * 50_000)), 1, 1)
    with pytest.raises(DecompressionError, match="more records than are allowed"):
        LegacyRecord.read(data).inside(DecompressionBudget(LIMIT * 64, LIMIT * 64))
    tree = traced(data, LIMIT * 64)
    assert_tiled(tree)
    assert {finding.code for finding in tree.findings} == {"bad-compression"}


def test_wrappers_inside_wrappers_are_opened_so_far_and_no_farther() -> None:
    data = message(Made(0, 0, b"k", b"deep"), 1)
    for depth in range(1, DEEPEST + 2):
        data = message(Made(0, 0, None, COMPRESS[1](data)), 1, 1)
        tree = traced(data)
        assert_tiled(tree)
        if depth <= DEEPEST:
            assert values(data) == [Made(0, 0, b"k", b"deep")]
            assert not tree.findings
    assert {finding.code for finding in tree.findings} == {"bad-compression"}
    with pytest.raises(DecompressionError, match="wrappers"):
        values(data)


def test_the_old_wrong_lz4_header_checksum() -> None:
    """KIP-57: after the descriptor 60 40 stands 82; clients before 0.10 wrote 1a (seen in Apache's own output)."""
    frame = bytes.fromhex("04224d18604082") + b"rest"
    assert with_wrong_checksum(frame)[6] == 0x1A
    assert with_right_checksum(with_wrong_checksum(frame)) == frame
    assert with_right_checksum(frame) == frame
    assert with_right_checksum(b"\x04\x22\x4d\x18\x60") == b"\x04\x22\x4d\x18\x60"
    assert with_right_checksum(b"junk and more") == b"junk and more"


def test_a_wrong_checksum_is_reported() -> None:
    assert {f.code for f in traced(message(Made(1, 1, b"k", b"v"), 1, crc=5)).findings} == {"bad-crc"}


@cases("codec", [1, 2, 3])
def test_a_bomb_is_a_finding_not_an_allocation(codec: int) -> None:
    bomb = wrapper([Made(0, 0, None, bytes(900_000))], 1, codec)
    assert {finding.code for finding in traced(bomb, 10_000).findings} == {"bad-compression"}
