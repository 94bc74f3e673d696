"""`kdissect live` as rows ends by itself when nobody reads them any more, and what it captured is whole."""

import os
import select
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from tests.capture.live.loopback import broker, needs_rights, talk
from tests.cli.test_commands import KDISSECT
from tests.forked import PipedProgram
from tests.terminal import HANGS, Terminal, terminal

pytestmark = pytest.mark.slow


def children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def is_whole(path: Path, exchanges: int) -> bool:
    with Capture([str(path)]) as capture:
        return len(list(capture.exchanges())) == exchanges and not capture.problems


def hang_up(its: Terminal, port: int) -> None:
    its.hang_up()


def hang_up_and_talk_on(its: Terminal, port: int) -> None:
    """Rows come that can't be written."""
    its.hang_up()
    talk(port, 1, first=5)


def hang_up_with_a_signal(its: Terminal, port: int) -> None:
    """As a session's terminal does."""
    its.process.send_signal(signal.SIGHUP)
    its.hang_up()


@pytest.mark.long
@needs_rights
@pytest.mark.parametrize("form", ["text", pytest.param("json", marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("leave", [hang_up, hang_up_and_talk_on, hang_up_with_a_signal])
def test_it_ends_with_its_terminal(leave: Callable[[Terminal, int], None], form: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept.pcapng"
    with (
        broker() as port,
        terminal([*KDISSECT, "live", "-p", str(port), "-w", str(kept), "--format", form]) as its,
    ):
        its.until("capturing on")
        talk(port, 5)
        its.until("Metadata")
        [recorder] = map(os.pidfd_open, children(its.process.pid))
        leave(its, port)
        assert its.process.wait(HANGS) == 0
        assert select.select([recorder], [], [], HANGS)[0], "the capture process goes on"
        os.close(recorder)
    assert is_whole(kept, 5) or (leave is hang_up_and_talk_on and is_whole(kept, 6))


@needs_rights
def test_it_ends_with_its_reader_though_no_row_comes(tmp_path: Path) -> None:
    kept = tmp_path / "kept.pcapng"
    with broker() as port, PipedProgram(KDISSECT[-1], "live", "-p", str(port), "-w", str(kept), "--text") as process:
        assert "capturing on" in process.stderr.readline()
        talk(port, 5)
        assert "Metadata" in [process.stdout.readline() for _ in range(2)][1]
        [recorder] = map(os.pidfd_open, children(process.pid))
        process.stdout.close()
        assert process.wait(HANGS) == 0
        assert select.select([recorder], [], [], HANGS)[0], "the capture process goes on"
        os.close(recorder)
        assert "Traceback" not in process.stderr.read()
    assert is_whole(kept, 5)
