"""Every input that once went wrong, and a few fresh ones: nothing escapes, is slow, or takes much memory."""

from pathlib import Path

import pytest

from tools.fuzz import guard, seeds
from tools.fuzz.case import CORPUS, Case
from tools.fuzz.kinds import KINDS, case_of

pytestmark = pytest.mark.slow

FRESH = 250


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.json")), ids=lambda path: path.stem)
def test_what_once_went_wrong_goes_right(path: Path) -> None:
    assert guard.run(Case.from_json(path.read_bytes())).failure is None


def test_a_case_is_the_same_from_its_file() -> None:
    case = Case("login", "token", b"\0\0\0\1\xff", end=5, mechanism="PLAIN", enveloped=(3, 4))
    assert Case.from_json(case.as_json(what="anything")) == case


@pytest.mark.slow
def test_fresh_damage_of_every_kind_crashes_nothing() -> None:
    loaded = seeds.load()
    seen = set()
    for number in range(FRESH):
        case = case_of(loaded, 0, number)
        seen.add(case.kind)
        assert guard.run(case).failure is None
    assert seen >= KINDS.keys() - {"bomb"}
