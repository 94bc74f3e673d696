"""Findings of a capture that is read in parts are those of the whole: without Spark, which only carries rows about."""

import pickle
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.analysis.findings.notes import Noted, made
from dissector.capture.parts import Block, Part
from dissector.capture_file import Capture
from dissector.findings import Finding
from dissector.pipeline.plan import plan
from dissector.pipeline.segments import deal, segments
from dissector.session.lessons import Lessons
from tests.conftest import PCAPS

TROUBLES = sorted(PCAPS.glob("trouble-*.pcapng"))
QUICK = [path for path in TROUBLES if path.stem != "trouble-slow"]
Place = tuple[int, int]
Told = Counter[tuple[Place, Finding]]
STEP = "dissector.analysis.findings.examination.STEP"


def whole(paths: Sequence[Path]) -> Told:
    """What is told of a capture, by where rows begin."""
    with Capture([str(path) for path in paths]) as capture:
        for _ in capture.read():
            pass
        for _ in capture.examine():
            pass
        return Counter((_place(capture, row), finding) for row, finding in capture.troubles())


def in_parts(paths: Sequence[Path], parts: int, size: int, shuffle: random.Random) -> Told:
    """The same by so many parts, of files that are read in ranges of that many bytes: in any order."""
    blocks = _dealt(paths, parts, size, shuffle)
    lessons = Lessons.together(_taught(part) for part in blocks)
    told: Told = Counter()
    notes: list[Noted] = []
    for part in blocks:
        with _read(part) as capture:
            capture.take(lessons)
            for _ in capture.examine(new := []):
                notes += [pickle.loads(pickle.dumps(noted)) for noted in new]
                new.clear()
            told.update((_place(capture, row), finding) for row, finding in capture.troubles())
    notes.sort(key=lambda noted: (noted.noter, repr(noted.scope), noted.order))
    told.update(((noted.packet, noted.start), finding) for noted, finding in made(notes))
    return told


def _dealt(paths: Sequence[Path], parts: int, size: int, shuffle: random.Random) -> list[list[Block]]:
    found = segments([plan(str(path), size, 40) for path in paths])
    shuffle.shuffle(found)
    dealt = defaultdict(list)
    for segment in found:
        for part, block in deal(segment, parts):
            dealt[part].append(block)
    every = [sorted(blocks, key=lambda block: block.first) for blocks in dealt.values()]
    shuffle.shuffle(every)
    return every


def _read(blocks: list[Block]) -> Capture:
    capture = Capture([Part("a part", blocks)])
    for _ in capture.read():
        pass
    return capture


def _taught(blocks: list[Block]) -> Lessons:
    with _read(blocks) as capture:
        return capture.lessons()


def _place(capture: Capture, row: int) -> Place:
    spans = capture.spans(row)
    return capture.packet_of(row), spans[0].start if spans else -1


def _dealings() -> Iterator[tuple[int, int]]:
    return iter([(1, 1 << 30), (3, 20_000), (16, 3_000)])


def test_any_capture_in_parts_tells_what_the_whole_tells(bundled: Path) -> None:
    told = whole([bundled])
    for parts, size in _dealings():
        assert in_parts([bundled], parts, size, random.Random(parts)) == told


@pytest.mark.slow
def test_all_captures_together_tell_the_same_in_parts() -> None:
    told = whole(TROUBLES)
    assert len({finding.code for _, finding in told}) > 15
    for parts, size in _dealings():
        assert in_parts(TROUBLES, parts, size, random.Random(parts)) == told


@settings(max_examples=25)
@given(st.data())
def test_neither_steps_nor_parts_make_a_difference(data: st.DataObject) -> None:
    paths = data.draw(st.lists(st.sampled_from(QUICK), min_size=1, max_size=3, unique=True))
    told = whole(paths)
    parts, size = data.draw(st.integers(1, 9)), data.draw(st.integers(500, 100_000))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(STEP, data.draw(st.integers(1, 300)))
        assert whole(paths) == told
        assert in_parts(paths, parts, size, data.draw(st.randoms(use_true_random=False))) == told
