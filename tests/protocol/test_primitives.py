"""Each primitive type by itself, against bytes written by hand from the protocol guide."""

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol import primitives as types
from dissector.protocol.wire import EncodeError, WireError
from tests.cases import cases

UUID = "AAECAwQFBgcICQoLDA0ODw"
BY_HAND = [
    (types.BOOLEAN, True, "01"), (types.BOOLEAN, False, "00"),
    (types.INT8, -1, "ff"), (types.INT16, -2, "fffe"), (types.INT32, 1, "00000001"), (types.INT64, -1, "ff" * 8),
    (types.UINT16, 65535, "ffff"), (types.UINT32, 2**32 - 1, "ffffffff"), (types.FLOAT64, 1.5, "3ff8000000000000"),
    (types.UUID, UUID, "000102030405060708090a0b0c0d0e0f"),
    (types.UNSIGNED_VARINT, 0, "00"), (types.UNSIGNED_VARINT, 300, "ac02"),
    (types.UNSIGNED_VARINT, 2**32 - 1, "ffffffff0f"),
    (types.VARINT, -1, "01"), (types.VARINT, 1, "02"), (types.VARINT, -(2**31), "ffffffff0f"),
    (types.VARLONG, 2**63 - 1, "feffffffffffffffff01"), (types.VARLONG, -64, "7f"),
    (types.STRING, "añ", "000361c3b1"), (types.NULLABLE_STRING, None, "ffff"), (types.COMPACT_STRING, "", "01"),
    (types.COMPACT_STRING, "abc", "04616263"), (types.COMPACT_NULLABLE_STRING, None, "00"),
    (types.BYTES, b"\x00\xff", "0000000200ff"), (types.NULLABLE_BYTES, None, "ffffffff"),
    (types.COMPACT_BYTES, b"\x07", "0207"), (types.COMPACT_NULLABLE_BYTES, None, "00"),
    (types.RECORDS, b"", "00000000"), (types.NULLABLE_RECORDS, None, "ffffffff"),
    (types.COMPACT_RECORDS, b"", "01"), (types.COMPACT_NULLABLE_RECORDS, None, "00"),
    (types.array(types.INT16), [1, 2], "0000000200010002"), (types.array(types.INT8, nullable=True), None, "ffffffff"),
    (types.array(types.UUID, compact=True), [UUID], "02000102030405060708090a0b0c0d0e0f"),
    (types.array(types.COMPACT_STRING, compact=True), ["a", ""], "03026101"),
    (types.TAGGED_FIELDS, [], "00"),
    (types.TAGGED_FIELDS, [{"tag": 0, "data": b"\x01"}, {"tag": 300, "data": b""}], "02000101ac0200"),
]  # fmt: skip


@cases(("type_", "value", "raw"), BY_HAND, ids=lambda each: getattr(each, "name", repr(each)))
def test_values_and_bytes_written_by_hand(type_: types.Primitive, value: object, raw: str) -> None:
    data = bytes.fromhex(raw)
    assert type_.write(value) == data
    assert type_.read(b"\x55" + data + b"\x55", 1) == (value, 1 + len(data))


def test_every_primitive_is_among_them() -> None:
    assert {type_.name for type_ in types.PRIMITIVES} <= {type_.name for type_, _, _ in BY_HAND}


OUT_OF_RANGE = [
    (types.BOOLEAN, 1), (types.INT8, 128), (types.INT8, True), (types.INT16, -32769), (types.INT32, 2**31),
    (types.INT64, 2**63), (types.UINT16, -1), (types.UINT32, 2**32), (types.FLOAT64, "1"), (types.UUID, "short"),
    (types.UUID, "!" * 22), (types.UNSIGNED_VARINT, -1), (types.UNSIGNED_VARINT, 2**32), (types.VARINT, 2**31),
    (types.VARLONG, 2**63), (types.STRING, None), (types.STRING, b"bytes"), (types.STRING, "x" * 32768),
    (types.STRING, "\ud800"), (types.COMPACT_STRING, "é" * 16384), (types.BYTES, "text"), (types.BYTES, None),
    (types.array(types.INT8), None), (types.array(types.INT8), "12"), (types.array(types.INT8), [0, 300]),
    (types.TAGGED_FIELDS, [{"tag": -1, "data": b""}]), (types.TAGGED_FIELDS, [{"tag": 1}]), (types.TAGGED_FIELDS, 7),
]  # fmt: skip


@cases(("type_", "value"), OUT_OF_RANGE, ids=lambda each: getattr(each, "name", repr(each)[:20]))
def test_what_a_type_cannot_hold_is_refused(type_: types.Primitive, value: object) -> None:
    with pytest.raises(EncodeError):
        type_.write(value)


@cases("type_", types.PRIMITIVES, ids=lambda each: each.name)
def test_bytes_that_end_inside_a_value_are_refused(type_: types.Primitive) -> None:
    value = next(value for each, value, raw in BY_HAND if each is type_ and len(raw) > 0)
    raw = type_.write(value)
    for cut in range(len(raw)):
        with pytest.raises(WireError):
            type_.read(raw[:cut])


@cases(("type_", "most"), [(types.UNSIGNED_VARINT, 5), (types.VARINT, 5), (types.VARLONG, 10)])
def test_longer_varints_are_refused(type_: types.Primitive, most: int) -> None:
    with pytest.raises(WireError):
        type_.read(b"\x80" * most + b"\x01")


def test_counts_and_lengths_past_the_end_are_refused_before_anything_is_allocated() -> None:
    for type_, raw in (
        (types.array(types.INT64), "7fffffff"),
        (types.BYTES, "7fffffff"),
        (types.COMPACT_STRING, "ffff03"),
    ):
        with pytest.raises(WireError):
            type_.read(bytes.fromhex(raw))


def test_an_error_says_which_element() -> None:
    with pytest.raises(EncodeError, match=r"^\[1\]: 300 is not in the range of INT8"):
        types.array(types.INT8).write([0, 300])


@given(st.floats())
def test_floats_keep_every_bit(value: float) -> None:
    raw = types.FLOAT64.write(value)
    assert raw == struct.pack(">d", value)
    read, _ = types.FLOAT64.read(raw)
    assert isinstance(read, float)
    assert read == value or math.isnan(read)


@given(st.integers(-(2**63), 2**63 - 1))
def test_varlongs_go_both_ways(value: int) -> None:
    raw = types.VARLONG.write(value)
    assert types.VARLONG.read(raw) == (value, len(raw))
    if -(2**31) <= value < 2**31:
        assert types.VARINT.write(value) == raw
