"""Output without room is one plain line and exit code 2, and leaves no part of a file under its name."""

import os
from pathlib import Path

import pytest

from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from tests.conftest import PCAPS
from tests.forked import run_module
from tests.pipeline.contents import contents
from tests.tables.copied import copy_tables

pytestmark = pytest.mark.slow

SAMPLE = str(PCAPS / "librdkafka.pcapng")
SMALL_DISK = "tests.cli.small_disk"


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
    done = run_module(SMALL_DISK, ["export", "-f", "json", "-w", str(out), SAMPLE], dict(os.environ))
    assert done.returncode == 2, done.stderr
    assert f"kdissect: {out}: file too large".encode() in done.stderr
    assert [path.read_bytes() for path in tmp_path.iterdir()] == ([] if before is None else [before])


@pytest.mark.long
def test_an_ingest_without_room_leaves_nothing_that_counts(tmp_path: Path) -> None:
    """The next run is right."""
    pytest.importorskip("deltalake", reason="NOT TESTED with tables: deltalake is not installed")
    folder = copy_tables(tmp_path / "tables")
    before = contents(folder)
    done = run_module(SMALL_DISK, ["ingest", SAMPLE, "--out", str(folder)], dict(os.environ), kind="tables")
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1] == b"kdissect: temporary files: file too large"
    assert b"Traceback" not in done.stderr
    assert contents(folder) == before
    ingest_here([SAMPLE], str(folder), WriteOptions())
    assert contents(folder) == contents(copy_tables(tmp_path / "whole", SAMPLE))
