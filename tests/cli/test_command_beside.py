"""`kdissect live -- COMMAND` and `proxy BROKER -- COMMAND`: the command runs while the capture does."""

import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final
from xml.etree import ElementTree

import pytest

from dissector.capture.live.waiting_command import CommandStartError, WaitingCommand
from dissector.capture_session import Capture
from dissector.cli.passed_signals import PassedSignals
from tests.capture.live.loopback import broker, needs_rights
from tests.cases import cases
from tests.cli.test_commands import KDISSECT, kdissect
from tests.forked import PipedProgram, run_module
from tests.needs import as_another_user

HANGS: Final = 60
slow = pytest.mark.slow

CLIENT: Final = """
import os, socket, struct, sys
address = sys.argv[1] if len(sys.argv) > 1 else os.environ["KDISSECT_BOOTSTRAP"]
host, _, port = address.rpartition(":")
with socket.create_connection((host, int(port)), timeout=30) as connection:
    stream = connection.makefile("rb")
    for number in range(3):
        body = struct.pack(">hhih5si", 3, 0, number, 5, b"tests", 0)
        connection.sendall(struct.pack(">i", len(body)) + body)
        stream.read(int.from_bytes(stream.read(4), "big"))
print("the command's own words", flush=True)
sys.exit(int(os.environ.get("CODE", "0")))
"""
"""Metadata, three times."""
ENDLESS: Final = """
import signal, sys, time
got = []
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, lambda number, _: print("got", signal.Signals(number).name, flush=True))
print("ready", flush=True)
print("read", sys.stdin.readline().strip(), flush=True)
"""
"""Says which signals it gets, until it has read a line."""


def beside(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """kdissect with a client as its command, which ends with a code."""
    words = (*words, "--", sys.executable, "-c", CLIENT)
    return as_text(run_module(KDISSECT[-1], words, {**os.environ, "CODE": str(code)}))


def as_text(done: subprocess.CompletedProcess[bytes]) -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.long
@slow
def test_the_command_s_output_comes_first_and_the_rows_behind_it() -> None:
    with broker() as port:
        done = beside("proxy", f"127.0.0.1:{port}", code=7)
    first, head, *rows = done.stdout.splitlines()
    assert done.returncode == 7
    assert (first, head.split()[:1]) == ("the command's own words", ["No."])
    assert [row.split()[3:6] for row in rows] == [["Metadata", "0", str(number)] for number in range(3)]


@pytest.mark.long
@slow
def test_reports_have_what_is_judged_and_a_command_that_fails_wins(tmp_path: Path) -> None:
    xml, sarif, summary = tmp_path / "made/rules.xml", tmp_path / "rules.sarif", tmp_path / "summary.md"
    summary.write_text("what the command wrote\n")
    files = ("--junit", str(xml), "--sarif", str(sarif), "--summary", str(summary))
    with broker() as port:
        failing = ("proxy", f"127.0.0.1:{port}", "--check", "--fail-on", "api == Metadata", *files)
        done = beside(*failing)
        assert beside(*failing, code=5).returncode == 5
        kept = beside("proxy", f"127.0.0.1:{port}", "--check", "-f", "json", "-w", str(tmp_path / "kept.pcapng"))
    assert done.returncode == 1
    assert "3 of 3 rows match api == Metadata" in done.stdout
    assert [each.get("name") for each in ElementTree.parse(xml).getroot()] == ["kdissect check", "kdissect --fail-on"]
    [result] = json.loads(sarif.read_text())["runs"][0]["results"]
    assert result["ruleId"] == "fail-on"
    assert summary.read_text().startswith("what the command wrote\n\n# 3 exchanges in 1 file: 0 rules broken")
    assert kept.returncode == 0  # rows on standard output, the report on the other one
    assert [json.loads(line)["api"] for line in kept.stdout.splitlines()[1:]] == ["Metadata"] * 3
    assert "0 rules broken" in kept.stderr
    again = kdissect("check", str(tmp_path / "kept.pcapng"))
    assert again.stdout.decode().splitlines()[0] in kept.stderr


@pytest.mark.long
@slow
@needs_rights
def test_live_captures_from_the_first_packet_and_packets_alone_are_kept_without_rows(tmp_path: Path) -> None:
    path = tmp_path / "kept.pcapng"
    with broker() as port:
        words = ("live", "-p", str(port), "-w", str(path), "--", sys.executable, "-c", CLIENT, f"127.0.0.1:{port}")
        # not forked: what this process has imported so far may be where nobody can read it
        done = subprocess.run([*KDISSECT, *words], capture_output=True, text=True, timeout=HANGS)
    assert (done.returncode, done.stdout) == (0, "the command's own words\n"), done.stderr
    with Capture([str(path)]) as capture:
        assert [exchange.row.api for exchange in capture.exchanges()] == ["Metadata"] * 3, done.stderr
        assert not capture.problems


@pytest.mark.long
@slow
def test_baselines_are_compared_as_diff_does(tmp_path: Path) -> None:
    path, baseline = tmp_path / "kept.pcapng", tmp_path / "tests.toml"
    with broker() as port:
        address = f"127.0.0.1:{port}"
        beside("proxy", address, "-w", str(path))
        assert kdissect("diff", str(path), "--save-baseline", str(baseline)).returncode == 0
        same = beside("proxy", address, "--baseline", str(baseline))
        text = baseline.read_text()
        assert 'Metadata = "v0"' in text
        baseline.write_text(text.replace('Metadata = "v0"', 'Metadata = "v1"'))
        other = beside("proxy", address, "--baseline", str(baseline))
        ignored = beside("proxy", address, "--baseline", str(baseline), "--ignore", "version")
    assert (same.returncode, other.returncode, ignored.returncode) == (0, 1, 0)
    assert "versions.Metadata" in other.stdout


@pytest.mark.long
@slow
def test_without_a_command_the_end_is_judged_too_and_nothing_seen_is_no_success() -> None:
    done = kdissect("proxy", "127.0.0.1:9", "--check", "--duration", "0.2")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().splitlines()[-1] == "kdissect: proxy: contains no Kafka request, so nothing was checked"


@slow
@cases(
    ("words", "message"),
    [
        (("live", "--"), "-- without a command behind it"),
        (("live", "--duration", "1", "--", "true"), "--duration and a command"),
        (("live", "--junit", "x.xml", "--", "true"), "--junit needs --check, --baseline or --fail-on"),
        (("live", "--fail-on", "erorr", "--", "true"), "--fail-on: "),
        (("live", "--fail-on", "error", "--ignore", "acks"), "--ignore needs --check or --baseline"),
        (("live", "--check", "--ignore", "acks"), "--ignore: 'acks' is not a rule"),
        (("live", "--baseline", "missing.toml"), "can't read missing.toml: no such file or directory"),
        (("live", "--baseline", "x.toml", "--fail-on", "acks"), "--fail-on acks: a filter of exchanges is expected"),
        (("proxy", "--", "true"), "missing argument 'BROKER…'"),
        (
            ("live", "true"),
            "unexpected argument: true; an interface needs -i, a port -p; a command stands behind --: "
            "kdissect live -- true",
        ),
    ],
)
def test_bad_use_is_one_line_and_runs_nothing(words: tuple[str, ...], message: str) -> None:
    done = kdissect(*words)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().startswith(f"kdissect: {message}")
    assert b"capturing" not in done.stderr


@contextlib.contextmanager
def running(*words: str, ignoring: bool = False) -> Iterator["subprocess.Popen[str]"]:
    """kdissect with a command that is endless, from when that runs."""

    def ignore() -> None:  # as a shell does for `command &` in a script
        if ignoring:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    words = (*KDISSECT, "proxy", "127.0.0.1:9", *words, "--", sys.executable, "-c", ENDLESS)
    with subprocess.Popen(words, text=True, preexec_fn=ignore, **pipes) as process:
        try:
            assert stream(process.stdout).readline() == "ready\n"
            yield process
        finally:
            stream(process.stdin).close()
            process.kill()


def stream(of: IO[str] | None) -> IO[str]:
    assert of is not None
    return of


@pytest.mark.long
@slow
def test_signals_of_kill_are_passed_on_once_and_the_second_request_ends_us() -> None:
    with running("--text", ignoring=True) as process:
        for number in (signal.SIGUSR1, signal.SIGINT):
            process.send_signal(number)
            assert stream(process.stdout).readline() == f"got {number.name}\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANGS) == 128 + signal.SIGINT
        assert any("continues without a capture, as process " in line for line in stream(process.stderr))
        assert stream(process.stdout).readline() == "got SIGTERM\n"
        stream(process.stdin).write("more\n")  # which the command reads
        stream(process.stdin).flush()
        assert stream(process.stdout).readline() == "read more\n"


@pytest.mark.long
@slow
def test_what_is_typed_reaches_the_command_once() -> None:
    """At a terminal that controls the session, as a shell's does: it sends an interrupt to all."""
    words = [*KDISSECT, "proxy", "127.0.0.1:9", "--", sys.executable, "-c", ENDLESS]
    process, end = pty.fork()
    if not process:
        os.execv(words[0], words)
    written = b""
    for awaited, typed in ((b"ready", b"\x03"), (b"got SIGINT", b"enough\n"), (b"0 exchanges", b"")):
        while awaited not in written:
            assert select.select([end], [], [], HANGS)[0], written
            written += os.read(end, 1 << 16)
        os.write(end, typed)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    os.close(end)
    assert written.count(b"got SIGINT") == 1


@pytest.mark.long
@slow
@cases("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_ends_by_a_signal_has_its_number(number: signal.Signals) -> None:
    words = ("proxy", "127.0.0.1:9", "--", "sh", "-c", "echo ready; exec sleep 60")
    with PipedProgram(KDISSECT[-1], *words) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.wait(HANGS) == 128 + number


# What runs the command, without kdissect around it.


class Run:
    """Runs commands with this process's own descriptors, and has what they print."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd

    def __call__(self, *words: str) -> tuple[int, str]:
        """The exit code, and what was printed or said."""
        with WaitingCommand(words) as command:
            try:
                command.start({"ADDED": "a\nb"})
            except CommandStartError as error:
                return error.code, str(error)
            while (code := command.poll()) is None:
                time.sleep(0.01)
        return code, self._capfd.readouterr().out


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    return Run(capfd)


@pytest.mark.long
def test_commands_that_can_t_be_started_have_the_codes_of_env(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tmp_path / "plain"
    plain.write_text("echo $ADDED from a script without a first line; exit 4\n")
    assert run(str(plain)) == (126, f"{plain}: permission denied")
    plain.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert run(str(plain)) == run("plain") == (4, "a b from a script without a first line\n")
    assert run("") == (127, "'': no such file or directory")
    assert run("ls -l /") == (127, "ls -l /: no such file or directory; for a command line: sh -c '…'")
    assert run("sh", "-c", "kill -KILL $$") == (128 + signal.SIGKILL, "")


def test_it_has_its_signals_and_no_descriptor_of_ours(run: Run) -> None:
    script = "ls /proc/$$/fd; exec grep -E 'SigIgn|SigBlk' /proc/self/status"
    inherited = subprocess.run(["sh", "-c", script], close_fds=False, stdout=subprocess.PIPE, text=True).stdout
    _, out = run("sh", "-c", script)
    *files, blocked, ignored = out.splitlines()
    *its_files, its_blocked, its_ignored = inherited.splitlines()
    assert set(files) <= {*its_files}
    assert (blocked, ignored) == (its_blocked, its_ignored)  # as it would run without us, under nohup, too


def test_one_that_is_not_started_never_is_also_where_a_later_process_has_our_end() -> None:
    with WaitingCommand(["sh", "-c", "echo started > started"]) as command:
        process = command._process
        ours, its = os.pipe()
        other = os.fork()  # as the process that keeps rights
        if not other:
            os.close(its)
            os.read(ours, 1)  # until this one closes it
            os._exit(0)
    assert not command.pid
    os.close(its)
    os.close(ours)
    assert os.waitpid(other, 0)[1] == 0
    with pytest.raises(ChildProcessError):
        os.waitpid(process, 0)


@as_another_user
def test_under_sudo_it_is_the_caller_s_and_may_still_call_sudo_itself(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    assert run("id", "-u") == (0, "0\n")  # root who did not come by sudo
    monkeypatch.setenv("SUDO_UID", "1234")
    monkeypatch.setenv("SUDO_GID", "2345")
    _, out = run("sh", "-c", "id -u; id -g; id -G; echo $HOME; grep -E 'NoNewPrivs|CapEff' /proc/self/status")
    uid, gid, groups, home, capabilities, privileges = out.splitlines()
    assert (uid, gid, groups, home) == ("1234", "2345", "2345", "/")
    assert int(capabilities.split()[1], 16) == 0
    assert privileges.split() == ["NoNewPrivs:", "0"]


@pytest.mark.long
@as_another_user
@needs_rights
@slow
def test_a_command_of_root_s_gets_signals_though_kdissect_is_nobody_by_then() -> None:
    words = [*KDISSECT, "live", "--", sys.executable, "-c", ENDLESS]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(words, text=True, **pipes) as process:
        assert stream(process.stdout).readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert stream(process.stdout).readline() == "got SIGTERM\n"
        process.communicate("enough\n", timeout=HANGS)
    assert process.returncode == 0


def test_signals_without_the_kernel_s_word_are_typed_only_in_the_foreground() -> None:
    """As on macOS; this process has no terminal, or is not at its front."""
    with PassedSignals(asks_kernel=False) as signals:
        os.kill(os.getpid(), signal.SIGUSR1)
        assert [*signals.take()] == [(signal.SIGUSR1, False)]
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL
