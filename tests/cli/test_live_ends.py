"""How long rows are still read and printed after Ctrl+C, where reading is behind what was captured."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
import pytest

from dissector.capture.live import CaptureSettings, RingSettings
from dissector.cli import live
from dissector.core.arrays import Int64

NO_ROWS: Int64 = np.zeros(0, np.int64)


class BehindCapture:
    """Reading that never comes to its end, or after so many steps; before step 3 the user presses Ctrl+C."""

    packets = 7

    def __init__(self, steps: int, presses: int = 1) -> None:
        self.left, self.presses, self.read = steps, presses, 0

    @property
    def capture(self) -> "BehindCapture":
        return self

    def completed_rows(self) -> Iterator[tuple["BehindCapture", Int64]]:
        while self.read < self.left:
            self.read += 1
            if self.read in range(3, 3 + self.presses):
                os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            yield self, NO_ROWS


class EndedRecording:
    """The process that captures has ended as soon as it was told to."""

    engine, captured, seconds = "nothing", 1_007, 1.0

    def __init__(self) -> None:
        self.stopping = self.ended = False

    def stop(self) -> None:
        self.stopping = self.ended = True

    def messages(self) -> list[str]:
        return []


Print = Callable[..., None]


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> Print:
    monkeypatch.setattr(live, "is_output_closed", lambda: False)

    def run(
        capture: BehindCapture, *, path: str = "", ring: RingSettings | None = None, reads_all: bool = False,
        seconds: float = 0.2,
    ) -> None:  # fmt: skip
        monkeypatch.setattr(live, "LAST_SECONDS", seconds)
        output = live.LiveOutput(on_screen=False)
        settings = CaptureSettings("lo", (), "", promiscuous=False, path=path, ring=ring)
        live._print(cast(Any, capture), cast(Any, EndedRecording()), settings, output, reads_all=reads_all)

    return run


def test_the_rest_is_left_to_the_file_after_a_while(printed: Print, capsys: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    printed(BehindCapture(1 << 30), path="kept.pcapng")
    assert time.monotonic() - began < 10
    lines = capsys.readouterr().err.splitlines()
    assert lines[-2:] == [
        "kdissect: 1,000 packets still to be read, for 0.2 s at most; press Ctrl+C again to skip them",
        "kdissect: 1,000 packets not analyzed: kept.pcapng has them",
    ]


def test_a_ring_has_the_last_of_them(printed: Print, capsys: pytest.CaptureFixture[str]) -> None:
    printed(BehindCapture(1 << 30), path="kept.pcapng", ring=RingSettings(kilobytes=10))
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.endswith("not analyzed: the files of kept.pcapng have them, as far as the ring keeps them")


def test_without_a_file_they_are_gone(printed: Print, capsys: pytest.CaptureFixture[str]) -> None:
    printed(BehindCapture(1 << 30))
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "kdissect: 1,000 packets not analyzed: -w FILE would have kept them"


def test_what_is_read_in_time_is_not_left_out(printed: Print, capsys: pytest.CaptureFixture[str]) -> None:
    capture = BehindCapture(8)
    printed(capture, seconds=600)
    assert capture.read == 8
    assert "not analyzed" not in capsys.readouterr().err


@pytest.mark.long
def test_what_is_judged_is_read_to_its_end(printed: Print, capsys: pytest.CaptureFixture[str]) -> None:
    capture = BehindCapture(60)
    printed(capture, reads_all=True)
    assert capture.read == 60
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "kdissect: 1,000 packets still to be read; press Ctrl+C again to skip them"


@pytest.mark.parametrize("reads_all", [False, True])
def test_the_second_interrupt_ends_at_once(printed: Print, reads_all: bool) -> None:
    capture = BehindCapture(1 << 30, presses=2)
    with pytest.raises(KeyboardInterrupt):
        printed(capture, reads_all=reads_all)
    assert capture.read == 4
