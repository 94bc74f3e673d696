"""Every input that once went wrong, and a few fresh ones: nothing escapes, is slow, or takes much memory."""

import os
import signal
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from tests.cases import cases
from tests.conftest import some_of
from tests.traffic import capture_of, conversation, exchanges
from tools.fuzz import guard, seeds
from tools.fuzz.accounting import Streams
from tools.fuzz.case import CORPUS, Case
from tools.fuzz.children import ChildError, in_child
from tools.fuzz.kinds import KINDS, case_of
from tools.fuzz.shrinking import MOMENTS

pytestmark = pytest.mark.slow

FRESH = 2
"""Cases of each kind."""
MANY = {"frame": 15, "records": 8, "embedded": 5, "headers": 5}


@pytest.fixture(scope="module")
def loaded() -> seeds.Seeds:
    return seeds.load()


@pytest.mark.long
@cases("path", sorted(CORPUS.glob("*.json")), ids=lambda path: path.stem)
def test_what_once_went_wrong_goes_right(path: Path) -> None:
    assert guard.run(Case.from_json(path.read_bytes())).failure is None


@cases(
    "case",
    [
        Case("login", "token", b"\0\0\0\1\xff", end=5, mechanism="PLAIN", enveloped=(3, 4)),
        Case("shrinking", "shrinking", b"\xff", when="read", left=0),
        Case("sections", "capture", b"\xff", packets=3, frames=0, secrets=("00",)),
    ],
)
def test_a_case_is_the_same_from_its_file(case: Case) -> None:
    assert Case.from_json(case.as_json(what="anything")) == case


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"bomb"}))
def test_fresh_damage_of_every_kind_crashes_nothing(kind: str, loaded: seeds.Seeds) -> None:
    for number in range(MANY.get(kind, FRESH)):
        case = case_of(loaded, 0, number, kind)
        assert case.kind == kind
        failure = guard.run(case).failure
        if failure is not None and failure.what.startswith("slower"):
            failure = guard.run(case).failure  # readers are made when they are first used
        assert failure is None, failure.story


@pytest.mark.parametrize("when", some_of(sorted(MOMENTS), "read"))
def test_files_become_shorter_at_every_moment(when: str, loaded: seeds.Seeds) -> None:
    made = (case_of(loaded, 0, number, "shrinking") for number in range(200))
    assert guard.run(next(case for case in made if case.when == when and case.left)).failure is None


def test_a_fault_ends_a_child_and_is_named() -> None:
    with pytest.raises(ChildError, match="ended with -9"):
        in_child(lambda: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(ChildError, match=r"KeyError at test_fuzz_corpus\.py:"):
        in_child(lambda: {}["nothing"])


def test_bytes_in_no_frame_or_in_two_are_noticed(tmp_path: Path) -> None:
    for column in ("size", "start"):
        with Capture([capture_of(tmp_path, conversation(exchanges(3)))]) as capture:
            streams = Streams(capture)
            list(capture.read())
            streams.check()
            getattr(capture.pipeline.indexer.frames, column).values[1] += 1
            with pytest.raises(AssertionError, match=r"tile|bytes"):
                streams.check()
