"""The kernel splits streams into frames as plain Python does, from the bytes that a capture has."""

from itertools import accumulate, pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.core.batches import NOWHERE, FrameBatch, RunBatch, RunKind
from dissector.core.store import Store
from dissector.framing import fast_path
from dissector.framing.fast_path import follow

LARGEST = 60
Frames = list[tuple[int, int, int]]
SIZES = (4, 5, 10, *[12, 20, 30] * 4, 56, 57, 3, 2**31, 2**32 - 1)


def made_up(chance: Random) -> tuple[bytes, list[tuple[int, int, bool]], int]:
    """A stream of frames, most of them possible; its runs, and whether each was captured; a place in the first one."""
    sizes = chance.choices(SIZES, k=chance.randint(1, 8))
    stream = b"".join(size.to_bytes(4, "big") + bytes(size if size < 99 else 0) for size in sizes)
    ends = [*accumulate(chance.choices(range(1, 17), k=chance.randint(1, 16)))]
    runs = [(start, end, chance.random() < 0.7) for start, end in pairwise([0, *ends])]
    return stream.ljust(ends[-1], b"\0")[: ends[-1]], runs, chance.choice((0, 0, 0, ends[0] // 2))


def plain(stream: bytes, runs: list[tuple[int, int, bool]], at: int) -> tuple[Frames, tuple[int, int]]:
    """Frames (offset, size and number of pieces) of one direction from a place on, and where it stops."""
    captured = {byte for start, end, there in runs if there for byte in range(start, end)}
    found = []
    while any(at < end for _, end, _ in runs):
        size = 4 + int.from_bytes(stream[at : at + 4], "big", signed=True)
        is_whole = at + size <= runs[-1][1] and 8 <= size <= LARGEST
        if not captured.issuperset(range(at, at + 4)) or not is_whole:
            break
        if not captured.issuperset(range(at, at + min(size, 14))):
            break
        found.append((at, size, sum(start < at + size and at < end for start, end, _ in runs)))
        at += size
    return found, (sum(end <= at for _, end, _ in runs), at)


def batch(streams: list[tuple[bytes, list[tuple[int, int, bool]]]]) -> tuple[Store, RunBatch]:
    """Runs of directions, one behind the other."""
    store, rows = Store(), []
    for direction, (stream, runs) in enumerate(streams):
        base = store.add(stream) if stream else 0
        for start, end, there in runs:
            kind = RunKind.DATA if there else RunKind.LOST
            rows.append((direction, kind, start, base + start if there else NOWHERE, end - start))
    direction, kind, start, address, size = np.array(rows, np.int64).T
    numbers = np.arange(len(rows))
    return store, RunBatch(direction, kind.astype(np.uint8), start, address, size, numbers, numbers)


def listed(frames: FrameBatch, direction: int) -> Frames:
    """Frames of a direction."""
    rows = frames.direction == direction
    columns = (frames.start, frames.size, np.diff(frames.piece))
    return [*zip(*(column[rows].tolist() for column in columns), strict=True)]


@given(st.integers(0, 2**32), st.sampled_from((0, 1, 1000)))
def test_frames_are_those_of_a_plain_loop(seed: int, room: int) -> None:
    chance = Random(seed)
    streams = [made_up(chance) for _ in range(60)]
    made, places = [each[:2] for each in streams], [at for *_, at in streams]
    store, runs_of_all = batch(made)
    highs = np.cumsum([len(runs) for _, runs in made])
    lows = highs - [len(runs) for _, runs in made]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fast_path, "ROOM", 1 - len(runs_of_all) + room)  # so the kernel is called again for more
        frames, rows, offsets = follow(store, runs_of_all, LARGEST, lows, highs, np.array(places))
    for direction, ((stream, runs), at) in enumerate(zip(made, places, strict=True)):
        found, (row, offset) = plain(stream, runs, at)
        assert listed(frames, direction) == found
        assert (rows[direction], offsets[direction]) == (lows[direction] + row, offset)
    sizes = np.add.reduceat(frames.piece_size, frames.piece[:-1]) if len(frames) else []
    assert list(sizes) == frames.size.tolist()
