"""An interrupt ends `kdissect live` at any moment, also one that a shell started with interrupts ignored."""

import signal
import subprocess
import time
from pathlib import Path
from typing import Final

import pytest

from tests.capture.live.loopback import needs_rights
from tests.cli.test_commands import KDISSECT
from tests.conftest import some_of

pytestmark = [pytest.mark.slow, needs_rights]
HANGS: Final = 60


def ignores_interrupts(process: int) -> bool:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    [mask] = [int(line.split()[1], 16) for line in lines if line.startswith("SigIgn:")]
    return bool(mask >> signal.SIGINT - 1 & 1)


@pytest.mark.parametrize("seconds", some_of([0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.2, 2], 0, 0.2, 0.8))
@pytest.mark.parametrize("number", some_of([signal.SIGINT, signal.SIGTERM], signal.SIGINT))
def test_it_ends_at_a_signal_so_many_seconds_after_it_has_begun(number: int, seconds: float, tmp_path: Path) -> None:
    """It has begun once it takes interrupts: while Python itself starts, what the shell has set holds."""
    words = [*KDISSECT, "live", "--text", "-w", str(tmp_path / "kept.pcapng")]

    def ignore() -> None:  # as a shell does for `command &` in a script
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, preexec_fn=ignore) as process:
        deadline = time.monotonic() + HANGS / 2
        while ignores_interrupts(process.pid) and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(seconds)
        process.send_signal(number)
        try:
            _, err = process.communicate(timeout=HANGS / 2)
        finally:
            process.kill()
    assert process.returncode in (0, -number)
    assert "Traceback" not in err


@pytest.mark.long
def test_a_command_in_the_background_of_a_script_ends() -> None:
    """With time enough for Python to start."""
    script = '"$@" & sleep 1.2; kill -INT $!; wait $!; echo $?'
    words = [*KDISSECT, "live", "--text"]
    done = subprocess.run(["sh", "-c", script, "sh", *words], capture_output=True, text=True, timeout=HANGS, check=True)
    assert done.stdout.splitlines()[-1] in ("0", str(128 + signal.SIGINT))
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_a_hang_up_that_is_ignored_ends_nothing() -> None:
    """As under nohup."""

    def ignore() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    words = [*KDISSECT, "live", "--text"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, preexec_fn=ignore) as process:
        assert process.stderr is not None
        assert "capturing on" in process.stderr.readline()
        process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANGS) == 0
