"""The next frame is found where the rules say, each chain followed without shortcuts; batches make no difference."""

import random
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from hypothesis import given

from dissector.core.arrays import Bool, Int64
from dissector.core.batches import NOWHERE, RunBatch, RunKind
from dissector.core.limits import Limits
from dissector.core.store import Store
from dissector.framing import FoundFrame, FrameEvidence, FrameSeries
from dissector.framing.detector import LEAST_FRAME, PREFIX
from dissector.framing.frame_search import FrameSearch
from dissector.framing.pending_stream import PendingStream
from tests.cases import cases
from tests.traffic import seeds

STRONG, FAIR, WEAK, OTHER = b"\0\0\3\3", b"\2\2\2\2", b"\0\0\0\3", b"\5\5\5\5"
"""The words behind a size: a strong head, a fair one, a strong one that reads as a small number, and one that is not
consistent with these."""
LARGEST = 40


class Series:
    """Heads that are consistent as long as there is none of a kind behind another kind."""

    def __init__(self) -> None:
        self._words: set[bytes] = set()

    @property
    def state(self) -> int:
        return len(self._words)

    def add(self, head: bytes) -> bool:
        self._words.add(head[PREFIX : PREFIX + 1])
        return len(self._words) < 3

    def is_consistent(self, ends: int) -> bool:
        return len(self._words) < 2


class Heads:
    """Frames begin with one of four words."""

    within_segments = True

    def __init__(self, one_is_enough: bool) -> None:
        self.one_is_enough = one_is_enough

    def strong(self, words: Int64, lengths: Int64) -> Bool:
        return np.isin(words, [int.from_bytes(each, "big") for each in (STRONG, WEAK, OTHER)])

    def judge(self, head: bytes, packet: int) -> FrameEvidence:
        word = head[PREFIX : PREFIX + 4]
        if word == FAIR:
            return FrameEvidence.FAIR
        return FrameEvidence.STRONG if word in (STRONG, WEAK, OTHER) else FrameEvidence.NONE

    def series(self) -> FrameSeries:
        return Series()

    def follow(self, found: Iterable[FoundFrame]) -> bool:
        return True


@dataclass
class Rules:
    """Where a chain is certain, by the words of `frame_search`."""

    stream: bytes
    """Up to a hole, or to the end."""
    ends: list[int]
    """Of segments; the last one may be that of a hole."""
    heads: Heads
    resync: int

    def segment(self, offset: int) -> tuple[int, int]:
        end = next(end for end in self.ends if end > offset)
        return max([0, *(each for each in self.ends if each <= offset)]), end

    def ends_segment(self, offset: int) -> bool:
        if offset > self.ends[-1]:
            return False
        start, end = self.segment(offset - 1)
        return end == offset and (end - start >= LEAST_FRAME or offset == len(self.stream))

    def size(self, at: int) -> int:
        return PREFIX + int.from_bytes(self.stream[at : at + PREFIX], "big")

    def evidence(self, at: int) -> FrameEvidence:
        is_sized = at + LEAST_FRAME <= len(self.stream) and LEAST_FRAME <= self.size(at) <= PREFIX + LARGEST
        return self.heads.judge(self.stream[at:], 0) if is_sized else FrameEvidence.NONE

    def sure(self, at: int) -> int | None:
        start, segment_end = self.segment(at)
        aligned = start == at and segment_end - start >= LEAST_FRAME
        one, total = self.heads.one_is_enough, len(self.stream)
        here, heads, boundaries, strong, series = at, 0, 0, True, Series()
        while here <= total:
            if heads and self.ends_segment(here):
                boundaries += 1
                is_fitting = aligned and (here == segment_end or boundaries >= 2) and series.is_consistent(boundaries)
                if is_fitting or (strong and (aligned or one)):
                    return here
            evidence = self.evidence(here)
            if evidence == FrameEvidence.NONE:
                return None
            heads += 1
            strong &= evidence == FrameEvidence.STRONG
            possible = series.add(self.stream[here:])
            if not strong and not (aligned and possible):
                return None
            if heads == 3 and strong and series.is_consistent(boundaries):
                return here + LEAST_FRAME
            if heads >= 3 and not aligned and not one:
                return None
            here += self.size(here)
        several = here > at + self.size(at)
        good = (
            strong and (aligned or (several and one)) and (one or several or self.stream[at + 4 : at + 7] != bytes(3))
        )
        fits = aligned and self.ends_segment(here) and series.is_consistent(boundaries + 1)
        return total if (good or fits) and here - at <= self.resync else None

    def found(self) -> int | None:
        sure = [(self.sure(at), at) for at in range(len(self.stream) - LEAST_FRAME + 1)]
        return min(((certain, at) for certain, at in sure if certain is not None), default=(0, None))[1]


def any_stream(chance: random.Random) -> tuple[bytes, list[int]]:
    """Frames and what is none, and where segments end: often with a frame."""
    parts = []
    for _ in range(chance.randint(1, 7)):
        size = chance.choice((4, 4, 5, 8, 9, 20, LARGEST, LARGEST, LARGEST + 1, 3))
        word = chance.choice((STRONG, STRONG, STRONG, FAIR, FAIR, WEAK, OTHER))
        frame = size.to_bytes(4, "big") + word + b"\xff" * (size - 4)
        parts.append(chance.choice((frame, frame, frame, frame, b"\xff" * chance.randint(1, 12))))
    if chance.random() < 0.5:
        parts[-1] = parts[-1][: chance.randint(1, len(parts[-1]))]
    ends = np.cumsum(list(map(len, parts))).tolist()
    stream = b"".join(parts)
    kept = [end for end in ends if chance.random() < 0.6]
    kept += [chance.randrange(1, len(stream) + 1) for _ in range(chance.choice((0, 0, 1, 3)))]
    return stream, sorted({*kept, len(stream)})


def pieces(stream: PendingStream, store: Store, data: bytes, start: int, *, lost: int = 0) -> None:
    """Add a segment, or a hole of so many bytes."""
    address = NOWHERE if lost else store.add(data)
    columns = [np.array([each]) for each in (start, address, lost or len(data), start, start)]
    stream.extend(
        RunBatch(np.zeros(1, np.int64), np.array([RunKind.LOST if lost else RunKind.DATA], np.uint8), *columns), 0, 1
    )


BEFORE = 11
"""Bytes of the stream that are framed already."""


def begun(store: Store) -> PendingStream:
    stream = PendingStream()
    pieces(stream, store, b"\xfe" * BEFORE, 0)
    stream.advance(BEFORE)
    return stream


def find(
    search: FrameSearch, stream: PendingStream, store: Store, heads: Heads, limits: Limits, end: int, *, closed: bool
) -> int | None:
    found = search.find(stream, store, heads, limits, end=BEFORE + end, closed=closed)
    return None if found is None else found - BEFORE


@given(chance=seeds)
def test_a_frame_is_found_where_its_chain_is_certain_first(chance: random.Random) -> None:
    for _ in range(40):
        data, ends = any_stream(chance)
        heads, store = Heads(chance.random() < 0.5), Store()
        stream = begun(store)
        limits = Limits(frame_size=LARGEST, resync_bytes=chance.choice((8, 12, 13, 44, 48, 1000)))
        for start, end in zip([0, *ends], ends, strict=False):
            pieces(stream, store, data[start:end], BEFORE + start)
        hole = chance.choice((0, 0, 3, 5, 16, 36))
        if hole:
            pieces(stream, store, b"", BEFORE + len(data), lost=hole)
        rules = Rules(data, [*ends, len(data) + hole] if hole else ends, heads, limits.resync_bytes)
        found = find(FrameSearch(BEFORE), stream, store, heads, limits, len(data), closed=True)
        assert found == rules.found()


@given(chance=seeds)
def test_a_frame_is_found_in_the_same_place_however_the_bytes_come(chance: random.Random) -> None:
    for _ in range(25):
        data, ends = any_stream(chance)
        heads, store = Heads(chance.random() < 0.5), Store()
        stream = begun(store)
        limits, search, found = Limits(frame_size=LARGEST), FrameSearch(BEFORE), None
        for start, end in zip([0, *ends], ends, strict=False):
            pieces(stream, store, data[start:end], BEFORE + start)
            if chance.random() < 0.7:
                found = find(search, stream, store, heads, limits, end, closed=False)
            if found is not None:
                break
        else:
            found = find(search, stream, store, heads, limits, len(data), closed=True)
        assert found == Rules(data, ends, heads, 1 << 20).found()


@cases(("size", "there", "closed", "is_found"), [
    (30, 29, False, False), (30, 30, False, True), (31, 30, False, False),
    (40, 30, False, False), (40, 31, False, True),
    (30, 29, True, True), (31, 29, True, False), (30, 20, True, True),
])  # fmt: skip
def test_a_frame_larger_than_a_window_is_believed_once_more_than_a_window_is_there(
    size: int, there: int, closed: bool, is_found: bool
) -> None:
    data = (size - PREFIX).to_bytes(4, "big") + STRONG + b"\xff" * 100
    store, limits = Store(), Limits(frame_size=1000, resync_bytes=30)
    stream = begun(store)
    pieces(stream, store, data[:there], BEFORE)
    found = find(FrameSearch(BEFORE), stream, store, Heads(True), limits, there, closed=closed)
    assert found == (0 if is_found else None)


class Named(Heads):
    """Heads whose two bytes at 12 are these, or of which there are too few for that."""

    def strong(self, words: Int64, lengths: Int64) -> Bool:
        found: Bool = (words == int.from_bytes(STRONG, "big")) & np.isin(lengths, (0x8123, 1))
        return found


@cases(("size", "length", "is_found"), [
    (16, 0x8123, True), (16, 0x8124, False), (16, 0x0123, False), (17, 0x8123, True), (17, 0x8124, False),
    (40, 0x8123, True), (40, 0x8124, False),
    (15, 0x8124, True), (9, 0x8124, True),
])  # fmt: skip
def test_two_bytes_behind_the_word_tell_strong_heads_where_they_are_there(
    size: int, length: int, is_found: bool
) -> None:
    head = (size - PREFIX).to_bytes(4, "big") + STRONG + b"\xff" * 4 + length.to_bytes(2, "big")
    data = b"\xfd" * 3 + head.ljust(size, b"\xff")[:size]
    store, limits = Store(), Limits(frame_size=1000)
    stream = begun(store)
    pieces(stream, store, data, BEFORE)
    found = find(FrameSearch(BEFORE), stream, store, Named(True), limits, len(data), closed=True)
    assert found == (3 if is_found else None)


@cases(("word", "one_is_enough", "frames", "is_found"), [
    (STRONG, False, 0, True), (WEAK, False, 0, False), (WEAK, True, 0, True), (WEAK, False, 1, True),
])  # fmt: skip
def test_a_head_that_reads_as_a_small_number_is_believed_only_behind_a_frame(
    word: bytes, one_is_enough: bool, frames: int, is_found: bool
) -> None:
    frame = (20).to_bytes(4, "big") + word + b"\xff" * 16
    data, store = frame * frames + frame[:12], Store()
    stream = begun(store)
    pieces(stream, store, data, BEFORE)
    limits = Limits(frame_size=1000)
    found = find(FrameSearch(BEFORE), stream, store, Heads(one_is_enough), limits, len(data), closed=True)
    assert found == (0 if is_found else None)


THREE = b"\xfd" * 3 + 3 * ((20).to_bytes(4, "big") + STRONG + b"\xff" * 16) + b"\xff"


@cases(("end", "is_found"), [(51 + LEAST_FRAME - 1, False), (51 + LEAST_FRAME, True)])
def test_no_byte_behind_the_end_is_looked_at(end: int, is_found: bool) -> None:
    store = Store()
    stream = begun(store)
    pieces(stream, store, THREE, BEFORE)
    found = find(FrameSearch(BEFORE), stream, store, Heads(False), Limits(frame_size=1000), end, closed=False)
    assert found == (3 if is_found else None)


@cases(("skipped", "is_found"), [(3, True), (4, False)])
def test_no_frame_is_found_among_bytes_that_were_skipped(skipped: int, is_found: bool) -> None:
    store, search, end = Store(), FrameSearch(BEFORE), 3 + 24
    stream = begun(store)
    pieces(stream, store, THREE[:end], BEFORE)
    limits = Limits(frame_size=1000)
    assert find(search, stream, store, Heads(True), limits, end - 1, closed=False) is None
    stream.advance(skipped)
    assert find(search, stream, store, Heads(True), limits, end, closed=True) == (3 if is_found else None)


def test_where_no_frame_begins_within_a_segment_each_segment_is_looked_at() -> None:
    store, heads = Store(), Heads(True)
    heads.within_segments = False
    stream, at = begun(store), 0
    for part in (b"\xfd" * 20, b"\xfd" * 9, THREE[3:-1]):
        pieces(stream, store, part, BEFORE + at)
        at += len(part)
    assert find(FrameSearch(BEFORE), stream, store, heads, Limits(frame_size=1000), at, closed=True) == 29
