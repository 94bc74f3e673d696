"""`kdissect export` as a user meets it."""

from pathlib import Path

import pytest

from dissector.cli.export import ranges_of
from tests.cli.test_commands import JAVA, TRANSACTIONS, kdissect
from tests.conftest import PCAPS

pytestmark = pytest.mark.slow


def test_all_rows_are_copied_and_read_the_same(tmp_path: Path) -> None:
    out = str(tmp_path / "out.pcapng")
    done = kdissect("export", TRANSACTIONS, "-w", out)
    assert done.returncode == 0
    assert not done.stdout
    assert done.stderr.endswith(b" rows\n")
    assert kdissect("show", out, "-f", "json").stdout == kdissect("show", TRANSACTIONS, "-f", "json").stdout


def test_some_rows_are_few_packets(tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    assert kdissect("export", JAVA, "--rows", "3,5-6", "-w", str(out)).returncode == 0
    assert out.stat().st_size < Path(JAVA).stat().st_size / 3
    was = kdissect("show", JAVA, "--fields", "request.time_ns,api").stdout.splitlines()
    now = kdissect("show", str(out), "--fields", "request.time_ns,api").stdout.splitlines()
    assert {was[2], was[4], was[5]} <= set(now)


def test_what_can_not_be_exported_is_one_line(tmp_path: Path) -> None:
    copy = tmp_path / "copy.pcapng"
    copy.write_bytes(Path(JAVA).read_bytes())
    out = str(tmp_path / "out.pcapng")
    for words, code, said in (
        ((str(copy), "-w", str(copy)), 2, b"is read from"),
        (("-", "-w", out), 2, b"reads a capture twice"),
        ((JAVA, "--rows", "9-7", "-w", out), 2, b"'9-7' is no row number"),
        ((JAVA, "--rows", "100000", "-w", out), 1, b"no row 100000"),
        ((JAVA, "-w", str(tmp_path / "no" / "folder.txt")), 2, b"no such file"),
        ((JAVA, "-w", str(tmp_path / "no.name")), 2, b"say with --format what to write"),
        ((JAVA, "-w", "-"), 2, b"say with --format what to write"),
        ((JAVA, "-w", out, "-f", "no"), 2, b""),
    ):
        done = kdissect("export", *words)
        assert (done.returncode, done.stdout) == (code, b"")
        assert said in done.stderr.splitlines()[-1]
    assert copy.read_bytes() == Path(JAVA).read_bytes()


def test_the_json_is_that_of_show(tmp_path: Path) -> None:
    shown = kdissect("show", JAVA, "-f", "json").stdout
    out = tmp_path / "out.ndjson"
    assert kdissect("export", JAVA, "-w", str(out)).returncode == 0
    assert out.read_bytes() == shown
    some = kdissect("export", JAVA, "--rows", "2-3", "-f", "json", "-w", "-")
    assert some.stdout == b"".join(shown.splitlines(keepends=True)[1:3])
    assert not some.stderr


def test_a_pipe_is_exported_as_text() -> None:
    done = kdissect("export", "-", "-f", "transcript", "-w", "-", data=Path(JAVA).read_bytes())
    assert done.returncode == 0
    assert done.stdout == kdissect("export", JAVA, "-f", "transcript", "-w", "-").stdout


def test_entries_of_kafkas_files_are_exported_as_text_alone(tmp_path: Path) -> None:
    segment = str(next((PCAPS / "segments").rglob("*.log")))
    assert kdissect("export", segment, "-f", "json", "-w", "-").stdout == kdissect("show", segment, "-f", "json").stdout
    done = kdissect("export", segment, "-w", str(tmp_path / "out.pcapng"))
    assert (done.returncode, b"no packets carried" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("text", "first"), [("7", [7]), ("7-9", [7, 8, 9]), (" 2 , 4-5", [2, 4, 5]), ("98-", [98, 99, 100])]
)
def test_ranges_are_numbers_as_show_prints_them(text: str, first: list[int]) -> None:
    assert [number for part in ranges_of(text) for number in part[: 101 - part.start]] == first
