"""What a new user tries first: a capture piped to the screen, the version, completion, a mistyped command."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dissector.core.addresses import BrokerAddress
from dissector.probe.connection import ProbeError, probed_address
from tests.cases import cases
from tests.cli.test_commands import JAVA, kdissect
from tests.conftest import some_of
from tests.terminal import terminal

TAKES_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
)
"""As a login does: the terminal controls the session, and is /dev/tty in it."""
PROGRAM = f"{sys.executable} -m dissector"


def in_shell(line: str) -> list[str]:
    return [sys.executable, "-c", TAKES_TERMINAL, "sh", "-c", line]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("words", some_of(["-", "open -"], "-"))
def test_a_capture_from_a_pipe_is_shown_and_the_keys_come_from_the_terminal(tmp_path: Path, words: str) -> None:
    folders = {"XDG_STATE_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    with terminal(in_shell(f"cat {JAVA} | {PROGRAM} {words}"), **folders) as there:
        there.until_seen(lambda lines: "standard input" in lines[0] and "100%" in lines[0])
        there.send("/api == Fetch\r")
        there.until_seen(lambda lines: "shown" in lines[0])
        there.send("q")
        there.rest()
        assert there.process.wait(20) == 0


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_capture_is_opened_with_a_filter(tmp_path: Path) -> None:
    with terminal(in_shell(f"{PROGRAM} {JAVA} -Y 'api == Fetch'"), XDG_STATE_HOME=str(tmp_path)) as there:
        there.until_seen(lambda lines: "shown" in lines[0] and "✔" in lines[1])
        there.send("q")
        there.rest()
        assert there.process.wait(20) == 0


@pytest.mark.long
@pytest.mark.slow
def test_a_terminal_as_standard_input_is_no_capture(tmp_path: Path) -> None:
    with terminal(in_shell(f"{PROGRAM} -"), XDG_STATE_HOME=str(tmp_path)) as there:
        there.until("nothing is piped into it")
        assert there.process.wait(20) == 2


@pytest.mark.long
@pytest.mark.slow
def test_a_terminal_that_places_nothing_gets_rows(tmp_path: Path) -> None:
    with terminal(in_shell(f"{PROGRAM} {JAVA}"), TERM="dumb", XDG_STATE_HOME=str(tmp_path)) as there:
        there.rest()
        assert there.process.wait(20) == 0
        assert "ApiVersions" in there.written.decode()
        assert b"\x1b" not in there.written


def test_python_runs_the_package_as_the_program() -> None:
    done = subprocess.run([sys.executable, "-m", "dissector", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("kdissect ")
    assert done.stdout.split()[1][0].isdigit()
    assert done.stdout.splitlines()[1] == "schemas of Apache Kafka 3.6.2, 3.7.2, 3.9.2, 4.3.1, 4.4.0"


@cases(("typed", "meant"), [("shwo", "show"), ("stat", "stats"), ("exprot", "export"), ("Diff", "diff")])
def test_a_mistyped_command_gets_the_nearest(typed: str, meant: str) -> None:
    done = kdissect(typed, "orders.pcapng")
    words = f"kdissect: {typed}: neither a command nor a file; did you mean: kdissect {meant}\n"
    assert (done.returncode, done.stderr.decode()) == (2, words)


def test_a_word_like_no_command_is_told_from_a_file() -> None:
    done = kdissect("frobnicate")
    assert done.returncode == 2
    assert done.stderr.startswith(b"kdissect: frobnicate: neither a command nor a file; the commands are open, show, ")
    assert kdissect("frobnicate.pcap").stderr == b"kdissect: frobnicate.pcap: no such file or directory\n"


@cases(
    ("asked", "same"),
    [(("help",), ("--help",)), (("help", "show"), ("show", "--help")), (("version",), ("--version",))],
)
def test_what_other_programs_call_help_and_version_works(asked: tuple[str, ...], same: tuple[str, ...]) -> None:
    done = kdissect(*asked)
    assert (done.returncode, done.stdout) == (0, kdissect(*same).stdout)
    assert done.stdout


def test_filter_is_the_long_name_of_y() -> None:
    long, short = (kdissect("show", JAVA, option, "api == JoinGroup") for option in ("--filter", "-Y"))
    assert (long.returncode, long.stdout) == (0, short.stdout)
    assert long.stdout


@cases(
    ("word", "meant"),
    [
        ("JoinGroup", "api == JoinGroup"),
        ("joingroup", "api == JoinGroup"),
        ("NOT_COORDINATOR", "error == NOT_COORDINATOR"),
    ],
)
def test_a_name_without_its_field_gets_the_comparison(word: str, meant: str) -> None:
    done = kdissect("show", JAVA, "-Y", word)
    expected = f"kdissect: -Y: column 1: unknown field '{word}'; did you mean {meant}"
    assert (done.returncode, done.stderr.decode().splitlines()[0]) == (2, expected)


@cases(
    ("word", "advice"),
    [
        ("http://h/a.pcap", "a web address: download the file first, curl -O http://h/a.pcap"),
        ("kafka://h:9092", "a broker, not a file: kdissect probe h:9092 asks it"),
    ],
)
def test_a_url_gets_what_to_do_instead(word: str, advice: str) -> None:
    for command in ("show", "records", "stats"):
        done = kdissect(command, word)
        assert (done.returncode, done.stderr.decode()) == (2, f"kdissect: {word}: {advice}\n")


@pytest.mark.parametrize(
    ("name", "head", "kind"),
    [
        ("a.zip", b"PK\3\4", "a zip"),
        ("a.tar", b"README".ljust(257, b"\0") + b"ustar", "a tar"),
        ("a.rar", b"Rar!", "a rar"),
    ],
)
def test_an_archive_is_to_be_unpacked(tmp_path: Path, name: str, head: bytes, kind: str) -> None:
    (tmp_path / name).write_bytes(head.ljust(512, b"\0"))
    done = kdissect("show", str(tmp_path / name))
    words = f"kdissect: {tmp_path / name}: {kind} archive: unpack it and open the captures in it\n"
    assert (done.returncode, done.stderr.decode()) == (2, words)


def test_an_address_has_the_scheme_of_a_listener() -> None:
    assert (
        probed_address("PLAINTEXT://broker:9093")
        == probed_address("kafka://broker:9093")
        == BrokerAddress("broker", 9093)
    )
    with pytest.raises(ProbeError, match="without TLS and without a login"):
        probed_address("SASL_SSL://broker:9093")


@pytest.mark.long
@pytest.mark.slow
def test_a_file_that_is_called_like_a_command_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "shows"
    path.write_bytes(Path(JAVA).read_bytes())
    done = subprocess.run([sys.executable, "-m", "dissector", "shows"], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(("line", "offered"), [("kdissect sh", "show"), ("kdissect show --for", "--format")])
def test_a_shell_can_complete(line: str, offered: str) -> None:
    asked = {"_KDISSECT_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    code = "import sys; sys.argv = ['kdissect']; from dissector.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | asked, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == [offered]


def test_a_host_without_a_port_is_asked_at_kafkas() -> None:
    assert probed_address("broker-1") == BrokerAddress("broker-1", 9092)
    assert probed_address("[::1]") == BrokerAddress("::1", 9092)


@pytest.mark.long
def test_the_manual_has_every_command() -> None:
    made = subprocess.run([sys.executable, "-m", "dissector", "man"], capture_output=True, text=True, check=True).stdout
    for name in ("SHOW", "LIVE", "TABLES COMPACT", "SCHEMA DIFF"):
        assert f'.SH "KDISSECT {name}"' in made
