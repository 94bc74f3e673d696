"""One run at a time writes to a folder, and one that was killed is in nobody's way."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="NOT TESTED with pyarrow: it is not installed")

import pyarrow as pa
import pyarrow.fs

from dissector.pipeline import lock
from dissector.pipeline.folder import FolderError, opened
from dissector.pipeline.lock import NAME, exclusive

HOLDS = """
import sys, time
from dissector.pipeline.lock import exclusive
with exclusive(sys.argv[1], print):
    print("mine", flush=True)
    sys.stdin.read()
"""


class Elsewhere(pa.fs.SubTreeFileSystem):
    """A file system without locks."""


@pytest.fixture(params=["here", "without locks"])
def out(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder; one where the file itself is the lock."""
    if request.param != "here":
        inner = Elsewhere("/", pa.fs.LocalFileSystem())
        monkeypatch.setattr(lock, "opened", lambda out: (inner, opened(out)[1]))
    return str(tmp_path)


def holder(out: str) -> "subprocess.Popen[str]":
    """Another process that has it."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, out], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "mine\n"
    return process


def test_a_second_run_names_the_process_that_writes(out: str) -> None:
    messages: list[str] = []
    with holder(out) as process:
        with pytest.raises(FolderError) as error, exclusive(out, messages.append):
            pass
        process.communicate()
    assert str(error.value).startswith(f"{out}: process {process.pid} of {socket.gethostname()}, since 2")
    assert "\n" not in str(error.value)
    with exclusive(out, messages.append):
        assert (Path(out) / NAME).read_text().startswith(f"process {os.getpid()} of ")
    assert list(Path(out).iterdir()) == []
    assert messages == []


def test_a_killed_run_blocks_no_other(out: str, request: pytest.FixtureRequest) -> None:
    messages: list[str] = []
    with holder(out) as process:
        process.send_signal(signal.SIGKILL)
    with exclusive(out, messages.append):
        pass
    assert list(Path(out).iterdir()) == []
    gone = [f"{out}: process {process.pid} of {socket.gethostname()}"] if "without" in request.node.name else []
    assert [line.partition(", since")[0] for line in messages] == gone


@pytest.mark.parametrize(
    "content", ["process 1 of elsewhere, since 2026-01-01 00:00:00 UTC,", "", "\xff\n", "process x y"]
)
def test_a_lock_of_another_host_is_respected(tmp_path: Path, content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = Elsewhere("/", pa.fs.LocalFileSystem())
    monkeypatch.setattr(lock, "opened", lambda out: (inner, opened(out)[1]))
    (tmp_path / NAME).write_text(content, encoding="latin-1")
    with (
        pytest.raises(FolderError, match=f"if it has ended, remove {tmp_path}/{NAME}"),
        exclusive(str(tmp_path), print),
    ):
        pass
    assert (tmp_path / NAME).exists()


def test_one_that_raises_leaves_nothing(out: str) -> None:
    with pytest.raises(KeyboardInterrupt), exclusive(out, print):
        raise KeyboardInterrupt
    assert list(Path(out).iterdir()) == []
