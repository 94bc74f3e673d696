"""`kdissect export` as a user meets it."""

import json
import os
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from dissector.cli.export import ranges_of
from tests.cases import cases
from tests.cli.test_commands import JAVA, TRANSACTIONS, kdissect
from tests.conftest import PCAPS

SASL = str(PCAPS / "java-sasl-plain.pcapng")

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
    done = kdissect("export", JAVA, "--rows", "3,5-6", "-w", str(out))
    assert done.returncode == 0
    assert done.stderr == f"kdissect: {out}: 3 rows; it reopens as 7 rows: 4 gaps between them\n".encode()
    assert out.stat().st_size < Path(JAVA).stat().st_size / 3
    was = kdissect("show", JAVA, "--fields", "request.time_ns,api").stdout.splitlines()
    now = kdissect("show", str(out), "--fields", "request.time_ns,api").stdout.splitlines()
    assert {was[2], was[4], was[5]} <= set(now)


@pytest.mark.long
def test_what_can_not_be_exported_is_one_line(tmp_path: Path) -> None:
    copy = tmp_path / "copy.pcapng"
    copy.write_bytes(Path(JAVA).read_bytes())
    out = str(tmp_path / "out.pcapng")
    (tmp_path / "empty").mkdir()
    for words, code, message in (
        ((str(copy), "-w", str(copy)), 2, b"is an input"),
        (("-", "-w", out), 2, b"reads a capture twice"),
        (("none.pcap", "-w", out), 2, b"none.pcap: no such file"),
        ((str(tmp_path), "-w", str(copy)), 2, b"is an input"),
        ((str(tmp_path / "empty"), "-w", out), 2, b"a folder without captures"),
        ((JAVA, "--rows", "9-7", "-w", out), 2, b"'9-7' is neither a row number"),
        ((JAVA, "--rows", "100000", "-w", out), 1, b"no row 100000"),
        ((JAVA, "-w", str(tmp_path / "no" / "folder.txt")), 2, b"there is no folder"),
        ((JAVA, "-w", str(tmp_path / "no.name")), 2, b"choose a format with --format"),
        ((JAVA, "-w", "-"), 2, b"choose a format with --format"),
        ((JAVA, "-w", out, "-f", "no"), 2, b""),
    ):
        done = kdissect("export", *words)
        assert (done.returncode, done.stdout) == (code, b"")
        assert message in done.stderr.splitlines()[-1]
    assert copy.read_bytes() == Path(JAVA).read_bytes()


@pytest.mark.long
def test_the_json_is_that_of_show(tmp_path: Path) -> None:
    shown = kdissect("show", JAVA, "-f", "json").stdout
    out = tmp_path / "out.ndjson"
    assert kdissect("export", JAVA, "-w", str(out)).returncode == 0
    assert out.read_bytes() == shown
    some = kdissect("export", JAVA, "--rows", "2-3", "-f", "json", "-w", "-")
    assert some.stdout == b"".join(shown.splitlines(keepends=True)[1:3])
    assert not some.stderr


@pytest.mark.long
@cases("form", ["pcapng", "transcript", "json", "mermaid", "svg", "pytest"])
def test_of_what_is_redacted_no_form_has_a_name(form: str, tmp_path: Path) -> None:
    words = [b"alice", b"alice-secret", b"alice-secret".hex().encode()]
    with Capture([SASL]) as capture:
        rows = [exchange.fields for exchange in capture.exchanges()]
    words += [each.client_id.encode() for each in rows if each.client_id]
    out = tmp_path / "out"
    assert kdissect("export", SASL, "-f", form, "--redact", "-w", str(out)).returncode == 0
    written = out.read_bytes()
    assert len(written) > 1000
    assert [word for word in words if word in written or word.hex().encode() in written] == []


def test_rows_have_the_same_numbers_once_redacted() -> None:
    done = kdissect("export", SASL, "--rows", "4,9-11", "-f", "json", "--redact", "-w", "-")
    assert [json.loads(line)["number"] for line in done.stdout.splitlines()] == [4, 9, 10, 11]
    assert not done.stderr


def test_what_can_not_be_redacted_is_one_line(tmp_path: Path) -> None:
    segment = str(next((PCAPS / "segments").rglob("*.log")))
    for words, code, message in (
        ((JAVA, "-f", "command", "-w", "-"), 2, b"a command can't be redacted"),
        (("-", "-f", "json", "-w", "-"), 2, b"reads a capture twice"),
        ((segment, "-f", "json", "-w", "-"), 1, b"no packets carried"),
    ):
        done = kdissect("export", "--redact", *words)
        assert (done.returncode, done.stdout) == (code, b"")
        assert message in done.stderr.splitlines()[-1]


def test_a_sequence_diagram_has_the_chosen_exchanges() -> None:
    text = kdissect("export", JAVA, "--rows", "1-3", "-f", "mermaid", "-w", "-").stdout
    assert text.startswith(b"sequenceDiagram")
    assert text.count(b"->>") + text.count(b"-->>") >= 6
    assert kdissect("export", JAVA, "--rows", "1-3", "-f", "svg", "-w", "-").stdout.startswith(b"<svg")


def test_a_pipe_is_exported_as_text() -> None:
    done = kdissect("export", "-", "-f", "transcript", "-w", "-", data=Path(JAVA).read_bytes())
    assert done.returncode == 0
    assert done.stdout == kdissect("export", JAVA, "-f", "transcript", "-w", "-").stdout


def test_entries_of_kafkas_files_are_exported_as_text_alone(tmp_path: Path) -> None:
    segment = str(next((PCAPS / "segments").rglob("*.log")))
    assert kdissect("export", segment, "-f", "json", "-w", "-").stdout == kdissect("show", segment, "-f", "json").stdout
    done = kdissect("export", segment, "-w", str(tmp_path / "out.pcapng"))
    assert (done.returncode, b"no packets carried" in done.stderr) == (1, True)


@cases(("text", "first"), [("7", [7]), ("7-9", [7, 8, 9]), (" 2 , 4-5", [2, 4, 5]), ("98-", [98, 99, 100])])
def test_ranges_are_numbers_as_show_prints_them(text: str, first: list[int]) -> None:
    assert [number for part in ranges_of(text) for number in part[: 101 - part.start]] == first


@pytest.mark.long
def test_packets_of_a_login_come_with_a_warning_unless_they_are_redacted(tmp_path: Path) -> None:
    words = b"these packets hold a login as it was sent: redact them (--redact) before you share them"
    out = str(tmp_path / "out.pcapng")
    assert words in kdissect("export", SASL, "-w", out).stderr
    assert words not in kdissect("export", SASL, "-w", out, "--redact").stderr
    assert words not in kdissect("export", SASL, "-w", str(tmp_path / "out.txt")).stderr
    assert words not in kdissect("export", JAVA, "-w", out).stderr


@pytest.mark.long
@cases(("words", "is_private"), [((), True), (("--redact",), False), (("-f", "json"), True)])
def test_only_its_user_may_read_what_may_hold_secrets(tmp_path: Path, words: tuple[str, ...], is_private: bool) -> None:
    out, usual = tmp_path / "out.pcapng", tmp_path / "usual"
    usual.touch()
    assert kdissect("export", JAVA, "-w", str(out), *words).returncode == 0
    assert oct(out.stat().st_mode) == oct(0o100600 if is_private else usual.stat().st_mode)
    out.chmod(0o640)
    assert kdissect("export", JAVA, "-w", str(out), *words).returncode == 0
    assert oct(out.stat().st_mode) == oct(0o100640)


def test_a_name_that_ends_in_a_slash_is_no_file(tmp_path: Path) -> None:
    done = kdissect("export", JAVA, "-w", f"{tmp_path}/out.pcapng/")
    assert (done.returncode, done.stderr.decode()) == (2, f"kdissect: {tmp_path}/out.pcapng/: is a directory\n")
    assert not list(tmp_path.iterdir())
    done = kdissect("show", "")
    assert (done.returncode, done.stderr.decode()) == (2, "kdissect: '': no such file or directory\n")


def test_a_pipe_that_nobody_reads_is_one_line_whatever_writes_to_it(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe.pcapng")
    for words in (("export", JAVA, "-w", str(pipe)), ("diff", JAVA, "--save-baseline", str(pipe))):
        done = kdissect(*words)
        assert (done.returncode, done.stderr.decode()) == (2, f"kdissect: {pipe}: nobody reads this pipe\n")
    done = kdissect("encode", "-w", str(pipe), data=kdissect("show", "-f", "json", JAVA).stdout)
    assert (done.returncode, done.stderr.decode()) == (2, f"kdissect: {pipe}: nobody reads this pipe\n")
