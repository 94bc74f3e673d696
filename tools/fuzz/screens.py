"""The screens that random input is sent to: of one capture, of two compared, of a file that grows, of live packets."""

import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from textual.screen import Screen

from dissector.analysis.diff import DiffSide
from dissector.capture import GrowingFile
from dissector.capture.live import CaptureSettings, Recording, recording_source
from dissector.capture_session import Capture, Progress
from tests.capture.live.loopback import broker, can_capture
from tests.traffic import request
from tui.screens.diff_screen import DiffScreen
from tui.screens.live_screen import LiveScreen
from tui.screens.main_screen import MainScreen

PCAPS: Final = Path(__file__).parents[2] / "pcaps"
LARGEST: Final = 3 << 20
"""Bytes of a capture that a session opens: more would be time spent reading."""
GROWING: Final = "growing.pcapng"


class Slow(Capture):
    """A capture whose reading pauses: rows appear while keys are pressed."""

    def read(self, *, sort: bool = True) -> Iterator[Progress]:
        for progress in super().read(sort=sort):
            yield progress
            time.sleep(0.05)


def random_screen(chance: random.Random, opened: ExitStack) -> tuple[Screen[None], str]:
    """A screen, and what it shows. `opened` closes it."""
    files = sorted(str(path) for path in PCAPS.glob("*.pcapng") if path.stat().st_size < LARGEST)
    paths = chance.sample(files, 2)
    way = chance.random()
    if way < 0.1 and can_capture():
        return _live(chance, opened), "live packets of the loopback interface"
    if way < 0.25:
        return MainScreen(opened.enter_context(_growing(Path(paths[0]), chance))), f"{paths[0]}, growing"
    kind = chance.choice((Capture, Slow))
    captures = [opened.enter_context(kind([path])) for path in paths]
    if way < 0.5:
        return DiffScreen(*(DiffSide(each, name) for each, name in zip(captures, "ab", strict=True))), ", ".join(paths)
    return MainScreen(captures[0]), paths[0]


def _growing(source: Path, chance: random.Random) -> Capture:
    """A file to which another process appends: each time that it is looked at there is more; now and then it is cut."""
    data, path = source.read_bytes(), Path(GROWING)
    pieces = chance.randint(2, 60)
    step = 1 + len(data) // pieces
    shrinks = chance.randrange(pieces) if chance.random() < 0.3 else -1
    path.write_bytes(b"")
    grown = 0

    def ended() -> bool:
        nonlocal grown
        with path.open("ab") as file:
            file.write(data[grown * step : (grown + 1) * step])
            if grown == shrinks:
                file.truncate(step * grown // 2)
        grown += 1
        return grown > pieces

    return Capture([GrowingFile(str(path), ended)])


def _live(chance: random.Random, opened: ExitStack) -> LiveScreen:
    """Clients and a server, on the loopback interface."""
    port = opened.enter_context(broker())

    def begin(wanted: CaptureSettings) -> tuple[Capture, Recording, CaptureSettings]:
        recording = opened.enter_context(Recording(wanted))
        capture = opened.enter_context(Capture([recording_source(recording)]))
        opened.callback(recording.stop)
        return capture, recording, wanted

    done = threading.Event()
    threading.Thread(target=_talk, args=(port, random.Random(chance.random()), done), daemon=True).start()
    opened.callback(done.set)
    return LiveScreen(*begin(CaptureSettings("lo", (port,), "", promiscuous=False, path="")), begin)


def _talk(port: int, chance: random.Random, done: threading.Event) -> None:
    """Connect, send requests, or what is none, and leave, until `done`."""
    while not done.is_set():
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
                for number in range(chance.choice((1, 5, 50))):
                    key, body = chance.choice((3, 3, 0, 18, 999)), chance.choice((bytes(4), chance.randbytes(40)))
                    client.sendall(request(number, api_key=key, body=body))
                    if chance.random() < 0.9:
                        client.recv(1 << 16)
                    done.wait(chance.choice((0, 0, 0.05)))
        except OSError:
            done.wait(0.1)  # the server is gone, or closed the connection
