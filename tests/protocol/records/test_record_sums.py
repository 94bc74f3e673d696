"""Sums of the hashes of records: equal for equal records, whatever batches they are in; damage is an error."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.core.limits import DEFAULT
from dissector.protocol.records import record_sums
from dissector.protocol.records.batch import HEADER, Record
from dissector.protocol.records.columns import ENTRY, BatchError, Entries, split_fields
from dissector.protocol.records.compression import CODECS
from dissector.protocol.records.record_sums import RecordSummation, Sums
from dissector.protocol.wire import WireError, uvarint
from tests.cases import cases
from tests.protocol.records.test_batch import COMPRESS, batch, many_records, record
from tests.protocol.records.test_columns import any_section

WRAP = 1 << 64
Summed = tuple[int, int, int]
"""The sum over records, that over records with a key, and their number."""


def sums_of(batches: Sequence[bytes]) -> tuple[Entries, Sums]:
    data = np.frombuffer(b"".join(batches), np.uint8)
    ends = np.cumsum([len(each) for each in batches])
    starts = np.append(0, ends[:-1])
    [entries] = split_fields(data, starts, ends, range(len(batches)), np.empty(100, ENTRY), 1 << 20)
    return entries, RecordSummation().sums(data, entries)


def total(batches: Sequence[bytes]) -> Summed:
    entries, sums = sums_of(batches)
    assert not entries["error"].any()
    records, keyed, count = (int(sums[name].sum()) for name in ("records", "keyed", "keyed_count"))
    return records % WRAP, keyed % WRAP, count


@given(records=many_records, codec=st.sampled_from(list(CODECS)), data=st.data())
def test_other_batches_offsets_times_and_codecs_have_the_same_sums(
    records: list[Record], codec: int, data: st.DataObject
) -> None:
    other = [each._replace(offset=3 * each.offset, timestamp=each.timestamp + 9) for each in records]
    other = data.draw(st.permutations(other))
    at = data.draw(st.integers(0, len(records)))
    whole = total([batch(records)])
    assert whole == total([batch(other[:at], codec), batch(other[at:], codec)])
    assert whole[2] == sum(each.key is not None for each in records)


@given(one=many_records, other=many_records)
def test_sums_are_equal_for_equal_records_alone(one: list[Record], other: list[Record]) -> None:
    contents = [sorted(repr(each[2:]) for each in records) for records in (one, other)]
    assert (total([batch(one)])[0] == total([batch(other)])[0]) == (contents[0] == contents[1])


def careful(section: bytes, count: int) -> list[bytes] | None:
    """Key, value and headers of each record; None for a section that is damaged."""
    if not 0 <= count * 7 <= len(section):
        return None
    found, at = [], 0
    try:
        for _ in range(count):
            size, at = uvarint(section, at)
            end = at + (size >> 1)
            at += 1
            for _ in range(2):  # the deltas of its timestamp and of its offset
                while section[at] >= 0x80:
                    at += 1
                at += 1
            if size & 1 or not at < end <= len(section):
                return None
            found.append(section[at:end])
            at = end
    except (IndexError, WireError):
        return None
    return found


@given(
    records=many_records, count=st.integers(-1, 9), at=st.floats(0, 1), byte=st.integers(0, 255), cut=st.floats(0, 1)
)
def test_a_damaged_section_is_an_error_and_adds_nothing(
    records: list[Record], count: int, at: float, byte: int, cut: float
) -> None:
    section = bytearray(b"".join(record(*each) for each in records))
    if section:
        section[int(at * (len(section) - 1))] = byte
    section = section[: int((1 - cut * cut) * len(section))]
    found = careful(bytes(section), count)
    [entry], [sums] = sums_of([any_section(count, 0, 0, bytes(section))])
    assert (entry["error"] == BatchError.NONE) == (found is not None)
    if found is None:
        assert sums.tolist() == (0, 0, 0)
    else:
        assert sums["keyed_count"] == sum(each[0] != 1 for each in found)


def test_the_hash_is_the_one_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    contents = [bytes([3, *range(n), 7]) for n in range(3, 40)]
    program = f"print([hash(each) for each in {contents}])"
    run = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | {"PYTHONHASHSEED": "0"}, stdout=-1, check=True
    )
    monkeypatch.setattr(record_sums, "_KEY", np.zeros(16, np.uint8))
    sections = [bytes([2 * (len(each) + 3), 0, 0, 0]) + each for each in contents]
    entries, sums = sums_of([any_section(1, 0, 0, each) for each in sections])
    assert not entries["error"].any()
    assert [int(each) for each in sums["records"].view(np.int64)] == eval(run.stdout)


def test_a_batch_that_cannot_be_decompressed_leaves_the_others() -> None:
    good = batch([Record(100, 5_000, b"k", b"v", [])], 4)
    broken = good[: HEADER.size] + bytes(len(good) - HEADER.size)
    entries, sums = sums_of([good, broken, good])
    assert entries["error"].tolist() == [BatchError.NONE, BatchError.REFUSED, BatchError.NONE]
    assert sums[0] == sums[2] != sums[1]


def test_a_bomb_of_records_is_refused() -> None:
    count = DEFAULT.packed_records + 1_000
    [entry], _ = sums_of([any_section(count, 4, 0, COMPRESS[4](bytes([14, *bytes(7)]) * count))])
    assert entry["error"] == BatchError.REFUSED


@cases(("limit", "less", "is_refused"), [
    ("frame_records", 0, False), ("frame_records", 1, True), ("packed_records", 0, False), ("packed_records", 1, True),
])  # fmt: skip
def test_a_batch_has_as_many_records_as_are_allowed(limit: str, less: int, is_refused: bool) -> None:
    made = batch([Record(100, 5_000, None, None, [])] * 300, 4)
    bounds = replace(DEFAULT, **{limit: 300 - less - (len(made) - HEADER.size) * (limit == "packed_records")})
    entries = entries_of(made)
    RecordSummation(bounds).sums(np.frombuffer(made, np.uint8), entries)
    assert (entries["error"][0] == BatchError.REFUSED) == is_refused


def test_a_number_of_records_for_which_there_is_no_room_is_damage() -> None:
    made = bytearray(batch([Record(100, 5_000, None, bytes(100), [])] * 10))
    made[HEADER.size - 4 : HEADER.size] = (1 << 30).to_bytes(4, "big")
    entries = entries_of(bytes(made))
    RecordSummation(replace(DEFAULT, frame_records=len(made) // 7)).sums(np.frombuffer(made, np.uint8), entries)
    assert entries["error"][0] == BatchError.DAMAGED


def entries_of(data: bytes) -> Entries:
    """Those of one field."""
    none = np.zeros(1, np.int64)
    room = np.empty(100, ENTRY)
    [entries] = split_fields(np.frombuffer(data, np.uint8), none, none + len(data), range(1), room, 1 << 20)
    return entries
