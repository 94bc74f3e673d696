"""A forked program is the program: what it writes and how it ends is what a new process would have written."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.test_commands import JAVA, KDISSECT
from tests.forked import run_module
from tests.terminal import run_on_terminal, terminal

ENVIRONMENT = os.environ | {"NO_COLOR": "1", "COLUMNS": "70"}


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--help"], ["show", "-", "--limit", "3", "-f", "tree"], ["show", "--rows"]])
def test_it_is_as_if_it_had_been_started(words: list[str]) -> None:
    data = Path(JAVA).read_bytes()
    forked = run_module(KDISSECT[-1], words, ENVIRONMENT, data=data)
    started = subprocess.run([*KDISSECT, *words], input=data, env=ENVIRONMENT, capture_output=True, check=False)
    assert forked.returncode == started.returncode
    assert forked.stdout == started.stdout
    assert forked.stderr == started.stderr


@pytest.mark.slow
def test_on_a_terminal_it_is_as_if_it_had_been_started() -> None:
    words = ["show", JAVA, "--limit", "3"]
    with terminal(["env", *KDISSECT, *words]) as its:
        its.rest()
    assert run_on_terminal(KDISSECT[-1], words) == its.written


def test_each_program_has_its_environment() -> None:
    wide, narrow = (run_module(KDISSECT[-1], ["--help"], ENVIRONMENT | {"COLUMNS": n}).stdout for n in ("90", "50"))
    assert max(map(len, wide.splitlines())) > 50 >= max(map(len, narrow.splitlines()))


def test_one_that_hangs_is_killed() -> None:
    silent, kept = os.pipe()
    with os.fdopen(silent, "rb") as file, os.fdopen(kept, "wb"), pytest.raises(subprocess.TimeoutExpired):
        run_module(KDISSECT[-1], ["show", "-"], ENVIRONMENT, file=file, longest=0.5)
    assert run_module(KDISSECT[-1], ["show", "/none"], ENVIRONMENT).returncode == 2
