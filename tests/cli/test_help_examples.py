"""The examples of `--help` are commands that work when they are pasted, one after the other, where nothing is yet."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from dissector.cli.every_command import app
from dissector.cli.reference import command_pages
from tests.cli.test_commands import KDISSECT
from tests.conftest import some_of
from tests.forked import run_module
from tests.needs import needs

PROGRAM = typer.main.get_command(app)
NEEDS = (
    "sudo", "probe", "proxy", "kdissect serve", "kdissect replay", "--web", "4.5.0", "man -l", "duckdb -init",
    "--catalog",
)  # fmt: skip
"""Parts of examples that need what a test may lack: root's rights, a broker, a release to come, another program, a
catalog; or what serves until it is interrupted."""
OF_A_SHELL = "|>*{"
"""What only a shell understands, where it is not quoted."""
QUOTED = re.compile("'[^']*'")


def example_lines() -> list[str]:
    """Each example once, in the order of the help: samples are copied first, and tables made before they are listed."""
    found = dict.fromkeys(line for page in command_pages(PROGRAM) for _, line in page.examples)
    return [line for line in found if not any(part in line for part in NEEDS)]


def run(line: str, environment: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    if any(character in QUOTED.sub("", line) for character in OF_A_SHELL):
        shell = ["bash", "-c", f"set -o pipefail; {line}"]
        return subprocess.run(shell, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return run_module(KDISSECT[-1], shlex.split(line)[1:], environment)


def test_every_command_has_an_example() -> None:
    assert [page.name for page in command_pages(PROGRAM) if not page.examples] == []


def test_usage_is_written_as_in_manuals() -> None:
    assert [page.usage for page in command_pages(PROGRAM) if "{" in page.usage] == []


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("left_out", some_of(["tables", "nothing"], "tables"))
def test_examples_work_when_pasted(left_out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("bash")
    monkeypatch.chdir(tmp_path)
    folders = {name: str(tmp_path) for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    failed = {}
    for line in example_lines():
        if left_out in line:
            continue
        done = run(line, os.environ | folders | {"PATH": path})
        if done.returncode and not (done.returncode == 1 and " diff " in line):  # which says so that clients differ
            failed[line] = done.stderr
    assert failed == {}
