"""Cases of one test: all run, and what fails is named."""

import inspect
import os
from pathlib import Path

import pytest

from tests.cases import cases

ran: list[object] = []


@cases("number", range(5))
@cases(("letter", "_"), [("a", 1), ("b", 2)], ids=["first", "second"])
def check(number: int, letter: str, _: int, fixture: object) -> None:
    ran.append((number, letter, fixture))
    assert number != 3 or letter == "a"
    if number == 4:
        pytest.fail("four")


def test_all_cases_run_and_those_that_fail_are_named() -> None:
    ran.clear()
    with pytest.raises(AssertionError) as raised:
        check(fixture="it")
    assert ran == [(number, letter, "it") for number in range(5) for letter in "ab"]
    inner, outer = raised.value.__notes__
    assert inner.startswith("1 of 2 cases fail:\n  second: AssertionError: assert ")
    assert [line.split(":")[0] for line in outer.splitlines()] == ["2 of 5 cases fail", "  3", "  4"]
    assert outer.endswith("  4: Failed: four")


def test_pytest_gives_it_the_other_arguments() -> None:
    assert [*inspect.signature(check).parameters] == ["fixture"]


def test_a_case_that_skips_fails() -> None:
    @cases("reason", ["no cable"])
    def skips(reason: str) -> None:
        pytest.skip(reason)

    with pytest.raises(AssertionError, match="to be a test of its own: no cable"):
        skips()


@cases("number", [1, 2])
async def awaited(number: int) -> None:
    assert number == 1


async def test_cases_are_awaited() -> None:
    with pytest.raises(AssertionError) as raised:
        await awaited()
    assert raised.value.__notes__[0].startswith("1 of 2 cases fail:\n  2: ")


@cases("number", range(3))
@cases("word", ["one", "two"])
def test_a_case_has_a_folder_an_environment_and_an_output_of_its_own(
    number: int, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not [*tmp_path.iterdir()]
    (tmp_path / "file").touch()
    assert "OF_A_CASE" not in os.environ
    monkeypatch.setenv("OF_A_CASE", word)
    print(word)
    assert capsys.readouterr().out == f"{word}\n"
    print("unread")
