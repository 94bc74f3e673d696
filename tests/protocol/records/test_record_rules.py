"""Headers, flags and lengths of batches and messages, each from both sides of what decides."""

import gzip
import random
import struct
from dataclasses import replace
from types import ModuleType

import lz4.frame
import numpy as np
import pytest
from hypothesis import given

from dissector.core.limits import DEFAULT
from dissector.protocol.records import batch as batches
from dissector.protocol.records import legacy
from dissector.protocol.records.batch import HEADER, MANY, Batch, Record, RecordHeader, read_records
from dissector.protocol.records.column_reader import RecordReader
from dissector.protocol.records.columns import ENTRY, KINDS, section_columns, split_fields, valid_checksums
from dissector.protocol.records.compression import CODECS, DecompressionBudget, DecompressionError
from dissector.protocol.records.counting import count_at, count_records
from dissector.protocol.records.entries import LEAST_RECORD, RecordsEntryKind
from dissector.protocol.records.from_json import batch_bytes, records_bytes
from dissector.protocol.records.legacy import LegacyRecord
from dissector.protocol.records.lz4 import MAGIC, single_block, with_right_checksum, with_wrong_checksum
from dissector.protocol.records.opened_sections import within_budgets
from dissector.protocol.records.span_cursor import SpanCursor, text_preview, timestamp_note
from dissector.protocol.records.to_json import frame_budget, records_object
from dissector.protocol.records.tracing import RecordTracer, batch_faults, order_faults
from dissector.protocol.tree import ByteSource, Node
from dissector.protocol.wire import WireError
from tests.cases import cases
from tests.protocol.records.test_batch import batch, record
from tests.protocol.records.test_legacy import Made, message, wrapper
from tests.traffic import seeds

ONE = Record(100, 5_000, b"k", b"v", [])
SIZES = {"INT8": 1, "INT16": 2, "INT32": 4, "UINT32": 4, "INT64": 8}
LEAST = record(0, 0, None, None, [])
"""The smallest record."""
PLAIN = b"two apples, " * 100


def traced(data: bytes) -> Node:
    parent = Node("records", "records", "RECORDS", 0, len(data))
    RecordTracer([ByteSource(0, "frame", data)], frame_budget()).field(data, 0, len(data), parent)
    return parent


def nodes(tree: Node) -> dict[str, Node]:
    return {node.path: node for node in tree.walk()}


def with_attributes(data: bytes, attributes: int) -> bytes:
    return data[:21] + attributes.to_bytes(2, "big") + data[23:]


@cases("module", [batches, legacy])
def test_each_field_of_a_header_has_the_size_of_its_type(module: ModuleType) -> None:
    fields = module.HEADER_FIELDS
    assert [size for _, _, size in fields] == [SIZES[kind] for _, kind, _ in fields]

    assert sum(size for *_, size in fields) == module.HEADER.size


@cases(("attributes", "words"), [
    (0, "none, CreateTime"), (8, "none, LogAppendTime"), (16, "none, CreateTime, transactional"),
    (32, "none, CreateTime, control"), (64, "none, CreateTime, base_timestamp is the delete horizon"),
    (1, "gzip, CreateTime"), (7, "unknown(7), CreateTime"),
])  # fmt: skip
def test_each_bit_of_the_attributes_says_what_it_is_for(attributes: int, words: str) -> None:
    data = with_attributes(batch([ONE]), attributes)
    read = Batch.read(data)
    flags = (read.is_append_time, read.is_transactional, read.is_control, read.has_delete_horizon)
    assert flags == tuple(bool(attributes & bit) for bit in (8, 16, 32, 64))
    assert nodes(traced(data))["records[0].attributes"].note == words


@cases(("section", "is_masked"), [(b"***", True), (b"*", True), (b"*x*", False), (b"x**", False), (b"", False)])
def test_a_section_is_masked_if_it_is_asterisks_and_nothing_else(section: bytes, is_masked: bool) -> None:
    head = batch([])[: HEADER.size]
    data = head[:8] + (len(head) - 12 + len(section)).to_bytes(4, "big") + head[12:] + section
    assert Batch.read(data).is_masked == is_masked
    [read] = records_object(data)["batches"]
    assert (read.get("masked"), read["records"] is None) == (
        (len(section), True) if is_masked else (None, bool(section))
    )
    for codec, name in ((0, "(masked)"), (1, "(compressed)")):
        found = nodes(traced(with_attributes(data, codec))).get(f"records[0].{name}")
        if is_masked:
            assert found is not None
            assert found.note == "masked: --show-secrets shows it"


def test_a_section_has_no_more_records_than_it_has_room_for() -> None:
    assert len(LEAST) == LEAST_RECORD
    for count in (1, 2, MANY - 1, MANY, MANY + 1):
        data = LEAST * count
        head = Batch.read(batch([]))._replace(records_count=count)
        assert len(read_records(data, head)) == count
        assert (section_columns(data, count, 0, (0, 0), 0, 0) is not None) == (count > 0)
        for wrong in (count + 1, -1):
            with pytest.raises(WireError, match=f"{wrong} records can't be in {len(data)} bytes"):
                read_records(data, head._replace(records_count=wrong))
            assert section_columns(data, wrong, 0, (0, 0), 0, 0) is None
            made = batch([])[: HEADER.size - 4] + wrong.to_bytes(4, "big", signed=True) + data
            [finding] = nodes(traced(made[:8] + (len(made) - 12).to_bytes(4, "big") + made[12:]))[
                "records[0].records"
            ].findings
            assert finding.code == "bad-record"
            assert finding.message.startswith(f"{wrong} records can't be in")


def test_headers_of_a_record_are_no_more_than_its_bytes_hold() -> None:
    headers = [RecordHeader("", None)] * 3  # two bytes each
    data = batch([Record(100, 5_000, None, None, headers)])
    assert len(nodes(traced(data))["records[0].records[0].headers"].children) == 4
    at = data.index(b"\x06", HEADER.size + 6)
    wrong = data[:at] + b"\x08" + data[at + 1 :]
    found = nodes(traced(wrong))["records[0].records"].findings
    assert [each.message.partition(" at ")[0] for each in found] == ["header count runs past its record"]


def test_bytes_that_are_no_batch_are_a_finding() -> None:
    tree = traced(bytes(16) + b"\x09" + bytes(60))
    assert {finding.code for node in tree.walk() for finding in node.findings} == {"bad-batch"}


@cases(("id", "epoch", "sequence", "attributes", "has_fault"), [
    (7, 0, 0, 0, False), (7, -1, 0, 0, True), (7, 0, -1, 0, True), (7, 0, -1, 32, False), (7, -1, -1, 32, True),
    (0, -1, 0, 0, True), (-1, -1, -1, 0, False),
])  # fmt: skip
def test_a_producer_has_an_epoch_and_a_sequence(
    id: int, epoch: int, sequence: int, attributes: int, has_fault: bool
) -> None:
    head = Batch.read(batch([ONE]))
    head = head._replace(producer_id=id, producer_epoch=epoch, base_sequence=sequence, attributes=attributes)
    faults = list(batch_faults(head, [0], [5_000]))
    assert faults == ([f"producer {id} without an epoch or a sequence"] if has_fault else [])


@cases(("offsets", "times", "faults"), [
    ([0, 1, 3], [9], []), ([0, 0], [], ["offsets of records do not increase"]),
    ([3, 4], [], ["offset deltas 3 to 4 are outside 0 to 3"]),
    ([-1, 0], [], ["offset deltas -1 to 0 are outside 0 to 3"]),
    ([0], [10], ["a record's timestamp 10 is past max_timestamp 9"]),
])  # fmt: skip
def test_records_outside_of_their_header_are_a_fault(offsets: list[int], times: list[int], faults: list[str]) -> None:
    head = Batch.read(batch([ONE]))._replace(last_offset_delta=3, max_timestamp=9)
    assert list(batch_faults(head, offsets, times)) == faults


@cases(("second", "faults"), [(4, 0), (3, 1)])
def test_a_batch_begins_behind_the_one_before_it(second: int, faults: int) -> None:
    assert len(list(order_faults([(0, 3), (second, 9)]))) == faults


def test_records_are_counted_by_headers_in_columns_as_one_at_a_time() -> None:
    fields = [
        batch([ONE] * 3, 1),
        batch([ONE]) + message(Made(1, 1, None, None), 1),
        b"",
        wrapper([Made(0, 1, None, b"x")], 1, 2),
    ]
    data = np.frombuffer(b"".join(fields), np.uint8)
    ends = np.cumsum(list(map(len, fields)))
    starts = ends - list(map(len, fields))
    base = data.ctypes.data
    counts = count_at((starts + base).astype(np.uint64), ends - starts)
    assert counts.records.tolist() == [count_records(each).records for each in fields] == [3, 2, 0, 1]
    assert counts.codecs.tolist() == [2, 1, 0, 4]


def test_checksums_are_those_of_batches_inside_the_data() -> None:
    data = batch([ONE]) + batch([ONE], crc=7)
    column = np.frombuffer(data, np.uint8)
    [entries] = split_fields(column, np.array([0]), np.array([len(data)]), range(1), np.empty(9, ENTRY), 1 << 20)
    assert valid_checksums(column, entries).tolist() == [True, False]
    with pytest.raises(ValueError, match="entry 1 is not inside the data"):
        valid_checksums(column[:-1], entries)
    with pytest.raises(ValueError, match="field 0 is not inside the data"):
        next(split_fields(column[:-1], np.array([0]), np.array([len(data)]), range(1), np.empty(9, ENTRY), 1 << 20))


@given(chance=seeds)
def test_frames_are_within_their_budgets_as_a_loop_over_their_batches_says(chance: random.Random) -> None:
    kinds = [KINDS.index(RecordsEntryKind.BATCH)] * 4 + [KINDS.index(RecordsEntryKind.MESSAGE)]
    for _ in range(20):
        count = chance.randint(1, 12)
        frames = np.cumsum([chance.choice((0, 0, 1)) for _ in range(count)])
        entries = np.zeros(count, ENTRY)
        for name, values in (
            ("kind", kinds),
            ("attributes", (0, 0, 1, 4, 8)),
            ("records", range(6)),
            ("headers", range(3)),
        ):
            entries[name] = [chance.choice(values) for _ in range(count)]
        entries["start"] = [chance.randrange(9) for _ in range(count)]
        entries["end"] = entries["start"] + [61 + chance.randrange(5) for _ in range(count)]
        entries["section_end"] = [chance.randrange(20) for _ in range(count)]
        bounds = replace(
            DEFAULT, packed_size=chance.randrange(40), packed_ratio=chance.randrange(4),
            packed_records=chance.randrange(12), frame_records=chance.randrange(5, 20),
            decompressed_size=chance.randrange(8, 20),
            decompressed_frame_size=chance.randrange(10, 50),
        )  # fmt: skip
        expected = []
        for at in range(count):
            size, total, records, most = bounds.packed_size, bounds.decompressed_frame_size, 0, bounds.packed_records
            for entry in entries[np.searchsorted(frames, frames[at]) : at + 1]:
                packed = int(entry["end"] - entry["start"]) - 61 if entry["kind"] == kinds[0] else 0
                plain = 0
                if entry["kind"] == kinds[0] and entry["attributes"] & 7:
                    plain = int(entry["section_end"])
                    size += bounds.packed_ratio * packed
                fits = plain <= min(size, total, bounds.decompressed_size)
                size, total = size - plain, total - plain
                records += int(entry["records"] + entry["headers"])
                most += packed
                fits &= records <= min(bounds.frame_records, most)
            expected.append(fits)
        assert within_budgets(entries, frames, bounds).tolist() == expected


def test_lz4_of_old_clients_is_repaired_in_both_old_magics_and_not_in_new_batches() -> None:
    section = CODECS[3].as_magic_0(CODECS[3].compress(PLAIN))
    for magic in (0, 1):
        assert DecompressionBudget(1 << 20, 1 << 20).decompressed(3, section, magic=magic) == PLAIN
    with pytest.raises(DecompressionError):
        DecompressionBudget(1 << 20, 1 << 20).decompressed(3, section, magic=2)


def test_a_frame_of_lz4_cut_anywhere_is_left_as_it_is_or_repaired() -> None:
    for content_size in (False, True):
        right = lz4.frame.compress(b"apples", store_size=content_size)
        wrong = with_wrong_checksum(right)
        head = 15 if content_size else 7
        for cut in range(len(wrong) + 1):
            assert with_right_checksum(wrong[:cut]) == (right[:cut] if cut >= head else wrong[:cut])
        assert with_right_checksum(right) == right
        assert with_right_checksum(b"x" + wrong) == b"x" + wrong


@cases("size", [1, 2, 300])
def test_the_only_block_of_a_frame_is_found(size: int) -> None:
    heads = [MAGIC + b"\x60\x40" + bytes([checksum]) for checksum in range(256)]
    [frame] = [with_right_checksum(head) for head in heads if with_right_checksum(head) != head]
    block = b"b" * size
    whole = frame + size.to_bytes(4, "little") + block + bytes(4)
    assert single_block(whole) == (block, 64 << 10)
    for other in (whole[:-1], whole + bytes(4), frame + (size + 1).to_bytes(4, "little") + block + bytes(4)):
        assert single_block(other) is None
    assert single_block(frame + bytes(8)) is None


@cases(("milliseconds", "words"), [
    (0, "1970-01-01T00:00:00.000Z"), (1_500, "1970-01-01T00:00:01.500Z"),
    (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
    (-1, ""), (1 << 60, ""),
])  # fmt: skip
def test_a_timestamp_is_a_date_from_1970_on(milliseconds: int, words: str) -> None:
    assert timestamp_note(milliseconds) == words


def test_bytes_are_previewed_if_they_are_text() -> None:
    assert text_preview(b"x" * 80) == f'"{"x" * 80}"'
    assert text_preview(b"x" * 81) == f'"{"x" * 80}…"'
    assert text_preview(b"x" * 79 + "é".encode()) == f'"{"x" * 79}…"'  # cut within a character
    assert text_preview("👨‍👩‍👧 {\n\t1}\r\n".encode()) == '"👨‍👩‍👧 {\n\t1}\r\n"'
    for no_text in (
        b"a\0",
        b"\x1b[1m",
        b"\x7f",
        "\x9b".encode(),
        b"\xff",
        b"x" * 79 + b"\xff",
        b"x" * 4 + "é".encode()[:1],
    ):
        assert text_preview(no_text) == "", no_text


def test_reading_may_end_where_it_has_to_and_not_behind_it() -> None:
    for read in (
        lambda spans, parent: spans.fixed(parent, "a", "INT32"),
        lambda spans, parent: spans.leaf(parent, "a", "BYTES", 4, b""),
        lambda spans, parent: spans.blob(parent, "a", 3, 1),
    ):
        for end in (4, 3):
            spans, parent = SpanCursor(bytes(9), 0, end, 0), Node("p", "p", "P", 0, 0)
            if end == 4:
                read(spans, parent)
                assert (spans.at, parent.end, spans.rest(parent)) == (4, 4, 0)
            else:
                with pytest.raises(WireError, match="a runs past"):
                    read(spans, parent)
                assert spans.rest(parent) == 3
                assert parent.children[-1].value == bytes(3)


def test_a_length_of_a_message_may_reach_its_end_and_not_past_it() -> None:
    data = message(Made(1, 1, b"key", b"value"), 1)
    assert LegacyRecord.read(data).value == b"value"
    at = len(data) - 9
    for size in (6, 7, 40):
        with pytest.raises(WireError, match="length runs past its message"):
            LegacyRecord.read(data[:at] + struct.pack(">i", size) + data[at + 4 :])
    with pytest.raises(WireError, match="message is longer than its fields"):
        LegacyRecord.read(data[:at] + struct.pack(">i", 4) + data[at + 4 :])


def test_messages_of_a_wrapper_are_paid_with_its_bytes() -> None:
    made = [Made(n, 1, None, None) for n in range(9)]
    outer = LegacyRecord.read(wrapper(made, 1, 1))
    size = len(outer.value or b"")
    for allowed in (9 - size, 8 - size):
        budget = DecompressionBudget(1 << 20, 1 << 20, replace(DEFAULT, packed_records=allowed))
        if allowed == 9 - size:
            assert len(outer.inside(budget)) == 9
        else:
            with pytest.raises(DecompressionError):
                outer.inside(budget)


def test_what_is_said_of_messages_stands_at_their_fields() -> None:
    found = nodes(traced(wrapper([Made(70, 1, None, b"x"), Made(72, 1, b"k", b"x")], 1, 1)))
    assert found["records[0].attributes"].note == "gzip, CreateTime"
    assert found["records[0].offset"].note == ""
    assert found["records[0].messages[1].offset"].note == "relative: offset 72"
    assert found["records[0].messages[1].attributes"].note == "none, CreateTime"
    assert found["records[0].messages[1].crc"].note == "valid"
    assert found["records[0].messages[1]"].note == 'offset 72 key "k"'
    wrong = nodes(traced(message(Made(1, 1, None, None), 0, crc=9)))
    assert [finding.code for finding in wrong["records[0].crc"].findings] == ["bad-crc"]
    assert (wrong["records[0].crc"].note, wrong["records[0].attributes"].note) == ("INVALID", "none")


@cases("magic", [0, 1])
def test_a_new_wrapper_of_lz4_is_what_clients_of_its_magic_write(magic: int) -> None:
    inner = [{"offset": 5, "magic": magic, "value": "aa"}, {"offset": 6, "magic": magic, "value": "bb"}]
    data = records_bytes({"batches": [{"magic": magic, "attributes": 3, "offset": 6, "messages": inner}]})
    outer = LegacyRecord.read(data)
    assert outer.value is not None
    assert (with_right_checksum(outer.value) != outer.value) == (magic == 0)
    assert [(each.offset, each.value, each.timestamp) for each in outer.inside(frame_budget())] == [
        (5, b"\xaa", None if magic == 0 else -1), (6, b"\xbb", None if magic == 0 else -1),
    ]  # fmt: skip


@cases("magic", [0, 1])
def test_the_section_of_an_unchanged_wrapper_is_written_as_it_was(magic: int) -> None:
    inner = b"".join(message(Made(at, 7, None, b"aa" * 50), magic) for at in ((0, 1) if magic else (5, 6)))
    data = message(Made(6, 7, None, gzip.compress(inner, 0)), magic, 1)
    [value] = records_object(data)["batches"]
    assert [each["offset"] for each in value["messages"]] == [5, 6]
    assert records_bytes({"batches": [value]}) == data
    value["messages"][0]["value"] = b"other"
    assert len(records_bytes({"batches": [value]})) < len(data)


def test_the_brokers_time_of_appending_is_that_of_the_wrapper() -> None:
    inner = b"".join(message(Made(at, 7, None, b"aa" * 50), 1) for at in (0, 1))
    data = message(Made(6, 99, None, gzip.compress(inner, 0)), 1, 1 | 8)
    [value] = records_object(data)["batches"]
    assert [each["timestamp"] for each in value["messages"]] == [99, 99]
    assert records_bytes({"batches": [value]}) == data


def test_records_without_compression_are_charged_as_well() -> None:
    data = batch([ONE] * 3)
    for most, codes in ((3, []), (2, ["over-limit"])):
        parent = Node("records", "records", "RECORDS", 0, len(data))
        budget = DecompressionBudget(1 << 20, 1 << 20, replace(DEFAULT, frame_records=most))
        RecordTracer([ByteSource(0, "frame", data)], budget).field(data, 0, len(data), parent)
        assert [finding.code for finding in nodes(parent)["records[0].records"].findings] == codes


def test_what_is_not_given_of_a_batch_is_what_a_producer_sends() -> None:
    made = Batch.read(records_bytes({"batches": [{"records": [{"value": "aa"}, {"value": "bb"}]}]}))
    assert (made.base_offset, made.base_timestamp, made.max_timestamp, made.last_offset_delta) == (0, -1, -1, 1)
    assert [record.offset for record in made.records(frame_budget())] == [0, 1]
    empty = Batch.read(batch_bytes({"records": None, "data": "aabb", "records_count": 3}))
    assert (empty.section, empty.records_count, empty.base_timestamp) == (b"\xaa\xbb", 3, -1)
    assert Batch.read(batch_bytes({"records": None})).section == b""
    assert Batch.read(batch_bytes({"records": [{"offset": 3}, {"offset": 5}]})).last_offset_delta == 5


def test_tables_of_records_and_headers_grow_where_a_batch_has_more() -> None:
    headers = [RecordHeader("name", b"x")] * 5
    data = np.frombuffer(batch([Record(100 + n, 5_000, b"k", b"v", headers) for n in range(3)]), np.uint8)
    for codec_free in (True, False):
        reader = RecordReader(DEFAULT if codec_free else replace(DEFAULT, frame_records=20))
        reader._headers, reader._records = np.empty((4, 1), np.int64), np.empty((9, 1), np.int64)
        found = list(reader.read(data, np.array([0]), np.array([len(data)]), np.array([0])))
        assert sum(len(each.offset) for each in found) == 3
        assert sum(len(each.header_key) for each in found) == 15
