"""The archive of Spark's classes: written once, used then, never in the way."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dissector.pipeline.class_archive import java_options
from tests.cases import cases
from tests.conftest import PCAPS
from tests.needs import needs


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the archive is kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "kdissect"


def test_the_first_session_writes_what_later_ones_use(folder: Path) -> None:
    path = Path(java_options("17", "4.0").rpartition("-XX:ArchiveClassesAtExit=")[2])
    assert path.parent == folder
    path.write_bytes(bytes.fromhex("a8ab0bf0"))
    assert java_options("17", "4.0").endswith(f"-XX:SharedArchiveFile={path}")


def test_an_archive_without_a_header_is_written_again(folder: Path) -> None:
    """Its JVM was killed, or still writes."""
    path = Path(java_options("17", "4.0").rpartition("=")[2])
    path.write_bytes(bytes(1 << 20))
    assert java_options("17", "4.0").endswith(f"-XX:ArchiveClassesAtExit={path}")


def test_another_version_replaces_the_archive(folder: Path) -> None:
    path = Path(java_options("17", "4.0").rpartition("=")[2])
    path.write_bytes(bytes.fromhex("a8ab0bf0"))
    assert java_options("21", "4.0").rpartition("=")[2] != str(path)
    assert list(folder.iterdir()) == []


@cases("home", ["/proc/nonexistent", "/dev/null", "TEMPORARY/with space", "TEMPORARY/a:b"])
def test_a_folder_that_will_not_do_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", home.replace("TEMPORARY", str(tmp_path)))
    assert java_options("17", "4.0") == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows what a process has mapped")
def test_the_second_ingest_maps_what_the_first_wrote(folder: Path, tmp_path: Path) -> None:
    needs("java")
    pytest.importorskip("pyspark", reason="NOT TESTED with pyspark: it is not installed")
    program = [sys.executable, "-m", "dissector.cli.main"]
    command = [*program, "ingest", str(PCAPS / "java.pcapng"), "--master", "local[1]", "--out"]
    assert subprocess.run([*command, str(tmp_path / "first")], capture_output=True).returncode == 0
    deadline = time.monotonic() + 300
    while not (found := [path for path in folder.glob("*.jsa") if any(path.read_bytes()[:4])]):
        assert time.monotonic() < deadline, "the JVM writes no archive"
        time.sleep(0.5)
    again = [*command, str(tmp_path / "second")]
    with subprocess.Popen(again, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as second:
        is_mapped = False
        while second.poll() is None and not is_mapped:
            is_mapped = any(str(found[0]) in maps for maps in _all_maps())
            time.sleep(0.1)
        output, errors = second.communicate()
    assert second.returncode == 0, errors
    assert is_mapped
    assert (output, errors.count(b"\n")) == (b"", 1), "Java writes nothing between our lines"


def _all_maps() -> Iterator[str]:
    for each in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            yield os.fsdecode(each.read_bytes())
