"""Rows printed by several processes: the output is that of one, and none ends in silence."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases import cases
from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS
from tests.forked import PipedProgram, run_module
from tests.traffic import capture_of, conversation, exchanges

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks workers")

PRINT = """
import os, signal, sys
import numpy as np
from dissector.cli.workers import CHUNK, WorkerError, print_rows
def render(start, stop):
    for number in range(start, stop):
        {meets}
        yield b"row %d\\n" % number * 100
try:
    print_rows(render, {count}, lambda start, stop: np.full(stop - start, CHUNK // 3), {workers})
except WorkerError as error:
    sys.exit(str(error))
"""
HEEDING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""A program that heeds interrupts, also where tests run in the background, and a shell has them ignored."""


def printed(count: int, workers: int, meets: str = "pass") -> subprocess.CompletedProcess[bytes]:
    words = PRINT.format(count=count, workers=workers, meets=meets)
    return subprocess.run([sys.executable, "-c", words], capture_output=True, timeout=60, check=False)


def with_three_workers(*words: str) -> subprocess.CompletedProcess[bytes]:
    """`kdissect` in the environment of its other tests."""
    environment = os.environ | {"NO_COLOR": "1", "COLUMNS": "100"}
    return run_module("tests.cli.three_workers", words, environment)


def rows(count: int) -> bytes:
    return b"".join(b"row %d\n" % number * 100 for number in range(count))


@pytest.mark.slow
@pytest.mark.parametrize(("count", "workers"), [(0, 2), (1, 2), (101, 3), (64, 5), (3, 16)])
def test_rows_are_printed_in_order(count: int, workers: int) -> None:
    done = printed(count, workers)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == rows(count)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("meets", "message"),
    [
        ("if number == 50: raise ValueError('a mistake')", b"a mistake"),
        ("if number == 50: os.kill(os.getpid(), signal.SIGKILL)", b"killed by signal 9"),
    ],
)
def test_a_worker_that_fails_is_reported_and_no_later_row_is_printed(meets: str, message: bytes) -> None:
    done = printed(100, 3, meets)
    assert done.returncode == 1
    assert message in done.stderr
    assert b"not complete" in done.stderr
    assert rows(50).startswith(done.stdout)


@pytest.mark.long
@pytest.mark.slow
@cases("form", ["json", "text", "tree"])
def test_a_capture_is_printed_as_by_one_process(form: str) -> None:
    files = [str(PCAPS / "java-transactions.pcapng"), str(PCAPS / "compare-librdkafka-1.pcapng")]
    words = ["show", *files, "-f", form]
    one, three = kdissect(*words), with_three_workers(*words)
    assert one.stdout.count(b"\n") > 100
    assert three.stdout == one.stdout
    assert three.stderr == one.stderr == b""


@pytest.mark.long
@pytest.mark.slow
def test_a_reader_that_goes_away_ends_all_of_them_quietly(tmp_path: Path) -> None:
    path = capture_of(tmp_path, conversation(exchanges(12_000)))
    with PipedProgram("tests.cli.three_workers", "show", path, "-f", "json") as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == 0
        # The workers hold stderr too: that it ends means that they have.
        assert process.stderr.read() == ""


@pytest.mark.exhaustive
@pytest.mark.slow
def test_an_interrupt_ends_all_of_them_quietly(tmp_path: Path) -> None:
    path = capture_of(tmp_path, conversation(exchanges(12_000)))
    command = [sys.executable, "-m", "tests.cli.three_workers", "show", path, "-f", "json"]
    words = [sys.executable, "-c", HEEDING, *command]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.send_signal(2)  # the parent alone: its workers are its own business
        assert process.wait(60) == 130
        assert process.stderr.read() == b""


INTERRUPT = """
import _thread, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)
def interrupt(waiter):
    while sys._current_frames()[waiter].f_code.co_name != "_wait":
        time.sleep(0.01)
    time.sleep(0.1)
    _thread.interrupt_main()
threading.Thread(target=interrupt, args=(threading.get_ident(),), daemon=True).start()
"""
"""Interrupts the parent while it waits for its workers, but no call of it; also where interrupts are ignored, as where
tests run in the background."""


@pytest.mark.long
def test_an_interrupt_just_before_the_parent_waits_is_not_lost() -> None:
    """Python sees a signal behind the call that it came before: here one that interrupts no call at all."""
    words = INTERRUPT + PRINT.format(count=100, workers=2, meets="signal.pause()")
    words = words.replace("except WorkerError", "except KeyboardInterrupt:\n    sys.exit(130)\nexcept WorkerError")
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


SLICED = """
import os, signal
import numpy as np
from dissector.cli.workers import print_rows
signal.signal(signal.SIGALRM, signal.default_int_handler)
rows = b"row" * (1 << 24)
def render(start, stop):
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    yield rows[1:]  # takes far longer, and is no call
try:
    print_rows(render, 1, lambda start, stop: np.zeros(stop - start, np.int64), 1)
except KeyboardInterrupt:
    os._exit(130)
"""


def test_an_interrupt_just_before_rows_are_written_is_not_lost() -> None:
    """Python looks for it where a function begins: what blocks must not begin before."""
    with subprocess.Popen([sys.executable, "-c", SLICED], stdout=subprocess.PIPE) as process:  # nobody reads
        try:
            assert process.wait(20) == 130
        finally:
            process.kill()
