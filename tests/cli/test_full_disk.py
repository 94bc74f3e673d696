"""Output without room is one plain line and exit code 2, and leaves no part of a file under its name."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PCAPS
from tests.forked import run_module

pytestmark = pytest.mark.slow

SAMPLE = str(PCAPS / "librdkafka.pcapng")
LIMITED = "import resource, runpy; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); "


@pytest.mark.parametrize(
    "words",
    [
        ["show", SAMPLE], ["show", "-f", "json", SAMPLE], ["stats", SAMPLE], ["explain", "Fetch"], ["schema", "list"],
        ["--help"], ["show", "--help"], ["--version"],
        ["diff", SAMPLE, SAMPLE], ["export", "-f", "json", "-w", "-", SAMPLE],
    ],
)  # fmt: skip
def test_a_full_disk_is_one_line(words: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = run_module("dissector.cli.main", words, dict(os.environ), output=full)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == b"kdissect: standard output: no space left on device"
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("before", [None, b"before"])
def test_an_export_without_room_leaves_what_was_there(before: bytes | None, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    if before is not None:
        out.write_bytes(before)
    run = LIMITED + "runpy.run_module('dissector.cli.main', run_name='__main__')"
    command = [sys.executable, "-c", run, "export", "-f", "json", "-w", str(out), SAMPLE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert f"kdissect: {out}: file too large" in done.stderr
    assert [path.read_bytes() for path in tmp_path.iterdir()] == ([] if before is None else [before])
