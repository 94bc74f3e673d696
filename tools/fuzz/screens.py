"""The screens that random input is sent to: of one capture, of two compared, of a file that grows, of live packets.

A third of the captures are hostile: made to cost much, or with lost, repeated, damaged packets, logins, records.
"""

import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Final

from textual.screen import Screen

from dissector.analysis.diff import DiffSide
from dissector.capture import CaptureError, GrowingFile
from dissector.capture.live import CaptureSettings, Recording, recording_source
from dissector.capture_session import Capture, Progress
from tests.capture.live.loopback import broker, can_capture
from tests.traffic import request
from tools.benchmarks.hostile_shapes import SHAPES
from tools.fuzz import seeds
from tools.fuzz.kinds import KINDS
from tui.screens.diff_screen import DiffScreen
from tui.screens.live_screen import LiveScreen
from tui.screens.main_screen import MainScreen

PCAPS: Final = Path(__file__).parents[2] / "pcaps"
LARGEST: Final = 3 << 20
"""Bytes of a capture that a session opens: more would be time spent reading."""
GROWING: Final = "growing.pcapng"
HOSTILE: Final = "hostile-{}"
HOSTILE_KINDS: Final = ("capture", "secrets", "redacted", "sections", "both", "orphans", "encrypted", "transcripts")
"""Kinds of damaged captures, by their names in `KINDS`."""
HOSTILE_BYTES: Final = (2_000, 20_000, 200_000)
_SEEDS: Final = cache(seeds.load)


class Slow(Capture):
    """A capture whose reading pauses: rows appear while keys are pressed."""

    def read(self, *, sort: bool = True) -> Iterator[Progress]:
        for progress in super().read(sort=sort):
            yield progress
            time.sleep(0.05)


def random_screen(chance: random.Random, opened: ExitStack) -> tuple[Screen[None], str]:
    """A screen, and what it shows. `opened` closes it."""
    files = sorted(str(path) for path in PCAPS.glob("*.pcapng") if path.stat().st_size < LARGEST)
    pair = chance.sample(files, 2)
    made = [_hostile(chance, n) if chance.random() < 0.35 else (path, path) for n, path in enumerate(pair)]
    paths, names = [path for path, _ in made], [name for _, name in made]
    way = chance.random()
    if way < 0.1 and can_capture():
        return _live(chance, opened), "live packets of the loopback interface"
    if way < 0.25:
        return MainScreen(opened.enter_context(_growing(Path(paths[0]), chance))), f"{names[0]}, growing"
    kind = chance.choice((Capture, Slow))
    captures = [_opened(kind, path, opened) for path in paths]
    if way < 0.5:
        return DiffScreen(*(DiffSide(each, name) for each, name in zip(captures, "ab", strict=True))), ", ".join(names)
    return MainScreen(captures[0]), names[0]


def _hostile(chance: random.Random, number: int) -> tuple[str, str]:
    """A capture that is made to cost much or is damaged: its path, and which it is."""
    path = HOSTILE.format(number)
    if chance.random() < 0.5:
        name, size = chance.choice(list(SHAPES)), chance.choice(HOSTILE_BYTES)
        Path(path).write_bytes(SHAPES[name](size, random.Random(chance.random())))
        return path, f"{name}, {size} bytes"
    kind = chance.choice(HOSTILE_KINDS)
    Path(path).write_bytes(KINDS[kind].make(_SEEDS(), chance).data)
    return path, f"a damaged capture: {kind}"


def _opened(kind: type[Capture], path: str, opened: ExitStack) -> Capture:
    """The capture, or another one in place of what is none."""
    try:
        return opened.enter_context(kind([path]))
    except CaptureError:
        return opened.enter_context(kind([str(PCAPS / "java.pcapng")]))


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
