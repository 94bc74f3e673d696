"""A folder stands for the captures in it."""

import bz2
import gzip
import os
from pathlib import Path

import pytest

import dissector
from dissector.capture import CaptureError
from dissector.capture.folders import captures_in
from tests.conftest import PCAPS

JAVA = (PCAPS / "java.pcapng").read_bytes()


def test_captures_are_told_from_other_files_by_their_bytes(tmp_path: Path) -> None:
    contents = {
        "b": JAVA, "a.txt": JAVA, "c.gz": gzip.compress(JAVA), "d.bz2": bz2.compress(JAVA),
        "keys.log": b"CLIENT_RANDOM 00 00\n", "notes.gz": gzip.compress(b"some notes"), "empty.pcap": b"",
        "cut.gz": gzip.compress(JAVA)[:8], "short.pcap": JAVA[:3], "hex.txt": b"> 00000004 00120000\n",
        ".b.123.part": JAVA,
    }  # fmt: skip
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "e.pcapng").write_bytes(JAVA)
    (tmp_path / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    assert [Path(each).name for each in captures_in(str(tmp_path))] == ["a.txt", "b", "c.gz", "d.bz2"]


def test_a_folder_opens_as_its_captures_do(tmp_path: Path) -> None:
    for name in ("java.pcapng", "librdkafka.pcapng"):
        (tmp_path / name).write_bytes((PCAPS / name).read_bytes())
    (tmp_path / "README").write_text("not a capture")
    with dissector.open(tmp_path) as folder, dissector.open(*sorted(tmp_path.glob("*.pcapng"))) as files:
        assert [each.json() for each in folder] == [each.json() for each in files]


@pytest.mark.parametrize("inside", [[], ["words"]])
def test_a_folder_without_captures_is_refused_in_one_line(tmp_path: Path, inside: list[str]) -> None:
    for name in inside:
        (tmp_path / name).write_text("no capture")
    with pytest.raises(CaptureError) as caught:
        dissector.open(tmp_path)
    assert str(caught.value) == f"{tmp_path}: a folder without captures or tables"
