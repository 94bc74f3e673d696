"""A `records` field cut into parts, and its records counted by heads, one field at a time and many natively."""

import struct
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.records.counting import RecordCount, codec_names, count_at, count_records
from dissector.protocol.records.entries import RecordsEntryKind, is_one_batch, split_entries
from tests.cases import cases
from tests.protocol.records.bundled_fields import bundled_fields


def _part(magic: int, body: bytes, beyond: int) -> bytes:
    """What begins like a batch or a message, and says that it has so many more bytes, or fewer."""
    rest = struct.pack(">iB", 0, magic) + body
    return struct.pack(">qi", 0, len(rest) + beyond) + rest


PART = st.builds(
    _part, st.sampled_from((0, 1, 2, 2, 2, 3)), st.binary(min_size=40, max_size=70), st.sampled_from((0, 0, 0, -1, 1))
)
BATCH = st.binary(min_size=44, max_size=70).map(lambda body: _part(2, body, 0))
FIELD = st.one_of(st.binary(max_size=70), PART, st.lists(PART, max_size=3).map(b"".join))


@given(FIELD)
def test_a_field_is_one_batch_where_that_is_its_only_part(data: bytes) -> None:
    assert is_one_batch(data) == ([part.kind for part in split_entries(data)] == [RecordsEntryKind.BATCH])


@given(st.lists(BATCH, max_size=4))
def test_batches_count_for_as_much_together_as_alone(batches: list[bytes]) -> None:
    alone = [count_records(batch) for batch in batches]
    codecs = {codec for each in alone for codec in each.codecs}
    assert count_records(b"".join(batches)) == RecordCount(sum(each.records for each in alone), codecs)


def assert_counted(fields: list[bytes]) -> None:
    """Natively, many at once, as one by one."""
    data, sizes = np.frombuffer(b"".join(fields), np.uint8), np.array([len(field) for field in fields], np.int64)
    counts = count_at((data.ctypes.data + np.cumsum(sizes) - sizes).astype(np.uint64), sizes)
    found = [RecordCount(int(n), codec_names(int(bits))) for n, bits in zip(counts.records, counts.codecs, strict=True)]
    assert found == [count_records(field) for field in fields]


@given(st.lists(FIELD, max_size=5))
def test_many_fields_are_counted_as_each_alone(fields: list[bytes]) -> None:
    assert_counted(fields)


@given(st.data())
def test_damaged_fields_are_counted_as_each_alone(choice: st.DataObject) -> None:
    field = bytearray(choice.draw(st.lists(PART, min_size=1, max_size=3).map(b"".join)))
    for at in choice.draw(st.lists(st.integers(0, len(field) - 1), max_size=3)):
        field[at] = choice.draw(st.integers(0, 255))
    cut = choice.draw(st.integers(0, len(field)))
    assert_counted([bytes(field), bytes(field[:cut]), bytes(field[cut:])])


def test_fields_of_captures_are_counted_as_each_alone(bundled: Path) -> None:
    assert_counted(bundled_fields(bundled))


def test_null_has_no_records() -> None:
    data = np.frombuffer(_part(2, bytes(44), 0), np.uint8)
    counts = count_at(np.array([data.ctypes.data, data.ctypes.data + 5], np.uint64), np.array([-1, 0]))
    assert counts.records.tolist() == counts.codecs.tolist() == [0, 0]


@cases(("size", "is_one"), [(48, False), (49, True), (50, True)])
def test_a_batch_is_as_long_as_its_header_at_least(size: int, is_one: bool) -> None:
    assert is_one_batch(_part(2, bytes(size - 5), 0)) == is_one
