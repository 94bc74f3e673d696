"""`python -m tools.fuzz.screen [--minutes M] [--seed S] [--first N]`: random keys, clicks, drags, wheels, sizes and
bytes that no terminal sends, until a screen comes down.

Session `n` of seed `s` opens the same screen and sends the same input on every machine; when its threads answer
differs. Input comes as a terminal sends it: no event waits for the one before. The exit code is 1 if a session failed.
"""

import argparse
import asyncio
import faulthandler
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from textual import events
from textual.binding import Binding
from textual.dom import DOMNode
from textual.message import Message
from textual.pilot import Pilot
from textual.widgets import Input

from tools.fuzz.screens import random_screen
from tui.app import KDissectApp
from tui.terminal_app import typed_events

EVENTS: Final = 150
SIZES: Final = ((20, 6), (40, 12), (60, 20), (80, 24), (120, 40), (200, 60))
SLOW: Final = 60
"""Seconds after which the stacks of a session are printed, and again: it is slow, or the machine is busy."""
HANGS: Final = 600
"""Seconds after which one that does not end is one that hangs: the process ends."""
LEAVES: Final = frozenset({"ctrl+q", "ctrl+c", "ctrl+z"})
"""Keys that end a session without having shown anything."""
PLAIN: Final = ("escape", "escape", "enter", "enter", "tab", "shift+tab", "up", "down", "left", "right", "space",
                "backspace", *"abcdefghijklmnoprstuvwxyz0123456789", "q")  # fmt: skip
PASTES: Final = ("topic", "api == Fetch && error", "latency > 1ms", "1", "((", "é\u200b", "x\ny", "request.topics.name")
PIECES: Final = (
    b"\x1b", b"\x1b[", b"\x1b[<", b"0;3;4M", b"M", b";", b"1;5", b"~", b"\x1b[200~", b"\x1b[201~", b"\x1bO",
    b"\x1b[48;", b"\x1b[?2026;", b"$y", b"u", b"99999999999", b"\xfc", b"\xc3", b"\xe2\x82", b"\xf0\x9f", b"\x80",
)  # fmt: skip
"""Of what terminals send, and of letters that are no UTF-8, whole and cut."""


def bound_keys(kind: type[DOMNode] = DOMNode) -> Iterator[str]:
    """Yield each key that some part of the application has."""
    for each in kind.__dict__.get("BINDINGS", ()):
        keys = each.key if isinstance(each, Binding) else each[0]
        yield from (key.strip() for key in keys.split(","))
    for subclass in kind.__subclasses__():
        yield from bound_keys(subclass)


def random_bytes(chance: random.Random) -> bytes:
    """Bytes as a terminal may send them that is set to another encoding, or is none."""
    if chance.random() < 0.3:
        return chance.randbytes(chance.randint(1, 40))
    return b"".join(chance.choices(PIECES, k=chance.randint(1, 8)))


class Session:
    """One application, and the input that it gets."""

    def __init__(self, seed: int, number: int) -> None:
        self.chance = random.Random(f"{seed} {number}")
        self.keys = sorted(set(bound_keys()) - LEAVES)
        self.sent: list[str] = []
        self.size = (80, 24)

    async def run(self) -> None:
        """Raises what brought the application down."""
        chance = self.chance
        with ExitStack() as opened:
            screen, what = random_screen(chance, opened)
            self.sent.append(what)
            app = KDissectApp(screen)
            self.size = chance.choice(SIZES)
            async with app.run_test(size=self.size, notifications=True, tooltips=True) as pilot:
                for _ in range(EVENTS):
                    if not app.is_running or app._exception is not None or not app.screen_stack:
                        break
                    await self.step(pilot)
                if app.is_running and app._exception is None:
                    await pilot.pause()

    async def step(self, pilot: Pilot[None]) -> None:
        """Send one key, movement or size; wait for its effect now and then, and mostly not."""
        chance, [what] = self.chance, self.chance.choices(
            ("key", "plain", "click", "drag", "wheel", "size", "paste", "bytes"), (40, 25, 18, 6, 6, 2, 3, 3)
        )  # fmt: skip
        if what in ("key", "plain"):
            key = chance.choice(self.keys if what == "key" else PLAIN)
            for _ in range(chance.choice((1, 1, 1, 1, 2, 30))):
                self.press(pilot, key)
        elif what == "paste":
            self.send(pilot, events.Paste(chance.choice(PASTES)))
        elif what == "size":
            self.resize(pilot)
        elif what == "bytes":
            self.typed(pilot, random_bytes(chance))
        else:
            self.mouse(pilot, what)
        pause = chance.random()
        if pause < 0.2:
            await pilot.pause()
        else:
            await asyncio.sleep(0 if pause < 0.7 else 0.03)

    def typed(self, pilot: Pilot[None], data: bytes) -> None:
        """Send what the terminal's driver makes of bytes, but for the keys that `press` leaves out."""
        for event in typed_events(data):
            named = isinstance(event, events.Key) and (event.key in LEAVES or isinstance(pilot.app.focused, Input))
            if not named:
                self.send(pilot, event)

    def send(self, pilot: Pilot[None], event: Message) -> None:
        self.sent.append(repr(event))
        driver = pilot.app._driver
        assert driver is not None
        driver.process_message(event)

    def press(self, pilot: Pilot[None], key: str) -> None:
        if isinstance(pilot.app.focused, Input) and key in ("slash", "tilde", "full_stop"):
            return  # a path that is typed stays in the folder of the session
        character = key if len(key) == 1 else " " if key == "space" else None
        self.send(pilot, events.Key(key, character))

    def resize(self, pilot: Pilot[None]) -> None:
        width, height = self.size = self.chance.choice(SIZES)
        driver = pilot.app._driver
        driver._size = self.size
        self.sent.append(f"size {self.size}")
        pilot.app.post_message(events.Resize(pilot.app.size.with_width(width).with_height(height), pilot.app.size))

    def mouse(self, pilot: Pilot[None], what: str) -> None:
        x, y = self.place()
        if what == "wheel":
            kind = self.chance.choice((events.MouseScrollUp, events.MouseScrollDown))
            for _ in range(self.chance.choice((1, 3, 20))):
                self.send(pilot, self.at(kind, x, y, 0))
            return
        for _ in range(self.chance.choice((1, 1, 2, 3)) if what == "click" else 1):
            self.send(pilot, self.at(events.MouseDown, x, y, 1))
            for _ in range(self.chance.choice((1, 3, 8)) if what == "drag" else 0):
                x, y = self.place()
                self.send(pilot, self.at(events.MouseMove, x, y, 1))
            self.send(pilot, self.at(events.MouseUp, x, y, 1))

    def place(self) -> tuple[int, int]:
        """Return any cell; more often one where panes begin."""
        return self.chance.randrange(self.size[0]), self.chance.randrange(self.size[1])

    def at(self, kind: type[events.MouseEvent], x: int, y: int, button: int) -> events.MouseEvent:
        return kind(None, x, y, 0, 0, button, False, False, False, x, y)


class Cost(NamedTuple):
    """What a session took. The CPU's seconds come first, as machines are busy."""

    cpu: float
    seconds: float
    what: str

    @property
    def words(self) -> str:
        return f"slowest {self.cpu:.1f} s of CPU, {self.seconds:.1f} s in all ({self.what})"


def run(seed: int, minutes: float, first: int) -> Counter[str]:
    """Run sessions until the time is over; return how often each failure was seen."""
    failures: Counter[str] = Counter()
    until, number, slowest = time.monotonic() + 60 * minutes, first, Cost(0.0, 0.0, "")
    while time.monotonic() < until:
        faulthandler.dump_traceback_later(SLOW, repeat=True)
        signal.alarm(HANGS)
        session, start, cpu = Session(seed, number), time.monotonic(), time.process_time()
        try:
            asyncio.run(session.run())
        except Exception as error:  # whatever it is, it is what we look for
            last = traceback.extract_tb(error.__traceback__)[-1]
            what = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"
            failures[what] += 1
            if failures[what] == 1:
                traceback.print_exception(error)
                print(f"session {number} of seed {seed}, after:", *session.sent[:1], *session.sent[-12:], sep="\n  ")
        what = f"session {number}, {' '.join(session.sent[:1])}"
        slowest = max(slowest, Cost(time.process_time() - cpu, time.monotonic() - start, what))
        number += 1
        if number % 10 == 0:
            print(f"{number - first} sessions, {slowest.words}, failures {failures.total()}", flush=True)
    faulthandler.cancel_dump_traceback_later()
    signal.alarm(0)
    print(f"{number - first} sessions, {slowest.words}")
    for what, count in failures.most_common():
        print(f"{count} times: {what}")
    return failures


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz.screen", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="the same seed sends the same input")
    parser.add_argument("--first", type=int, default=0, help="the number of the first session")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_STATE_HOME"] = folder
        os.chdir(folder)  # what is exported goes there
        failures = run(given.seed, given.minutes, given.first)
        os.chdir("/")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
