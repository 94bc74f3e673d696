"""Runs of pytest with the plugin, as its users have it."""

import os
import re
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

from tests.forked import NOT_REWRITTEN, run_module

ROOT = Path(__file__).parents[2]
WITHOUT = ("-p", "no:asyncio", "-p", "no:hypothesispytest", "-p", "no:anyio", "-p", "no:cacheprovider")
"""Plugins that would be imported at each start, and that no test here needs."""


def run(folder: Path, text: str, *words: str, name: str = "test_it.py") -> "Run":
    """A run in a process that was forked, in which a second's imports are done."""
    words, environment = prepared(folder, text, words, name)
    with chdir(folder):
        done = run_module("pytest", words, environment | {"PYTEST_ADDOPTS": NOT_REWRITTEN})
    return Run(done.returncode, (done.stdout + done.stderr).decode())


def run_anew(folder: Path, text: str, *words: str, name: str = "test_it.py") -> "Run":
    """A run in a process in which nothing is imported."""
    words, environment = prepared(folder, text, words, name)
    command = [sys.executable, "-m", "pytest", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)
    return Run(done.returncode, done.stdout + done.stderr)


def prepared(folder: Path, text: str, words: tuple[str, ...], name: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Write a file with tests; return pytest's words and environment."""
    (folder / name).write_text(text)
    (folder / "pytest.ini").touch()
    variables = {"PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "", "COLUMNS": "200", "HOME": str(folder)}
    hidden = ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_CURRENT_TEST")
    environment = {key: value for key, value in os.environ.items() if key not in hidden} | variables
    return (*WITHOUT, "-rs", *words, name), environment


class Run:
    def __init__(self, code: int, out: str) -> None:
        self.code, self.out = code, out

    @property
    def rows(self) -> list[str]:
        """The lines of exchanges in the reports, each with its mark."""
        return [line for line in self.out.splitlines() if line[2:4] == "<#"]

    def of(self, test: str) -> "Run":
        """What the report says of one test that failed."""
        [text] = re.findall(rf"(?ms)^_+ (?:ERROR at setup of )?{test} _+$(.*?)(?=^_{{4}}|^={{4}})", self.out)
        return Run(self.code, text)

    @property
    def counts(self) -> str:
        [found] = [line for line in self.out.splitlines() if re.search(r"\d (passed|failed|skipped).* in \d", line)]
        return found.rpartition(" in ")[0].strip("= ")
