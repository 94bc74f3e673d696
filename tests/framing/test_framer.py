"""Frames do not depend on how their stream was cut; rows tile the stream; lost places are found again."""

import random
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.core.arrays import Bool, Int64, UInt8
from dissector.core.batches import NOWHERE, FrameBatch, FrameKind, RunBatch, RunKind
from dissector.core.limits import DEFAULT, Limits
from dissector.core.store import Store
from dissector.detection.frame_heuristics import RequestSeries
from dissector.framing import Classification, FoundFrame, FrameEvidence, FrameHeuristics, Framer, FrameSeries
from tests.traffic import request, response, seeds

Row = tuple[int, int, int, bytes]
"""Kind, stream offset, size, bytes (``?`` for those that are missing)."""


class Metadata:
    """Frames begin as Metadata requests do."""

    one_is_enough = True
    within_segments = True

    def strong(self, words: Int64, lengths: Int64) -> Bool:
        return words >> 16 == 3

    def judge(self, head: bytes, packet: int) -> FrameEvidence:
        return FrameEvidence.STRONG if head[4:6] == b"\x00\x03" and len(head) >= 14 else FrameEvidence.NONE

    def series(self) -> FrameSeries:
        return RequestSeries()

    def follow(self, found: Iterable[FoundFrame]) -> bool:
        return True


class Anything:
    """Classifies every stream as `begins`."""

    def __init__(self, begins: Classification = Classification.FRAMES, heads: FrameHeuristics | None = None) -> None:
        self._begins = begins
        self._heads = heads or Metadata()
        self.findings: list[int] = []

    def classify(self, direction: int, head: bytes, *, from_start: bool, final: bool) -> Classification:
        return self._begins

    def classify_starts(self, directions: Int64, heads: UInt8, sizes: Int64) -> Bool:
        return np.full(len(directions), self._begins is Classification.FRAMES)

    def is_client(self, direction: int) -> bool:
        return True

    def heuristics(self, direction: int) -> FrameHeuristics:
        return self._heads

    def is_probably_kafka(self, direction: int) -> bool:
        return False

    def confirm(self, direction: int, head: bytes) -> None:
        self.findings.append(direction)


def split(
    stream: bytes, cuts: list[int], missing: set[int], batch: int, bounds: Limits = DEFAULT,
    begins: Classification = Classification.FRAMES, heads: FrameHeuristics | None = None,
) -> list[Row]:  # fmt: skip
    """The rows of a stream that comes in runs cut at `cuts`; the runs numbered in `missing` are gaps."""
    store = Store()
    base = store.add(stream)
    ends = [*sorted({cut for cut in cuts if 0 < cut < len(stream)}), len(stream)]
    starts = [0, *ends[:-1]]
    runs = [
        (0, RunKind.LOST if n in missing else RunKind.DATA, a, NOWHERE if n in missing else base + a, b - a, n, n)
        for n, (a, b) in enumerate(zip(starts, ends, strict=True))
    ]
    splitter = Framer(store, Anything(begins, heads), bounds)
    rows: list[Row] = []

    def take(batches: Iterable[FrameBatch]) -> None:
        for frames in batches:
            for n in range(len(frames)):
                pieces = range(int(frames.piece[n]), int(frames.piece[n + 1]))
                parts = [(int(frames.piece_address[p]), int(frames.piece_size[p])) for p in pieces]
                data = b"".join(b"?" * size if at == NOWHERE else bytes(store.read(at, size)) for at, size in parts)
                rows.append((int(frames.kind[n]), int(frames.start[n]), int(frames.size[n]), data))

    for at in range(0, len(runs), batch):
        columns = np.array(runs[at : at + batch], np.int64).T
        take(splitter.feed(RunBatch(columns[0], columns[1].astype(np.uint8), *columns[2:])))
        take(splitter.end(np.zeros(0, np.int64)))
    take(splitter.flush())
    return rows


@given(count=st.integers(1, 8), cuts=st.lists(st.integers(1, 400)), batch=st.integers(1, 9))
def test_any_cutting_gives_the_same_frames(count: int, cuts: list[int], batch: int) -> None:
    frames = [request(n, client_id=b"x" * (n * 7)) for n in range(count)]
    rows = split(b"".join(frames), cuts, set(), batch)
    assert [row[3] for row in rows] == frames
    assert {row[0] for row in rows} == {FrameKind.FRAME}


@given(chance=seeds, cuts=st.lists(st.integers(1, 400), min_size=4), batch=st.integers(1, 9))
def test_rows_tile_the_stream_whatever_is_missing(chance: random.Random, cuts: list[int], batch: int) -> None:
    stream = b"".join(request(n, client_id=b"x" * (n * 3)) for n in range(12))
    missing = set(chance.sample(range(1, len(cuts)), min(2, len(cuts) - 1)))
    rows = split(stream, cuts, missing, batch)
    at = 0
    for _, start, size, data in rows:
        assert start == at
        assert len(data) == size
        at += size
    assert at == len(stream)
    whole = {data for kind, _, _, data in rows if kind == FrameKind.FRAME and b"?" not in data}
    assert whole <= {request(n, client_id=b"x" * (n * 3)) for n in range(12)}


@given(junk=st.binary(max_size=300), batch=st.integers(1, 5))
def test_any_bytes_are_tiled(junk: bytes, batch: int) -> None:
    rows = split(junk, [7, 19, 100], set(), batch) if junk else []
    # A last frame may say that it is longer than what is there.
    assert sum(min(size, len(junk) - start) for _, start, size, _ in rows) == len(junk)


@pytest.mark.parametrize("begins", [Classification.SEARCH, Classification.POSSIBLE])
def test_a_frame_in_the_middle_of_bytes_is_found(begins: Classification) -> None:
    lost = b"\x00\x07rest of what was lost"
    rows = split(lost + request(1) + request(2), [], set(), 1, begins=begins)
    assert [(kind, data) for kind, _, _, data in rows] == [
        (FrameKind.UNPARSED, lost), (FrameKind.FRAME, request(1)), (FrameKind.FRAME, request(2))
    ]  # fmt: skip


@pytest.mark.parametrize("stream", [b"nothing here at all", response(1) + b"??"])
def test_nothing_is_found_where_there_is_no_frame(stream: bytes) -> None:
    assert split(stream, [], set(), 1, begins=Classification.POSSIBLE) == []
    [(kind, start, size, _)] = split(stream, [], set(), 1, begins=Classification.SEARCH)
    assert (kind, start, size) == (FrameKind.UNPARSED, 0, len(stream))


@given(
    before=st.binary(max_size=40), count=st.integers(1, 6), cuts=st.lists(st.integers(1, 300)), batch=st.integers(1, 9)
)
def test_found_frames_do_not_depend_on_batches(before: bytes, count: int, cuts: list[int], batch: int) -> None:
    stream = before + b"".join(request(n, client_id=b"x" * n * 5) for n in range(1, count + 1))
    whole = split(stream, cuts, {1}, 1 << 20, begins=Classification.SEARCH)
    assert split(stream, cuts, {1}, batch, begins=Classification.SEARCH) == whole
    assert split(stream, cuts, {1}, 1, begins=Classification.SEARCH) == whole


@pytest.mark.parametrize("has_frame", [True, False])
def test_what_is_found_in_one_direction_makes_the_other_one_kafka(has_frame: bool) -> None:
    """Bytes beside a gap of a direction that is only possibly Kafka become rows once the other one has a frame."""
    store, words = Store(), b"what no frame begins with"
    stream = request(1) + request(2) if has_frame else words
    other, one = store.add(words), store.add(stream)
    lost = 10
    runs = [
        (1, RunKind.DATA, 0, other, len(words), 0, 0),
        (1, RunKind.LOST, len(words), NOWHERE, lost, 1, 1),
        (1, RunKind.DATA, len(words) + lost, other, len(words), 2, 2),
        (0, RunKind.DATA, 0, one, len(stream), 3, 3),
    ]
    framer = Framer(store, Anything(Classification.POSSIBLE), DEFAULT)
    rows: list[tuple[int, int, int]] = []
    for run in runs:
        columns = np.array([run], np.int64).T
        batches = [*framer.feed(RunBatch(columns[0], columns[1].astype(np.uint8), *columns[2:]))]
        for frames in (*batches, *framer.end(np.zeros(0, np.int64))):
            rows += zip(frames.direction.tolist(), frames.kind.tolist(), frames.size.tolist(), strict=True)
    for frames in framer.flush():
        rows += zip(frames.direction.tolist(), frames.kind.tolist(), frames.size.tolist(), strict=True)
    kinds = [(FrameKind.UNPARSED, len(words)), (FrameKind.GAP, lost), (FrameKind.UNPARSED, len(words))]
    assert [row[1:] for row in rows if row[0] == 1] == (kinds if has_frame else [])


def test_held_runs_are_bounded() -> None:
    """Frames that never end come out as what they are: bytes without a frame."""
    stream = (1000).to_bytes(4, "big") + request(1)[4:] + bytes(500)
    bounds = Limits(held_runs=100)
    rows = split(stream, list(range(1, len(stream))), set(), 10, bounds)
    assert {row[0] for row in rows} == {FrameKind.UNPARSED}
    assert sum(row[2] for row in rows) == len(stream)


def test_a_size_about_the_largest_is_accepted_or_skipped_and_never_searched_forever() -> None:
    """What the search takes for a frame's beginning, splitting must take for one too."""
    largest = 1_000
    for size in range(largest - 5, largest + 6):
        stream = request(1) + size.to_bytes(4, "big") + request(2)[4:] + request(3)
        for batch in (1, 9):
            rows = split(stream, [11, 30], set(), batch, Limits(frame_size=largest))
            assert sum(len(row[3].replace(b"?", b"")) for row in rows) == len(stream)
