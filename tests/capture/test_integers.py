"""Words that stand at places are what struct reads there, and zeros behind the data."""

import struct

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture.integers import ByteOrder, read_unsigned, read_words


@given(data=st.binary(min_size=1, max_size=80), picks=st.sets(st.integers(0, 79)), count=st.integers(1, 7))
def test_heads_are_words_in_either_order(data: bytes, picks: set[int], count: int) -> None:
    places = sorted(at for at in picks if at < len(data))
    order: ByteOrder
    for order in ("<", ">"):
        padded = data + bytes(4 * count)
        expected = [struct.unpack_from(f"{order}{count}I", padded, at) for at in places]
        found = read_words(np.frombuffer(data, np.uint8), np.array(places, np.int64), count, order)
        assert list(zip(*(column.tolist() for column in found), strict=True)) == expected


@given(data=st.binary(min_size=1, max_size=40), width=st.integers(1, 4))
def test_numbers_of_any_width_are_read_at_any_place(data: bytes, width: int) -> None:
    places = np.arange(max(0, len(data) - width + 1))
    for order, name in (("<", "little"), (">", "big")):
        expected = [int.from_bytes(data[at : at + width], name) for at in places.tolist()]
        assert read_unsigned(np.frombuffer(data, np.uint8), places, width, order).tolist() == expected
