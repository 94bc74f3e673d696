"""Frames in pieces are joined natively as they are read."""

import pickle
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.core.batches import NOWHERE, FrameBatch
from dissector.core.columns import Column
from dissector.core.store import Store
from dissector.index import frame_table
from dissector.index.frame_table import PIECES_TOGETHER, FrameTable
from tests.cases import cases

PIECES = st.lists(st.tuples(st.booleans(), st.integers(1, 9)), min_size=2, max_size=3 * PIECES_TOGETHER)
"""Of a frame: whether each was captured, and its size."""


def table_of(frames: list[list[tuple[bool, int]]]) -> FrameTable:
    """A table whose pieces are in two regions, each byte its place modulo 251."""
    store = Store()
    room = sum(size for pieces in frames for there, size in pieces if there or size < 1000) + 1
    data = bytes(at % 251 for at in range(room))
    bases = store.add(data), store.add(data[::-1])
    pieces = [piece for each in frames for piece in each]
    ends = np.cumsum([size for _, size in pieces])
    addresses = [
        bases[number % 2] + int(end) - size if there else NOWHERE
        for number, ((there, size), end) in enumerate(zip(pieces, ends.tolist(), strict=True))
    ]
    sizes = np.array([sum(size for _, size in each) for each in frames], np.int64)
    zeros = np.zeros(len(frames), np.int64)
    counts = np.cumsum([0, *map(len, frames)])
    table = FrameTable(store)
    piece_sizes = np.array([size for _, size in pieces], np.int64)
    kinds = zeros.astype(np.uint8)
    piece_addresses = np.array(addresses, np.int64)
    table.extend(
        FrameBatch(zeros, kinds, zeros, sizes, zeros, zeros, zeros, counts, piece_addresses, piece_sizes, zeros > 0)
    )
    return table


@given(st.lists(PIECES, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_joined_frames_are_as_they_are_read(frames: list[list[tuple[bool, int]]], random: Random) -> None:
    table = table_of(frames)
    rows = np.array(random.sample(range(len(frames)), random.randint(1, len(frames))))
    data, sizes = table.joined(rows)
    assert len(data) == sizes.sum()
    ends = np.cumsum(sizes).tolist()
    for row, end, size in zip(rows.tolist(), ends, sizes.tolist(), strict=True):
        read, whole = table.read(row)
        is_whole = all(there for there, _ in frames[row])
        assert size == (len(read) if is_whole else 0)
        if is_whole:
            assert whole == size
            assert data[end - size : end].tobytes() == read


@given(st.lists(PIECES, min_size=1, max_size=5), st.integers(1, 30))
def test_a_beginning_in_one_piece_is_found_in_columns(frames: list[list[tuple[bool, int]]], width: int) -> None:
    table = table_of(frames)
    for row, address in enumerate(table.beginnings(np.arange(len(frames)), width).tolist()):
        (there, size), *_ = frames[row]
        assert (address >= 0) == (there and size >= min(width, sum(each for _, each in frames[row])))
        if address >= 0:
            data, _ = table.read(row, width)
            assert table._store.read(address, len(data)) == data


def test_a_frame_of_very_many_pieces_is_joined() -> None:
    table = table_of([[(True, 3)] * 5_000, [(True, 1), (False, 1)]])
    data, sizes = table.joined(np.array([0, 1]))
    assert data.tobytes() == table.read(0)[0]
    assert sizes.tolist() == [15_000, 0]


def test_a_frame_whose_first_piece_is_its_largest_is_joined() -> None:
    table = table_of([[(True, 1000), *[(True, 1)] * 5_000]])
    data, sizes = table.joined(np.array([0]))
    assert data.tobytes() == table.read(0)[0]
    assert sizes.tolist() == [6_000]


@cases(("size", "kept"), [(2**31 - 2, 2**31 - 2), (2**31 - 1, 2**31 - 1), (2**31, 2**31 - 1), (1 << 40, 2**31 - 1)])
def test_a_row_has_as_many_bytes_as_a_number_of_32_bits_holds(size: int, kept: int) -> None:
    table = table_of([[(False, size)]])
    assert table.size.values.tolist() == [kept]


def test_a_frame_is_alone_if_no_other_of_its_direction_is_in_its_packet() -> None:
    packets, directions = np.array([5, 5, 6, 7, 7, 8, 8]), np.array([0, 0, 0, 0, 1, 1, 1])
    zeros = np.zeros(7, np.int64)
    whole = FrameTable(Store())
    in_parts = FrameTable(Store())
    for table, parts in ((whole, [slice(0, 7)]), (in_parts, [slice(0, 1), slice(1, 3), slice(3, 6), slice(6, 7)])):
        for part in parts:
            count = len(packets[part])
            times = zeros[part], zeros[part]
            columns = (zeros[part].astype(np.uint8), zeros[part], zeros[part] + 9, *times, packets[part])
            pieces = np.arange(count + 1), np.full(count, NOWHERE), np.full(count, 9)
            table.extend(FrameBatch(directions[part], *columns, *pieces, zeros[part] > 0))
        assert table.is_alone.values.tolist() == [False, False, True, True, True, False, False]


@given(st.lists(PIECES, min_size=1, max_size=5))
def test_large_frames_are_read_as_others_are(frames: list[list[tuple[bool, int]]]) -> None:
    table = table_of(frames)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frame_table, "JOINED", 1 << 30)
        as_others = list(map(table.read, range(len(frames))))
        patch.setattr(frame_table, "JOINED", 1)
        assert list(map(table.read, range(len(frames)))) == as_others


@given(st.lists(PIECES, min_size=1, max_size=5))
def test_a_large_frame_costs_what_was_captured_of_it(frames: list[list[tuple[bool, int]]]) -> None:
    table, rows = table_of(frames), np.arange(len(frames))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frame_table, "JOINED", 1)
        assert table.costs(rows).tolist() == list(map(table.captured, rows.tolist()))


@given(st.lists(PIECES, min_size=2, max_size=5), st.data())
def test_a_checkpoint_has_all_of_the_frames_that_it_keeps(
    frames: list[list[tuple[bool, int]]], data: st.DataObject
) -> None:
    table = table_of(frames)
    kept = np.array(sorted(data.draw(st.sets(st.sampled_from(range(len(frames)))))), np.int64)
    table._transfer_ns.values[:] = 5 + np.arange(len(frames))
    before = list(map(table.read, kept.tolist()))
    table.retain(kept, kept[:0])
    restored = FrameTable(table._store)
    for name, value in vars(table).items():
        setattr(restored, name, pickle.loads(pickle.dumps(value)) if isinstance(value, Column) else value)
    assert list(map(restored.read, kept.tolist())) == before
    assert restored.transfer_ns(kept).tolist() == (5 + kept).tolist()
