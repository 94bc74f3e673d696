"""Record batches: values and tree agree, damage is told, bombs are not set off."""

import struct

import cramjam
import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.codec.reader import RecordBytes
from dissector.protocol.message import Traced
from dissector.protocol.records.batch import HEADER, Batch, Header, PartKind, Record, split
from dissector.protocol.records.compression import CODECS, DecompressionError
from dissector.protocol.records.tracing import RecordTracer
from dissector.protocol.tree import Node, Source
from tests.protocol.made import uvarint
from tests.protocol.trees import assert_tiled

LIMIT = 1 << 20


def zigzag(value: int) -> bytes:
    return uvarint(((value << 1) ^ (value >> 63)) & 0xFFFFFFFFFFFFFFFF)


def blob(value: bytes | None) -> bytes:
    return zigzag(-1) if value is None else zigzag(len(value)) + value


def record(offset: int, timestamp: int, key: bytes | None, value: bytes | None, headers: list[Header]) -> bytes:
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
    body = struct.pack(">hiqqqhii", codec, len(records) - 1, 5_000, 6_000, -1, -1, -1, len(records)) + COMPRESS[codec](
        section
    )
    crc = google_crc32c.value(body) if crc is None else crc
    return struct.pack(">qiibI", 100, len(body) + 9, 0, 2, crc) + body


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
many_records = st.lists(
    st.builds(
        Record, st.integers(100, 10_000), st.integers(5_000, 2**40), st.none() | st.binary(max_size=200),
        st.none() | st.binary(max_size=200),
        st.lists(st.builds(Header, texts, st.none() | st.binary(max_size=9)), max_size=3),
    ),
    max_size=8,
)  # fmt: skip


def traced(data: bytes, limit: int = LIMIT) -> Traced:
    sources = [Source(0, "frame", data)]
    root = Node("records", "records", "RECORDS", 0, len(data))
    RecordTracer(sources, limit).field(data, 0, len(data), root)
    return Traced(root, sources, [finding for node in root.walk() for finding in node.findings])


@given(records=many_records, codec=st.sampled_from(list(CODECS)))
def test_batches_are_read_as_they_were_made_and_tile(records: list[Record], codec: int) -> None:
    data = batch(records, codec)
    read = Batch.read(data)
    assert read.crc_valid
    assert read.records(LIMIT) == records
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
    parts = list(split(bytes(raw)))
    untold = all(part.kind is PartKind.BATCH for part in parts) and at >= 17
    assert tree.findings or not untold


def test_a_last_batch_cut_off_is_told_and_is_no_fault() -> None:
    whole = batch([Record(100, 5_000, b"k", b"v", [])])
    for cut in range(1, len(whole)):
        parts = list(split(whole + whole[:cut]))
        assert [part.kind for part in parts] == [PartKind.BATCH, PartKind.TRUNCATED]
        assert_tiled(traced(whole + whole[:cut]))
    assert not traced(whole + whole[:70]).findings


def test_a_message_set_of_old_is_one_labelled_node() -> None:
    tree = traced(struct.pack(">qiIbb", 0, 22, 0, 0, 0) + bytes(20))
    [node] = tree.tree.children
    assert "message set" in node.note
    assert not tree.findings


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_bomb_is_a_finding_not_an_allocation(codec: int) -> None:
    bomb = batch([Record(100, 5_000, None, bytes(900_000), [])], codec)
    with pytest.raises(DecompressionError, match="larger than"):
        Batch.read(bomb).decompressed(10_000)
    assert {finding.code for finding in traced(bomb, 10_000).findings} == {"bad-compression"}


def test_a_wrong_checksum_and_an_unknown_codec_are_told() -> None:
    assert {f.code for f in traced(batch([], crc=1)).findings} == {"bad-crc"}
    raw = bytearray(batch([]))
    raw[22] = 6
    assert {f.code for f in traced(bytes(raw)).findings} == {"bad-crc", "bad-compression"}
    assert Batch.read(bytes(raw)).compression == "unknown(6)"


@given(junk=st.binary(max_size=300))
def test_any_bytes_tile(junk: bytes) -> None:
    assert_tiled(traced(junk))
    assert sum(part.end - part.start for part in split(RecordBytes(junk))) == len(junk)


def test_the_header_is_61_bytes() -> None:
    assert HEADER.size == 61
