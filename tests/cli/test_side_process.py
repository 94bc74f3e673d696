"""Two sides compared by two processes: what is printed is what one prints, and neither outlives the other."""

import os
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.analysis.diff.cutting import TENTHS, cut, recording
from tests.analysis.diff.editing import bundled
from tests.analysis.diff.test_connection_counts import BUSY, ONE, capture
from tests.cases import cases
from tests.cli.test_commands import kdissect
from tests.cli.test_workers import HEEDING
from tests.conftest import PCAPS
from tests.forked import run_module

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks")]

JAVA, OTHER = bundled("compare-java-1"), bundled("compare-librdkafka-1")
CONNECT = [str(recording(f"connect-{release}", "plain-1")) for release in ("3.4", "4.3")]
KAFKA_GO = [str(recording(f"kafka-go{release}", "plain-1")) for release in ("", "-0.4.40")]


def with_two_processes(*words: str, befalls: str = "nothing") -> subprocess.CompletedProcess[bytes]:
    """`kdissect` in the environment of its other tests."""
    environment = os.environ | {"NO_COLOR": "1", "COLUMNS": "100"}
    return run_module("tests.cli.two_sides", [befalls, *words], environment)


def assert_equal(*words: str) -> None:
    one, two = kdissect(*words), with_two_processes(*words)
    assert (two.returncode, two.stdout, two.stderr) == (one.returncode, one.stdout, one.stderr)
    assert b"no such file" not in one.stderr


@pytest.mark.long
@cases(
    "words",
    [
        (JAVA, OTHER, "-f", "json"),
        (JAVA, bundled("compare-java-2"), "-f", "text"),
        (JAVA, OTHER, "-f", "markdown", "--b", "conn > 2", "--client-b", "sarama"),
        (JAVA, OTHER, "-f", "json", "--match", "A:1=B:2"),
        (*CONNECT, "-f", "json"),
        (*KAFKA_GO, "-f", "json"),
    ],
)
def test_two_processes_print_what_one_does(words: tuple[str, ...]) -> None:
    assert_equal("diff", *words)


@pytest.mark.long
def test_rows_are_asked_for_in_the_process_that_has_them(tmp_path: Path) -> None:
    """As where parts have not the whole of their connections, and where one side opened one more."""
    whole, late = recording("java-4.3", "plain-1"), cut(recording("java-4.3", "plain-1"), 3, TENTHS, tmp_path)
    assert_equal("diff", str(whole), late, "-f", "json")
    assert_equal("diff", late, cut(whole, 0, 6, tmp_path), "-f", "json")
    one_more = capture(tmp_path, "more", BUSY), capture(tmp_path, "one", ONE)
    assert_equal("diff", *one_more)
    assert_equal("diff", *one_more[::-1])
    assert with_two_processes("diff", *one_more).stdout.startswith(b"No differences")


@pytest.mark.long
def test_problems_of_both_files_come_in_their_order(tmp_path: Path) -> None:
    for name, source in (("a", JAVA), ("b", OTHER)):
        data = Path(source).read_bytes()
        (tmp_path / name).write_bytes(data[:-7])
    empty = Path(JAVA).read_bytes()[:28]  # a section without packets
    (tmp_path / "none").write_bytes(empty)
    a, b, none = (str(tmp_path / name) for name in ("a", "b", "none"))
    for words in ((a, b), (a, none), (none, b), (none, none)):
        assert_equal("diff", *words)
    assert with_two_processes("diff", a, b).stderr.count(b"kdissect: ") >= 2


@pytest.mark.exhaustive
def test_all_bundled_captures_are_compared_alike() -> None:
    for a, b in pairwise(sorted(map(str, PCAPS.rglob("*.pcapng*")))):
        assert_equal("diff", a, b, "-f", "json")


@pytest.mark.long
@cases(("befalls", "words"), [("killed", b"the process that reads it has ended"), ("mistaken", b"a mistake")])
def test_a_process_that_fails_is_reported(befalls: str, words: bytes) -> None:
    done = with_two_processes("diff", JAVA, OTHER, befalls=befalls)
    assert (done.returncode, done.stdout) == (2 if befalls == "killed" else 1, b"")
    assert words in done.stderr


@pytest.mark.long
def test_an_interrupt_ends_both_quietly() -> None:
    command = [sys.executable, "-m", "tests.cli.two_sides", "waits", "diff", JAVA, OTHER, "-f", "text"]
    words = [sys.executable, "-c", HEEDING, *command]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"waiting\n"
        process.send_signal(signal.SIGINT)  # the parent alone: it ends the other
        assert process.wait(60) == 130
        assert process.stderr.read() == b""  # the other holds it, too: it has ended
