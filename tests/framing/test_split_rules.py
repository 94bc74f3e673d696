"""Streams with holes and impossible sizes are split as a slow computation in words says; limits from both sides."""

import random

import numpy as np
import pytest
from hypothesis import given

from dissector.core.arrays import Bool, Int64
from dissector.core.batches import NOWHERE, FrameKind, RunBatch, RunKind
from dissector.core.limits import Limits
from dissector.core.store import Store
from dissector.framing import Classification, FrameEvidence
from dissector.framing.detector import LEAST_FRAME, LEAST_HEAD, PREFIX
from dissector.framing.pending_stream import PendingStream
from tests.cases import cases
from tests.framing.test_framer import Metadata, Row, split
from tests.traffic import request, seeds

LARGEST = 60
"""Bytes of the largest frame that is believed here, without its prefix."""
SMALL = Limits(frame_size=LARGEST)
GAP, FRAME, UNPARSED = FrameKind.GAP, FrameKind.FRAME, FrameKind.UNPARSED


class Nothing(Metadata):
    """No frame is ever found again."""

    def strong(self, words: Int64, lengths: Int64) -> Bool:
        return np.zeros(len(words), np.bool_)

    def judge(self, head: bytes, packet: int) -> FrameEvidence:
        return FrameEvidence.NONE


def in_words(stream: bytes, is_there: list[bool], stands_alone: set[int]) -> list[Row]:
    """The rows of a stream in which nothing is found once a size is lost. A size of 0 is a frame where it is all that a
    segment has: `stands_alone` are the offsets of segments of four bytes."""
    shown = bytes(byte if there else ord("?") for byte, there in zip(stream, is_there, strict=True))
    rows: list[Row] = []
    at, total = 0, len(stream)

    def same(start: int) -> int:
        return next((end for end in range(start, total) if is_there[end] != is_there[start]), total)

    while at < total:
        size = PREFIX + int.from_bytes(stream[at : at + PREFIX], "big", signed=True)
        is_read = at + PREFIX <= total and all(is_there[at : at + PREFIX])
        if not is_read or not (LEAST_FRAME <= size <= PREFIX + LARGEST or (size == PREFIX and at in stands_alone)):
            break
        intact = ([*is_there[at : at + size], False]).index(False)
        kind = FRAME if intact >= min(size, LEAST_HEAD) else UNPARSED
        rows.append((kind, at, size, shown[at : at + size].ljust(size, b"?")))
        at += size
    while at < total:
        end = same(at)
        rows.append((UNPARSED if is_there[at] else GAP, at, end - at, shown[at:end]))
        at = end
    return rows


def any_frame(chance: random.Random) -> bytes:
    size = chance.choice((4, 4, 5, 8, 9, 10, 11, 30, LARGEST - 1, LARGEST) * 4 + (0, 3, LARGEST + 1, -1, 1 << 30))
    return size.to_bytes(4, "big", signed=True) + bytes(chance.choices(range(1, 60), k=max(0, min(size, LARGEST + 1))))


def joined(rows: list[Row]) -> list[Row]:
    """Holes next to each other as one: batches may part them."""
    out: list[Row] = []
    for row in rows:
        if out and row[0] == out[-1][0] == GAP:
            out[-1] = (GAP, out[-1][1], out[-1][2] + row[2], out[-1][3] + row[3])
        else:
            out.append(row)
    return out


@pytest.mark.long
@given(chance=seeds)
def test_frames_holes_and_what_follows_are_as_the_rules_say(chance: random.Random) -> None:
    for _ in range(8):
        frames = [any_frame(chance) for _ in range(chance.randint(1, 8))]
        begins = np.cumsum([len(frame) for frame in frames]).tolist()
        stream = b"".join(frames)
        if chance.random() < 0.3:
            stream = stream[: -chance.randint(1, 12)] or stream
        near = [end + chance.choice((0, 0, 0, 1, 3, 4, 8, 13, 14, -1)) for end in begins]
        cuts = sorted({*near, *(chance.randrange(len(stream) + 1) for _ in range(chance.randint(0, 9)))})
        ends = [*(cut for cut in cuts if 0 < cut < len(stream)), len(stream)]
        missing = {number for number in range(1, len(ends)) if chance.random() < 0.12}
        is_there = [True] * len(stream)
        for number in missing:
            is_there[ends[number - 1] : ends[number]] = [False] * (ends[number] - ends[number - 1])
        alone = {start for start, end in zip([0, *ends], ends, strict=False) if end - start == PREFIX}
        expected = in_words(stream, is_there, alone)
        for batch in (1, chance.choice((3, 1000))):
            assert joined(split(stream, cuts, missing, batch, SMALL, heads=Nothing())) == expected


@given(chance=seeds)
def test_what_is_held_of_a_stream_is_where_a_list_of_bytes_has_it(chance: random.Random) -> None:
    for _ in range(12):
        store, at = Store(), chance.choice((0, 7))
        stream, known, begins = PendingStream(at), [], []
        stream.advance(0)
        first = at
        for _ in range(40):
            if chance.random() < 0.5:
                count = chance.randint(1, 3)
                sizes = [chance.randint(1, 9) for _ in range(count)]
                kinds = [chance.choice((RunKind.DATA, RunKind.DATA, RunKind.LOST, RunKind.TRUNCATED)) for _ in sizes]
                data = [chance.randbytes(size) for size in sizes]
                addresses = [store.add(each) for each in data]
                starts = [first + len(known) + sum(sizes[:n]) for n in range(count)]
                columns = [np.array(each, np.int64) for each in (starts, addresses, sizes, range(count), range(count))]
                batch = RunBatch(np.zeros(count, np.int64), np.array(kinds, np.uint8), *columns)
                stream.extend(batch, 0, count)
                for kind, each, start in zip(kinds, data, starts, strict=True):
                    known += [byte if kind == RunKind.DATA else None for byte in each]
                    begins.append((start, len(each)))
            left = known[stream.at - first :]
            assert stream.end == max(first + len(known), stream.at)
            if left:
                assert stream.gap() == next((n for n, byte in enumerate(left) if byte is not None), len(left))
                after, size = chance.randrange(len(left)), chance.randint(1, 30)
                part = left[after : after + size]
                shown = part[: ([*part, None]).index(None)]
                assert stream.peek(store, size, after) == (bytes(shown) or None if part[0] is None else bytes(shown))
                pieces = stream.pieces(size, after)
                read = [
                    byte for place, length in pieces
                    for byte in ([None] * length if place == NOWHERE else store.read(place, length))
                ]  # fmt: skip
                assert read == part
                run = stream.run(after)
                assert (run.start, run.size) == max(each for each in begins if each[0] <= stream.at + after)
                intact = ([*left, None]).index(None)
                for most in {stream.at + intact + chance.choice((-1, 0, 1)), stream.at + 5, first + len(known)}:
                    if most > stream.at:
                        end = min(stream.at + intact, most)
                        assert stream.intact(most) == (end, intact < len(left) and most > stream.at + intact)
                low = stream.at + chance.randrange(len(left))
                high = low + chance.randrange(20)
                segments = [each for each in begins if low <= each[0] < high]
                assert list(zip(*(each.tolist() for each in stream.segments(low, high)), strict=True)) == segments
                stream.advance(min(len(left), chance.choice((0, 1, 3, len(left), chance.randrange(len(left) + 1)))))
            held = [each for each in begins if sum(each) > stream.at]
            regions = stream.held_regions()
            there = [size for start, size in held if known[start - first] is not None]
            assert regions[1].tolist() == there
            assert len(stream) == len(held)


@cases("window", [64, 65])
def test_bytes_before_a_frame_are_skipped_a_window_at_a_time(window: int) -> None:
    for size in (1, 2, 30, *range(61, 68), *range(126, 133), 3 * window, 4 * window + 1):
        junk, frames = b"\xff" * size, [request(n) for n in range(1, 5)]
        limits = Limits(resync_bytes=window)
        rows = split(junk + b"".join(frames), [], set(), 1, limits, begins=Classification.SEARCH)
        skipped = [row for row in rows if row[0] == UNPARSED]
        assert b"".join(row[3] for row in skipped) == junk
        assert all(row[2] == window for row in skipped[:-1])
        assert skipped[-1][2] <= 2 * window
        assert [row[3] for row in rows if row[0] == FRAME] == frames


def found(stream: bytes, *, cuts: list[int] | None = None, one_is_enough: bool = True) -> list[bytes]:
    """The frames that are found in a stream whose beginning is lost."""
    heads = Metadata()
    heads.one_is_enough = one_is_enough
    rows = split(stream, cuts or [], set(), 1000, begins=Classification.SEARCH, heads=heads)
    return [data for kind, _, _, data in rows if kind == FRAME]


JUNK = b"\xff" * 5
FRAMES = [request(n) for n in range(1, 5)]


def test_three_frames_in_a_row_are_believed_wherever_they_end_and_two_only_at_the_end_of_a_segment() -> None:
    behind = b"\xfe" * 30
    for count in (1, 2, 3, 4):
        stream = JUNK + b"".join(FRAMES[:count])
        assert found(stream + behind) == (FRAMES[:count] if count >= 3 else [])
        assert found(stream + behind, cuts=[len(stream)]) == FRAMES[:count]
        assert found(stream + behind, cuts=[len(stream)], one_is_enough=False) == (FRAMES[:count] if count >= 3 else [])
        assert found(stream + behind, cuts=[len(JUNK), len(stream)], one_is_enough=False) == FRAMES[:count]


def test_a_frame_that_goes_on_behind_the_end_is_believed_where_a_segment_begins_or_behind_another() -> None:
    for cut in range(LEAST_HEAD, len(FRAMES[0])):
        last = FRAMES[1][:cut]
        whole = last.ljust(len(FRAMES[1]), b"?")
        assert found(JUNK + FRAMES[0] + last) == [FRAMES[0], whole]
        assert found(JUNK + last) == []
        assert found(JUNK + last, cuts=[len(JUNK)]) == [whole]


@cases(("size", "is_found"), [(3, False), (4, True), (LARGEST, True), (LARGEST + 1, False)])
def test_only_a_size_that_a_frame_may_have_is_searched_for(size: int, is_found: bool) -> None:
    class Any(Nothing):
        def strong(self, words: Int64, lengths: Int64) -> Bool:
            return words == 0x01010101

        def judge(self, head: bytes, packet: int) -> FrameEvidence:
            return FrameEvidence.STRONG if head[4:8] == b"\1\1\1\1" else FrameEvidence.NONE

    frame = size.to_bytes(4, "big") + b"\1" * size
    for within_segments in (True, False):
        heads = Any()
        heads.within_segments = within_segments
        rows = split(JUNK + frame, [len(JUNK)], set(), 9, SMALL, begins=Classification.SEARCH, heads=heads)
        assert (FRAME in {kind for kind, *_ in rows}) == is_found
