"""Files that are opened for output: what root does not follow, and what nobody waits for."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from dissector.core.written_files import opened_to_write, replaced
from tests.needs import as_another_user

USER: Final = 1_234
Write = Callable[[Path], None]
LINK: Final = "is a link of another user, which root does not follow"


def write(path: Path) -> None:
    with os.fdopen(opened_to_write(str(path)), "wb") as file:
        file.write(b"report")


def replace(path: Path) -> None:
    with replaced(str(path)) as file:
        file.write(b"report")


WAYS = pytest.mark.parametrize("way", [write, replace])


def linked(link: Path, target: Path, owner: int) -> Path:
    link.symlink_to(target)
    os.lchown(link, owner, owner)
    return link


@WAYS
def test_a_pipe_that_nobody_reads_is_not_waited_for_and_one_that_is_read_is_written(way: Write, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match=os.strerror(errno.ENXIO)):
        way(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    way(pipe)
    assert os.read(reader, 9) == b"report"
    os.close(reader)
    assert [each.name for each in tmp_path.iterdir()] == ["pipe"]
    way(Path("/dev/null"))
    with pytest.raises(IsADirectoryError):
        way(tmp_path)


@as_another_user
@WAYS
def test_root_follows_no_link_of_another_user(way: Write, tmp_path: Path) -> None:
    kept, folder = tmp_path / "kept", tmp_path / "folder"
    folder.mkdir()
    kept.write_bytes(b"root's")
    inside = linked(tmp_path / "inside", folder, USER)
    for path in (
        linked(tmp_path / "link", kept, USER), linked(tmp_path / "dangling", tmp_path / "made", USER), inside / "made",
        linked(tmp_path / "ours", tmp_path / "link", 0),
    ):  # fmt: skip
        with pytest.raises(PermissionError, match=LINK):
            way(path)
    assert kept.read_bytes() == b"root's"
    assert not any(folder.iterdir())
    assert not (tmp_path / "made").exists()
    way(linked(tmp_path / "mine", kept, 0))  # which root has made
    assert kept.read_bytes() == b"report"
    way(linked(tmp_path / "there", folder, 0) / ".." / "there" / "made")
    assert (folder / "made").read_bytes() == b"report"
    linked(tmp_path / "loop", tmp_path / "loop", 0)
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        way(tmp_path / "loop")


@as_another_user
def test_root_writes_into_no_second_name_of_a_file_and_may_replace_it(tmp_path: Path) -> None:
    kept, link = tmp_path / "kept", tmp_path / "link"
    kept.write_bytes(b"root's")
    link.hardlink_to(kept)
    with pytest.raises(PermissionError, match="has a second name"):
        write(link)
    replace(link)
    assert (kept.read_bytes(), link.read_bytes()) == (b"root's", b"report")


@as_another_user
def test_who_is_not_root_follows_links_as_ever(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_bytes(b"before")
    kept.chmod(0o666)
    tmp_path.chmod(0o755)
    (tmp_path / "second").hardlink_to(kept)
    (tmp_path / "link").symlink_to("kept")
    code = f"""
import os
from dissector.core.written_files import opened_to_write
os.chdir({str(tmp_path)!r})
os.setuid({USER})
os.close(opened_to_write("link"))
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert kept.read_bytes() == b""


@pytest.mark.parametrize("goes_on", [False, True])
def test_standard_output_by_its_name_is_written(goes_on: bool, tmp_path: Path) -> None:
    code = """
from dissector.core.written_files import replaced
with replaced("/dev/stdout") as file:
    file.write(b"report")
"""
    out = tmp_path / "out"
    with out.open("wb") as file:
        done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE if goes_on else file, check=True)
    assert (done.stdout if goes_on else out.read_bytes()) == b"report"
