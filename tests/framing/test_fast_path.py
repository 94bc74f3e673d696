"""Frames taken by columns: many a run, many runs a frame, with whatever columns cannot decide left to the walk."""

import random

from hypothesis import given
from hypothesis import strategies as st

from dissector.core.batches import FrameKind
from tests.framing.test_framer import split
from tests.traffic import request, seeds


def frames_of(chance: random.Random, count: int, longest: int) -> list[bytes]:
    """Requests of any size up to `longest` and a little."""
    return [request(n, body=chance.randbytes(chance.choice([4, 9, chance.randint(0, longest)]))) for n in range(count)]


@given(
    chance=seeds, count=st.integers(1, 90), longest=st.sampled_from([10, 300, 5000]),
    cuts=st.integers(0, 200), aligned=st.floats(0, 1), batch=st.sampled_from([1, 3, 50, 1000]),
)  # fmt: skip
def test_frames_and_segments_may_be_of_any_size(
    chance: random.Random, count: int, longest: int, cuts: int, aligned: float, batch: int
) -> None:
    frames = frames_of(chance, count, longest)
    stream = b"".join(frames)
    begins = [sum(map(len, frames[:n])) for n in range(count)]
    places = [
        chance.choice(begins) if chance.random() < aligned else chance.randrange(len(stream)) for _ in range(cuts)
    ]
    rows = split(stream, places, set(), batch)
    assert [row[3] for row in rows] == frames
    assert {row[0] for row in rows} == {FrameKind.FRAME}


@given(chance=seeds, cuts=st.integers(20, 90), missing=st.integers(1, 6), batch=st.integers(2, 200))
def test_what_follows_a_hole_loses_no_byte(chance: random.Random, cuts: int, missing: int, batch: int) -> None:
    frames = frames_of(chance, 60, 200)
    stream = b"".join(frames)
    places = sorted(chance.sample(range(1, len(stream)), cuts))
    gone = set(chance.sample(range(1, cuts), missing))
    rows = split(stream, places, gone, batch)
    ends = [0, *(start + size for _, start, size, _ in rows)]
    assert [start for _, start, _, _ in rows] == ends[:-1]
    assert ends[-1] == len(stream)
    assert all(len(data) == size for _, _, size, data in rows)
    before = [row[3] for row in rows if row[0] == FrameKind.FRAME and row[1] + row[2] <= places[min(gone) - 1]]
    assert before == frames[: len(before)]
    assert len(b"".join(frames[: len(before) + 1])) > places[min(gone) - 1]
