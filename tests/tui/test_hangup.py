"""A terminal that goes away, as when ssh drops, takes the program with it."""

import os
import select
import sys
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from tests.capture.live.loopback import broker, needs_rights, talk
from tests.terminal import HANGS, terminal
from tests.tui.main_driver import JAVA
from tui.run import GONE

pytestmark = pytest.mark.slow

KDISSECT = [sys.executable, "-m", "dissector.cli.main"]


def state(folder: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}


@pytest.mark.long
@pytest.mark.parametrize(
    "keys",
    [
        pytest.param("", id="list", marks=pytest.mark.exhaustive),
        pytest.param("?", id="help", marks=pytest.mark.exhaustive),
        pytest.param("\x06", id="search"),
    ],
)
def test_the_screen_ends_with_its_terminal(keys: str, tmp_path: Path) -> None:
    with terminal([*KDISSECT, JAVA], **state(tmp_path)) as its:
        its.until("100%")
        its.press(keys)
        its.hang_up()
        assert its.process.wait(HANGS) == GONE


def test_two_captures_beside_each_other_end_with_their_terminal(tmp_path: Path) -> None:
    with terminal([*KDISSECT, "diff", JAVA, JAVA], **state(tmp_path)) as its:
        its.until("Causes")
        its.hang_up()
        assert its.process.wait(HANGS) == GONE


@pytest.mark.long
@needs_rights
def test_a_capture_ends_in_order_when_the_terminal_goes(tmp_path: Path) -> None:
    out = tmp_path / "kept.pcapng"
    with broker() as port:
        command = [*KDISSECT, "live", "-p", str(port), "-w", str(out)]
        with terminal(command, **state(tmp_path)) as its:
            its.until("on lo, port")
            talk(port, 5)
            its.until("Metadata")
            [child] = Path(f"/proc/{its.process.pid}/task/{its.process.pid}/children").read_text().split()
            recorder = os.pidfd_open(int(child))
            its.hang_up()
            assert its.process.wait(HANGS) == GONE
            assert select.select([recorder], [], [], HANGS)[0], "the capture process goes on"
            os.close(recorder)
    with Capture([str(out)]) as capture:
        assert len(list(capture.exchanges())) == 5
        assert not capture.problems
