"""`kdissect proxy --fault`: the exit code, the list at the end, and what is said of rules that are none."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from dissector.capture.fault_counts import FaultCount
from dissector.cli.faults import line, total
from tests.forked import run_module
from tests.frames import request

KDISSECT = (sys.executable, "-m", "dissector", "proxy", "127.0.0.1:9", "--text")


def proxied(*options: str) -> tuple[int, str]:
    """Its exit code and what it says."""
    done = run_module(KDISSECT[2], [*KDISSECT[3:], *options], dict(os.environ))
    return done.returncode, done.stderr.decode()


@pytest.mark.long
@pytest.mark.slow
def test_a_rule_that_never_fires_is_an_error_if_that_is_asked_for() -> None:
    for options, expected in ((("--strict",), 1), ((), 0)):
        code, said = proxied("--fault", "api == Fetch:drop , first 2", "--duration", "0.3", *options)
        assert (code, said.splitlines()[-1]) == (
            expected, "fault 1 never fired, 0 matched of 0 asked: api == Fetch: drop, first 2",
        )  # fmt: skip


@pytest.mark.long
@pytest.mark.slow
def test_a_rule_that_fires_is_none(tmp_path: Path) -> None:
    rules = tmp_path / "faults.toml"
    rules.write_text("[[fault]]\nname = 'gone'\nrule = 'api == Metadata: close'\n")
    with socket.create_server(("127.0.0.1", 0)) as broker:
        options = ("--faults", str(rules), "--strict", "--duration", "3")
        command = [*KDISSECT[:4], f"127.0.0.1:{broker.getsockname()[1]}", "--text", *options]
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            said = ""
            while "listening on" not in said:
                said = process.stderr.readline()
            found = re.search(r"listening on 127.0.0.1:(\d+)", said)
            assert found is not None
            with socket.create_connection(("127.0.0.1", int(found[1])), 10) as client:
                client.settimeout(10)
                client.sendall(request(1))
                assert client.recv(1) == b""
            rows, said = process.communicate(timeout=30)
    assert process.returncode == 0
    assert said.splitlines()[-1] == "fault gone fired 1 time, 1 matched of 1 asked: api == Metadata: close"
    assert "[injected]" in rows


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ("--fault", "api == Fetch: drp"),
            "--fault api == Fetch: drp: column 15: unknown action 'drp'; did you mean drop",
        ),
        (("--faults", "missing.toml"), "--faults missing.toml: no such file or directory"),
        (("--strict",), "--strict needs --fault or --faults"),
    ],
)
def test_bad_rules_are_one_line(options: tuple[str, ...], words: str) -> None:
    code, said = proxied(*options)
    assert code == 2
    assert said.count("\n") == 1
    assert words in said


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems take longer arguments")
def test_more_rules_than_an_argument_holds_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "faults.toml"
    path.write_text(f"[[fault]]\nrule = 'topic == \"{'t' * 60_000}\": drop'\n" * 3)
    code, said = proxied("--faults", str(path))
    assert code == 2
    assert said.count("\n") == 1
    assert re.search(r"settings of 180,\d{3} characters are more than a program can be given; use fewer", said)


def test_counts_of_several_runs_are_added() -> None:
    one, two = FaultCount("a", "drop", 5, 3, 2, 1), FaultCount("b", "close", 1, 0, 0, 0)
    both = [FaultCount("a", "drop", 10, 6, 4, 2), FaultCount("b", "close", 2, 0, 0, 0)]
    assert total([[one, two], [one, two]]) == both
    assert line(one) == "fault a fired 2 times, 3 matched of 5 asked, 1 where it could do nothing: drop"
