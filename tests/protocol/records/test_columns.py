"""Records in columns have the values of the careful way, whatever the fields hold; what that refuses adds no record."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.core.grouping import gathered
from dissector.core.limits import DEFAULT, Limits
from dissector.protocol.records import batch as batch_module
from dissector.protocol.records import column_reader, opened_sections
from dissector.protocol.records.batch import Batch, Record, RecordHeader
from dissector.protocol.records.column_reader import RecordReader
from dissector.protocol.records.columns import (
    ENTRY,
    KINDS,
    BatchError,
    RecordColumns,
    split_fields,
    valid_checksums,
)
from dissector.protocol.records.compression import DecompressionBudget, DecompressionError
from dissector.protocol.records.entries import RecordsEntryKind, split_entries
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.wire import WireError
from tests.protocol.records.bundled_fields import bundled_fields
from tests.protocol.records.test_batch import batch, blob, many_records, zigzag
from tests.protocol.records.test_legacy import Made, message

Frame = list[bytes]
"""The fields of one frame."""
Entry = tuple[int, RecordsEntryKind, int, int, list[Record] | None, bool]
"""Field, kind, start, end, the records of a batch that can be read, whether its checksum is right."""


def careful(frames: Sequence[Frame], bounds: Limits) -> list[Entry]:
    """What the careful way reads, in Python."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_module, "MANY", 1 << 31)
        return _careful(frames, bounds)


def _careful(frames: Sequence[Frame], bounds: Limits) -> list[Entry]:
    found: list[Entry] = []
    at = number = 0
    for fields in frames:
        budget = frame_budget(bounds)
        for field in fields:
            for kind, start, end in split_entries(field):
                records, valid = None, False
                if kind is RecordsEntryKind.BATCH:
                    whole = Batch.read(field[start:end])
                    records, valid = _records(whole, budget), whole.crc_valid
                found.append((number, kind, at + start, at + end, records, valid))
            at, number = at + len(field), number + 1
    return found


def _records(whole: Batch, budget: DecompressionBudget) -> list[Record] | None:
    if whole.is_masked:
        return None
    try:
        records = whole.records(budget)
    except (DecompressionError, WireError):
        return None
    is_wide = any(not -(2**63) <= n < 2**63 for record in records for n in (record.offset, record.timestamp))
    return None if is_wide else records


def in_columns(frames: Sequence[Frame], bounds: Limits) -> list[Entry]:
    """The same, read natively."""
    fields = [field for frame in frames for field in frame]
    data = np.frombuffer(b"".join(fields), np.uint8)
    ends = np.array([*accumulate(map(len, fields))], np.int64)
    starts = ends - np.array([len(field) for field in fields], np.int64)
    numbers = np.array([number for number, frame in enumerate(frames) for _ in frame], np.int64)
    found: list[Entry] = []
    for step in RecordReader(bounds).read(data, starts, ends, numbers):
        for number, (entry, valid) in enumerate(zip(step.entries, valid_checksums(data, step.entries), strict=True)):
            first, count = int(entry["first_record"]), int(entry["records"])
            assert not (entry["error"] and count)
            assert step.entry[first : first + count].tolist() == [number] * count
            records = None if entry["error"] else [_record(step, row) for row in range(first, first + count)]
            kind = KINDS[entry["kind"]]
            found.append((int(entry["field"]), kind, int(entry["start"]), int(entry["end"]), records, bool(valid)))
        assert len(step.offset) == step.entries["records"].sum()
        assert len(step.header_key) == step.entries["headers"].sum()
    return found


def _record(step: RecordColumns, row: int) -> Record:
    headers = range(int(step.first_header[row]), int(step.first_header[row] + step.headers[row]))
    return Record(
        int(step.offset[row]),
        int(step.timestamp[row]),
        _content(step, step.key, step.key_size, row),
        _content(step, step.value, step.value_size, row),
        [
            RecordHeader(
                (_content(step, step.header_key, step.header_key_size, n) or b"").decode("utf-8", "surrogateescape"),
                _content(step, step.header_value, step.header_value_size, n),
            )
            for n in headers
        ],
    )


def _content(step: RecordColumns, starts: np.ndarray, sizes: np.ndarray, row: int) -> bytes | None:
    start, size = int(starts[row]), int(sizes[row])
    return None if size < 0 else step.data[start : start + size].tobytes()


def changed(data: bytes, changes: list[tuple[int, int]]) -> bytes:
    """Bytes of which some are others."""
    raw = bytearray(data)
    for at, byte in changes:
        if raw:
            raw[at % len(raw)] = byte
    return bytes(raw)


def any_section(count: int, codec: int, base: int, section: bytes) -> bytes:
    """A batch with this section, whatever that is."""
    whole = bytearray(batch([], 0))
    whole[:8], whole[22], whole[57:61] = (
        base.to_bytes(8, "big", signed=True),
        codec,
        count.to_bytes(4, "big", signed=True),
    )
    whole[8:12] = (len(whole) - 12 + len(section)).to_bytes(4, "big")
    return bytes(whole) + section


SMALL = st.lists(st.sampled_from([0, 0, 0, 1, 2, 3, 4, 12, 14, 16, 42, 126, 128, 129, 255]), max_size=40).map(bytes)
"""Bytes that are read as sizes that often fit."""
NUMBER = st.sampled_from([0, 1, -1, 63, 64, 8191, 8192, 2**31 - 1, -(2**31), 2**62, 2**63 - 1, -(2**63)])


@st.composite
def odd_records(draw: st.DrawFn) -> bytes:
    """A section of one record whose numbers may be long, wrong, or written with more bytes than they need."""

    def number(value: int) -> bytes:
        padding = draw(st.integers(0, 3))
        raw = zigzag(value)
        return raw[:-1] + bytes([raw[-1] | 0x80]) + b"\x80" * (padding - 1) + b"\0" if padding else raw

    key = draw(st.sampled_from([number(-1), number(-7), number(2) + b"ab", b"", number(3) + b"a"]))
    headers = draw(
        st.lists(st.sampled_from([blob(b"k") + blob(b"v"), blob(b"") + number(-1), number(1) + b"k", blob(None)]))
    )
    fields = b"\0" + number(draw(NUMBER)) + number(draw(NUMBER)) + key + blob(draw(st.sampled_from([None, b"value"])))
    fields += number(len(headers) + draw(st.sampled_from([0, 0, 0, 1, -1]))) + b"".join(headers)
    return number(len(fields) + draw(st.sampled_from([0, 0, 0, 1]))) + fields


CHANGES = st.lists(st.tuples(st.integers(0, 1_000), st.integers(0, 255)), max_size=3)
BATCH = st.one_of(
    st.builds(batch, many_records, st.integers(0, 4)),
    st.builds(any_section, st.integers(-1, 4), st.sampled_from([0, 0, 8, 3, 5]), NUMBER, SMALL),
    st.builds(any_section, st.just(1), st.sampled_from([0, 8]), NUMBER, odd_records()),
)
PART = st.one_of(
    BATCH,
    BATCH,
    st.builds(changed, BATCH, CHANGES),
    st.builds(lambda whole, cut: whole[:cut], BATCH, st.integers(0, 90)),
    st.just(any_section(2, 0, 0, b"*" * 50)),
    SMALL,
    st.builds(message, st.builds(Made, st.just(7), st.just(0), st.none(), st.binary(max_size=9)), st.integers(0, 1)),
)
FIELD = st.lists(PART, max_size=3).map(b"".join)
FRAMES = st.lists(st.lists(FIELD, min_size=1, max_size=3), max_size=4)


@given(FRAMES)
def test_columns_have_the_values_of_the_careful_way(frames: list[Frame]) -> None:
    assert in_columns(frames, DEFAULT) == careful(frames, DEFAULT)


@pytest.mark.long
@given(FRAMES, st.integers(0, 30), st.integers(0, 30), st.integers(0, 1_000))
def test_fields_of_a_frame_share_a_budget(frames: list[Frame], records: int, packed: int, size: int) -> None:
    bounds = replace(DEFAULT, frame_records=records, packed_records=packed, packed_size=size, packed_ratio=2)
    assert in_columns(frames, bounds) == careful(frames, bounds)


@given(FRAMES, st.integers(1, 5), st.integers(1, 9), st.integers(1, 300))
def test_small_buffers_give_the_same_records(frames: list[Frame], entries: int, records: int, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"ENTRIES": entries, "RECORDS": records, "HEADERS": 1, "BYTES": size}.items():
            patch.setattr(column_reader, name, value)
        found = in_columns(frames, DEFAULT)
    assert found == careful(frames, DEFAULT)


def test_sections_that_do_not_fit_behind_others_begin_the_buffer_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a frame that needs a closer look: a batch of it is masked."""
    monkeypatch.setattr(column_reader, "BYTES", 1_000)
    records = [Record(100 + n, 5_000, None, bytes(200), [RecordHeader("name", b"x")]) for n in range(3)]
    frames = [[batch(records, 3) * 3 + any_section(2, 3, 0, b"*" * 50)]]
    found = in_columns(frames, DEFAULT)
    assert found == careful(frames, DEFAULT)
    assert [entry[4] for entry in found] == [records, records, records, None]


def test_a_full_buffer_alone_has_no_frame_read_batch_by_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = [[batch([Record(0, 0, None, b"v", [])], 3)] * 2 for _ in range(9)]
    monkeypatch.setattr(column_reader, "ENTRIES", 5)
    monkeypatch.setattr(RecordReader, "_within_budgets", None)
    assert in_columns(frames, DEFAULT) == careful(frames, DEFAULT)


def test_records_of_captures_have_the_values_of_the_careful_way(bundled: Path) -> None:
    frames = [[field] for field in bundled_fields(bundled)]
    assert in_columns(frames, DEFAULT) == careful(frames, DEFAULT)


@given(many_records, st.integers(0, 4))
def test_contents_are_gathered_as_arrow_has_them(records: list[Record], codec: int) -> None:
    data = np.frombuffer(batch(records, codec), np.uint8)
    for step in RecordReader().read(data, np.array([0]), np.array([len(data)]), np.array([0])):
        values = gathered(step.data, step.value, step.value_size)
        joined = values.data.tobytes()
        parts = [joined[a:b] for a, b in zip(values.offsets, values.offsets[1:], strict=False)]
        assert parts == [record.value or b"" for record in records]
        assert (step.value_size < 0).tolist() == [record.value is None for record in records]


def test_what_is_outside_the_data_is_refused() -> None:
    data = np.zeros(10, np.uint8)
    for start, size in ((-1, 3), (8, 3), (0, 11), (2**62, 2**62)):
        with pytest.raises(ValueError, match="contents"):
            gathered(data, np.array([start]), np.array([size]))
    with pytest.raises(ValueError, match="field 0 is not inside the data"):
        list(RecordReader().read(data, np.array([0]), np.array([11]), np.array([0])))


def test_an_offset_of_more_than_64_bits_is_left_to_the_careful_way() -> None:
    field = any_section(1, 0, 2**63 - 1, bytes([12, 0, 0, 2, 1, 1, 0]))  # its delta is 1
    data = np.frombuffer(field, np.uint8)
    *_, step = RecordReader().read(data, np.array([0]), np.array([len(data)]), np.array([0]))
    assert step.entries["error"].tolist() == [BatchError.TOO_WIDE]
    assert Batch.read(field).records(frame_budget())[0].offset == 2**63


def objects(field: bytes, bounds: Limits, least: int) -> list[object]:
    """The records of each batch as objects or what is said of them, where as many as `least` are read natively."""
    budget, found = frame_budget(bounds), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_module, "MANY", least)
        for kind, start, end in split_entries(field):
            if kind is RecordsEntryKind.BATCH:
                try:
                    found.append(Batch.read(field[start:end]).records(budget))
                except (DecompressionError, WireError) as error:
                    found.append((str(error), getattr(error, "at", None)))
    return [*found, budget.parts]


@given(FIELD, st.integers(0, 30))
def test_objects_of_native_records_are_those_of_the_careful_way(field: bytes, parts: int) -> None:
    for bounds in (DEFAULT, replace(DEFAULT, frame_records=parts)):
        assert objects(field, bounds, 0) == objects(field, bounds, 1 << 31)


def test_fields_that_are_null_have_no_entries() -> None:
    starts, ends = np.array([5, 0, 7]), np.array([4, -1, 6])
    [entries] = split_fields(np.zeros(9, np.uint8), starts, ends, range(3), np.empty(10, ENTRY), 1 << 20)
    assert not len(entries)


def test_frames_for_which_there_is_no_room_at_once_are_read_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [batch([Record(100, 5_000, None, bytes(1000), [])] * 2, 4) for _ in range(6)]
    ends = np.cumsum([len(each) for each in made])
    data = np.frombuffer(b"".join(made), np.uint8)
    for most in (2_100, 4_200, 6_300, 1 << 20):
        monkeypatch.setattr(opened_sections, "MOST_PLAIN", most)
        monkeypatch.setattr(opened_sections, "FEW_BYTES", 0)
        read = list(RecordReader().read(data, np.append(0, ends[:-1]), ends, np.arange(6)))
        assert sum(len(part.offset) for part in read) == 12
