"""Where the disk is full `ingest` says so in one line, leaves nothing that can be seen, and the next run is right."""

import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.needs import needs
from tools.benchmarks.captures import chatty

pytest.importorskip("pyspark", reason="NOT TESTED with pyspark: it is not installed")

from tests.pipeline.contents import contents, rows_that_count

pytestmark = [pytest.mark.slow, pytest.mark.spark]
Contents = dict[str, tuple[int, str]]
INGEST = [sys.executable, "-m", "dissector.cli.main", "ingest"]
ON_A_SMALL_DISK = """
mount -t tmpfs -o size=1m none "$0" || exit 77
"$@"
echo $?
ls -A "$0"
mount -o remount,size=100m "$0"
"$@" && cp -r "$0/tables" "$0-kept"
"""
"""With a disk of a megabyte in a folder, and of more later; nobody else sees either."""


def ingest(capture: Path, out: Path) -> list[str]:
    return [*INGEST, str(capture), "--out", str(out), "--master", "local[2]"]


def ran(words: list[str], before: Callable[[], None] = lambda: None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(words, capture_output=True, text=True, check=False, preexec_fn=before)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs("java")
    path = tmp_path_factory.mktemp("full") / "chatty.pcap"
    chatty(path, 12_000)
    return path


@pytest.fixture(scope="module")
def whole(capture: Path) -> Contents:
    """What a run gives that has room."""
    done = ran(ingest(capture, capture.parent / "whole"))
    assert done.returncode == 0, done.stderr
    return contents(capture.parent / "whole")


def of_a_megabyte() -> None:
    """Files that this process and those that it starts write have no room for more."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))


def test_temporary_files_that_can_t_grow_fail_the_run_and_the_next_one_is_right(
    capture: Path, whole: Contents, tmp_path: Path
) -> None:
    done = ran(ingest(capture, tmp_path / "tables"), of_a_megabyte)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "file too large" in done.stderr.lower()
    assert not any(rows_that_count(tmp_path / "tables").values())
    assert not list((tmp_path / "tables" / "_runs").iterdir()), "copies of packets are removed"
    assert ran(ingest(capture, tmp_path / "tables")).returncode == 0
    assert contents(tmp_path / "tables") == whole


def test_tables_that_have_no_room_fail_the_run_and_the_next_one_is_right(
    capture: Path, whole: Contents, tmp_path: Path
) -> None:
    needs("unshare", "mount")
    disk = tmp_path / "disk"
    disk.mkdir()
    done = ran(["unshare", "--mount", "sh", "-c", ON_A_SMALL_DISK, str(disk), *ingest(capture, disk / "tables")])
    if done.returncode in (1, 77) and not done.stdout:
        pytest.skip("NOT TESTED on a full disk: this user may not mount one")
    assert done.stdout == "2\ntables\n"
    first, *_ = done.stderr.splitlines()
    assert first.startswith("kdissect: ")
    assert "no space left on device" in first.lower()
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) == 2, "a line for each run"
    assert contents(Path(f"{disk}-kept")) == whole
