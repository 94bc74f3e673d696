"""Record batches: values and tree agree, damage is reported, decompression bombs are not expanded."""

import random
import struct
from dataclasses import replace

import cramjam
import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.core.limits import DEFAULT
from dissector.protocol.message import Traced
from dissector.protocol.records.batch import HEADER, Batch, Record, RecordHeader
from dissector.protocol.records.compression import CODECS, DecompressionBudget, DecompressionError
from dissector.protocol.records.entries import RecordsEntryKind, split_entries
from dissector.protocol.records.from_json import batch_bytes
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.records.tracing import ENTRY_NODES, RecordTracer
from dissector.protocol.tree import ByteSource, Node
from dissector.protocol.wire import LimitError
from tests.cases import cases
from tests.conftest import some_of
from tests.protocol.random_messages import uvarint
from tests.protocol.trees import assert_tiled

LIMIT = 1 << 20


def zigzag(value: int) -> bytes:
    return uvarint(((value << 1) ^ (value >> 63)) & 0xFFFFFFFFFFFFFFFF)


def blob(value: bytes | None) -> bytes:
    return zigzag(-1) if value is None else zigzag(len(value)) + value


def record(offset: int, timestamp: int, key: bytes | None, value: bytes | None, headers: list[RecordHeader]) -> bytes:
    fields = b"\x00" + zigzag(timestamp) + zigzag(offset) + blob(key) + blob(value) + zigzag(len(headers))
    fields += b"".join(blob(h.key.encode()) + blob(h.value) for h in headers)
    return zigzag(len(fields)) + fields


COMPRESS = {
    0: lambda data: data,
    1: lambda data: bytes(cramjam.gzip.compress(data)),
    2: lambda data: b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01" + b"".join(_xerial(data)),
    3: lambda data: bytes(cramjam.lz4.compress(data)),
    4: lambda data: bytes(cramjam.zstd.compress(data)),
}


def _xerial(data: bytes) -> list[bytes]:
    parts = [bytes(cramjam.snappy.compress_raw(data[n : n + 100])) for n in range(0, len(data), 100)]
    return [struct.pack(">i", len(part)) + part for part in parts]


def batch(records: list[Record], codec: int = 0, *, crc: int | None = None) -> bytes:
    section = b"".join(record(r.offset - 100, r.timestamp - 5_000, r.key, r.value, r.headers) for r in records)
    last = max((r.offset for r in records), default=100) - 100
    newest = max((r.timestamp for r in records), default=-1)
    body = struct.pack(">hiqqqhii", codec, last, 5_000, newest, -1, -1, -1, len(records)) + COMPRESS[codec](section)
    crc = google_crc32c.value(body) if crc is None else crc
    return struct.pack(">qiibI", 100, len(body) + 9, 0, 2, crc) + body


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
many_records = st.lists(
    st.builds(
        Record, st.integers(100, 10_000), st.integers(5_000, 2**40), st.none() | st.binary(max_size=200),
        st.none() | st.binary(max_size=200),
        st.lists(st.builds(RecordHeader, texts, st.none() | st.binary(max_size=9)), max_size=3),
    ),
    max_size=8,
).map(lambda records: [record._replace(offset=100 + n * 7) for n, record in enumerate(records)])  # fmt: skip


def traced(data: bytes, limit: int = LIMIT) -> Traced:
    sources = [ByteSource(0, "frame", data)]
    root = Node("records", "records", "RECORDS", 0, len(data))
    RecordTracer(sources, DecompressionBudget(limit, limit)).field(data, 0, len(data), root)
    return Traced(root, sources, [finding for node in root.walk() for finding in node.findings])


@given(records=many_records, codec=st.sampled_from(list(CODECS)))
def test_batches_are_read_as_they_were_made_and_tile(records: list[Record], codec: int) -> None:
    data = batch(records, codec)
    read = Batch.read(data)
    assert read.crc_valid
    assert read.records(DecompressionBudget(LIMIT, LIMIT)) == records
    tree = traced(data)
    assert_tiled(tree)
    assert not tree.findings
    assert [node.value for node in tree.tree.walk() if node.name == "key" and node.type == "BYTES"] == [
        r.key for r in records
    ]


@given(records=many_records, codec=st.sampled_from(list(CODECS)), data=st.data())
def test_damage_is_a_finding_and_loses_no_byte(records: list[Record], codec: int, data: st.DataObject) -> None:
    raw = bytearray(batch(records, codec))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    tree = traced(bytes(raw))
    assert_tiled(tree)
    parts = list(split_entries(bytes(raw)))
    is_plain = all(part.kind is RecordsEntryKind.BATCH for part in parts) and at >= 17
    assert tree.findings or not is_plain


def test_a_last_batch_cut_off_is_reported_and_is_no_fault() -> None:
    whole = batch([Record(100, 5_000, b"k", b"v", [])])
    for cut in range(1, len(whole)):
        parts = list(split_entries(whole + whole[:cut]))
        assert [part.kind for part in parts] == [RecordsEntryKind.BATCH, RecordsEntryKind.TRUNCATED]
        tree = traced(whole + whole[:cut])
        assert_tiled(tree)
        assert not tree.findings


@cases("codec", [1, 2, 3, 4])
def test_a_bomb_is_a_finding_not_an_allocation(codec: int) -> None:
    bomb = batch([Record(100, 5_000, None, bytes(900_000), [])], codec)
    with pytest.raises(DecompressionError, match="larger than"):
        Batch.read(bomb).decompressed(DecompressionBudget(10_000, 10_000))
    assert {finding.code for finding in traced(bomb, 10_000).findings} == {"bad-compression"}


@cases("codec", [1, 3, 4])
def test_more_records_than_a_section_can_mean_are_not_read(codec: int) -> None:
    # Each of 7 bytes: what a compressor can promise, but no producer means. All would cost gigabytes.
    count = 1 << 20
    section = b"\x0c\x00\x00\x00\x01\x01\x00" * count
    header = struct.pack(">hiqqqhii", codec, count, 0, 0, -1, -1, -1, count)
    body = header + COMPRESS[codec](section)
    packed = struct.pack(">qiibI", 0, len(body) + 9, 0, 2, google_crc32c.value(body)) + body
    with pytest.raises(DecompressionError, match="more records than are allowed"):
        Batch.read(packed).records(DecompressionBudget(LIMIT * 64, LIMIT * 64))
    tree = traced(packed, LIMIT * 64)
    assert_tiled(tree)
    assert {finding.code for finding in tree.findings} == {"bad-compression"}


@cases(("size", "count"), [(0, 0), (6, 0), (7, 1), (13, 1), (14, 2), (21, 3), (28, 3), (1000, 3)])
def test_a_section_has_no_more_records_than_its_header_says_and_its_bytes_hold(size: int, count: int) -> None:
    made = Batch.read(batch([Record(0, 0, None, None, [])] * 3))
    assert made.most_records(bytes(size)) == count
    assert made._replace(records_count=-1).most_records(bytes(size)) == 0


def test_sections_that_turn_out_unreadable_have_cost_something_too() -> None:
    bomb = Batch.read(batch([Record(100, 5_000, None, bytes(900_000), [])], 1))
    budget = DecompressionBudget(10_000, 20_000)
    for _ in range(2):
        with pytest.raises(DecompressionError, match="larger than 10,000"):
            bomb.decompressed(budget)
    with pytest.raises(DecompressionError, match="larger than 0"):
        bomb.decompressed(budget)


def test_a_wrong_checksum_and_an_unknown_codec_are_reported() -> None:
    assert {f.code for f in traced(batch([], crc=1)).findings} == {"bad-crc"}
    raw = bytearray(batch([]))
    raw[22] = 6
    assert {f.code for f in traced(bytes(raw)).findings} == {"bad-crc", "bad-compression"}
    assert Batch.read(bytes(raw)).compression == "unknown(6)"


@given(junk=st.binary(max_size=300))
def test_any_bytes_tile(junk: bytes) -> None:
    assert_tiled(traced(junk))
    assert sum(part.end - part.start for part in split_entries(junk)) == len(junk)


def test_the_header_is_61_bytes() -> None:
    assert HEADER.size == 61


ONE = Record(100, 5_000, b"k", b"v", [])
FAULTS = {
    "do not increase": {"records": [ONE, ONE]},
    "outside 0 to 0": {"records": [ONE._replace(offset=103)], "last_offset_delta": 0},
    "past max_timestamp": {"records": [ONE], "max_timestamp": 4_999},
    "without an epoch": {"records": [ONE], "producer_id": 7},
}


@cases("words", FAULTS)
def test_a_header_that_does_not_fit_its_records_is_reported(words: str) -> None:
    value = {"base_offset": 100, "base_timestamp": 5_000} | FAULTS[words]
    records = [record._asdict() | {"headers": []} for record in FAULTS[words]["records"]]
    findings = traced(batch_bytes(value | {"records": records})).findings
    assert [finding.code for finding in findings] == ["inconsistent-batch"]
    assert words in findings[0].message


def test_overlapping_batches_are_reported() -> None:
    [finding] = traced(batch([ONE]) * 2).findings
    assert finding.code == "inconsistent-batch"
    assert "begins at offset 100" in finding.message


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("codec", some_of([1, 2, 3, 4], 1, 3))
def test_large_sections_in_many_blocks_are_whole(codec: int) -> None:
    chance = random.Random(codec)
    values = [chance.randbytes(50_000) + bytes(50_000) for _ in range(100)]
    records = [Record(100 + n, 5_000, None, value, []) for n, value in enumerate(values)]
    plain = b"".join(record(r.offset - 100, 0, None, r.value, []) for r in records)
    assert len(plain) > 8 << 20
    read = Batch.read(batch(records, codec))
    assert read.records(DecompressionBudget(64 << 20, 64 << 20)) == records
    if codec in (2, 3):
        assert read.section.count(plain[70_000:70_040]) <= 1  # it was cut in blocks and compressed, not stored


def test_the_budget_is_for_all_sections_of_a_frame_together() -> None:
    big = batch([Record(100, 5_000, None, bytes(9_000), [])], 1)
    budget = DecompressionBudget(10_000, 20_000)
    for _ in range(2):
        Batch.read(big).decompressed(budget)
    with pytest.raises(DecompressionError, match="larger than"):
        Batch.read(big).decompressed(budget)


def test_a_negative_count_of_records_leaves_other_batches_no_larger_budget() -> None:
    least = bytearray(batch([Record(100, 5_000, None, b"x", [])]))
    least[57:61] = struct.pack(">i", -(2**31))
    wide = batch([Record(100, 5_000, None, None, [RecordHeader("", b"")] * 100_000)], 4)
    budget = frame_budget()
    Batch.read(bytes(least)).decompressed(budget)
    with pytest.raises(LimitError, match="headers"):
        Batch.read(wide).records(budget)


@cases(("nodes", "whole"), [(3 * ENTRY_NODES, 3), (3 * ENTRY_NODES - 1, 2), (ENTRY_NODES - 1, 0)])
def test_entries_past_the_limit_of_fields_are_a_finding(nodes: int, whole: int) -> None:
    data = b"".join(batch([]) for _ in range(3))
    root = Node("records", "records", "RECORDS", 0, len(data))
    budget = DecompressionBudget(LIMIT, LIMIT, replace(DEFAULT, tree_nodes=nodes))
    RecordTracer([ByteSource(0, "frame", data)], budget).field(data, 0, len(data), root)
    assert sum(each.type == "RECORD_BATCH" for each in root.children) == whole
    assert len([each for each in root.findings if each.code != "inconsistent-batch"]) == (whole < 3)
