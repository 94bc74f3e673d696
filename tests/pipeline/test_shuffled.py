"""Packets that were dealt out come back part by part, in their order, wherever their files were cut."""

import stat
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture.partition import Block
from dissector.pipeline import shuffled
from dissector.pipeline.shuffled import by_partition, location_without_packets, write_blocks
from dissector.pipeline.splits import RoutedBlock

Packet = tuple[int, bytes]


def of(packets: Sequence[Packet]) -> Block:
    """Packets of these numbers."""
    heads = np.zeros((5, len(packets)), "<i8")
    heads[0] = [number for number, _ in packets]
    heads[2] = [len(data) for _, data in packets]
    return Block(packets[0][0], heads.tobytes(), b"".join(data for _, data in packets))


def packets(block: Block) -> Iterator[Packet]:
    at = 0
    for number, size in np.frombuffer(block.heads, "<i8").reshape(5, -1)[[0, 2]].T.tolist():
        yield number, block.data[at : at + size]
        at += size


def sorted_locations(batches: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Places as Spark brings them: those of a part together and in order, some at a time."""
    return pa.Table.from_batches(batches).sort_by([("part", "ascending"), ("first", "ascending")]).to_batches(3)


tasks = st.lists(st.lists(st.tuples(st.integers(0, 3), st.lists(st.binary(max_size=40), min_size=1, max_size=4))))


@given(tasks=tasks, together=st.integers(1, 200))
def test_every_part_has_its_packets_in_order(
    tmp_path: Path, tasks: list[list[tuple[int, list[bytes]]]], together: int
) -> None:
    expected: dict[int, list[Packet]] = defaultdict(list)
    number, batches = 1, []
    with pytest.MonkeyPatch.context() as here:
        here.setattr(shuffled, "GATHERED_BYTES", together)
        for task in tasks:
            some = []
            for part, data in task:
                numbered = list(enumerate(data, number))
                number += len(data)
                expected[part] += numbered
                some.append(RoutedBlock(part, of(numbered)))
            left_out = RoutedBlock(0, Block(number, b"", b"of this task"))
            batches += write_blocks([*some, left_out], f"file://{tmp_path}")
    found = {}
    markers = 0
    for part, blocks in by_partition(sorted_locations(batches) if batches else [], f"file://{tmp_path}"):
        assert part not in found
        found[part] = []
        for block in blocks:
            markers += block.data == b"of this task" and not block.heads
            found[part] += packets(block) if block.heads else []
    assert {part: some for part, some in found.items() if some} == expected
    assert markers == len(tasks)


def test_a_part_that_nothing_was_dealt_to_has_what_it_was_given_nowhere() -> None:
    empty = location_without_packets(2, Block(-1, b"", b"nothing"))
    [(part, blocks)] = by_partition([pa.RecordBatch.from_pylist([empty._asdict()])], "file:///nonexistent")
    assert (part, list(blocks)) == (2, [Block(-1, b"", b"nothing")])


def test_small_blocks_of_a_part_stand_together(tmp_path: Path) -> None:
    """However many parts there are: one place each."""
    some = [RoutedBlock(number % 5, of([(number, b"data")])) for number in range(1, 101)]
    [batch] = write_blocks(some, f"file://{tmp_path}")
    assert batch.column("part").to_pylist() == [0, 1, 2, 3, 4]
    [file] = tmp_path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600, "packets have secrets"
    assert file.stat().st_size == sum(batch.column("heads").to_pylist()) + sum(batch.column("data").to_pylist())
