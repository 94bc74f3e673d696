"""A skip is a plain line anywhere, and in CI a failure unless it was expected."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pytest
from tests.needs import needs

def test_one() -> None:
    needs("sh", "no-such-tool")

def test_two() -> None:
    needs("another-tool")

@pytest.mark.skipif(True, reason="NOT TESTED live: this user may not capture (CAP_NET_RAW)")
def test_three() -> None:
    raise AssertionError

def test_four() -> None:
    pytest.importorskip("no_such_module", reason="a module is missing")
"""


def run(folder: Path, *, ci: str) -> tuple[int, str]:
    """The exit code and the output of a run of these tests, on a machine where one tool could not be installed."""
    (folder / "test_made.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -rs\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider", str(folder)],
        capture_output=True, text=True, check=False, env=os.environ | {"CI": ci, "TESTS_LACK": "no-such-tool "},
    )  # fmt: skip
    return done.returncode, done.stdout


@pytest.mark.long
@pytest.mark.slow
def test_in_ci_only_known_skips_pass(tmp_path: Path) -> None:
    code, output = run(tmp_path, ci="true")
    assert code == 1
    skipped = output.split("does not excuse it:\n")[1].splitlines()
    assert skipped[:2] == ["  NOT TESTED with another-tool: it is not installed", "  a module is missing"]
    assert not skipped[2].startswith("  ")


@pytest.mark.long
@pytest.mark.slow
def test_elsewhere_each_skip_is_a_line(tmp_path: Path) -> None:
    code, output = run(tmp_path, ci="")
    assert code == 0
    assert sum(line.startswith("SKIPPED") for line in output.splitlines()) == 4
    assert "NOT TESTED with no-such-tool: it is not installed\n" in output
