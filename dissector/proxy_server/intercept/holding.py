"""The messages that wait in the proxy's process.

Invariants:
  * what waits is bounded, in number and in bytes: what comes beyond goes on, and is counted;
  * each message goes on by itself at its time limit, unless it is decided about before;
  * what was done is a note in the recording (`capture/injection_notes.py`), so that nobody blames a broker for it.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from dissector.capture.held_messages import HeldMessage, Interception
from dissector.capture.injection_notes import CLOSED, InjectionNote
from dissector.core.times import SECOND
from dissector.protocol.message_layout import PREFIX, REQUEST_ID, RESPONSE_ID, key_and_version
from dissector.protocol.schema.loader import api_name
from dissector.proxy_server.hooks import Action, Close, Connection, Drop, FrameHead, Hold, Pass, Replace
from dissector.proxy_server.intercept.rules import NAME

MOST_HELD: Final = 200
MOST_BYTES: Final = 64 << 20
"""Of all frames that wait."""
LONGEST_NOTE: Final = 150
"""Characters of what was edited."""


class HeldFrame:
    """One message that waits: a `Waiter`."""

    def __init__(self, frames: "HeldFrames", shown: HeldMessage, frame: bytes) -> None:
        self._frames = frames
        self.shown = shown
        self.frame = frame
        self._release: Callable[[Action], object] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, release: Callable[[Action], object]) -> None:
        """As `Waiter` says."""
        self._release = release
        self.wait(self._frames.limit)

    def abandon(self) -> None:
        """As `Waiter` says."""
        self._end()

    def wait(self, limit: float) -> None:
        """Go on by itself after so many seconds from now on."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(limit, self._late)
        self.shown = self.shown._replace(until_ns=time.time_ns() + round(limit * SECOND))
        self._frames.on_change()

    def decide(self, action: Callable[[str], Action], words: str) -> None:
        """Let an action be carried out, which is made of its comment; `words` say what it is, behind the time."""
        release = self._release
        assert release is not None
        waited = f"{(time.time_ns() - self.shown.since_ns) / SECOND:.1f} s"
        self._end()
        note = InjectionNote(self.shown.client, self.shown.correlation_id, NAME, f"held for {waited}, {words}")
        release(action(note.comment()))

    def name(self) -> str:
        """Say which message it is, in a few words."""
        side = "request" if self.shown.from_client else "response"
        _, _, key, _, number, client, *_ = self.shown
        return f"{api_name(key)} {side} of {client} (correlation id {number})"

    def _late(self) -> None:
        self._frames.say(f"a {self.name()} went on unchanged: it was held for the limit, {self._frames.limit:g} s")
        self.decide(lambda comment: Pass(comment=comment), "then sent on at the time limit")

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._frames.forget(self)


class HeldFrames:
    """All of them, by their numbers."""

    def __init__(self, limit: float, on_change: Callable[[], object], say: Callable[[str], object]) -> None:
        """`limit` is in seconds; `on_change` is called when what waits is another; `say` has a line for the user."""
        self.limit = limit
        self.on_change = on_change
        self.say = say
        self._text: str | None = None
        """What is to be held, as it was typed; None for nothing."""
        self._held: dict[int, HeldFrame] = {}
        self._bytes = 0
        self._count = 0
        self._missed = 0

    @property
    def state(self) -> Interception:
        """What is held."""
        return Interception(self._text, self.limit, self._missed, tuple(each.shown for each in self._held.values()))

    def change(self, text: str | None) -> None:
        """Something else is to be held from now on."""
        self._text = text
        self.on_change()

    def hold(self, connection: Connection, head: FrameHead, frame: bytes) -> Hold | None:
        """Let a whole frame wait; None if too much waits."""
        if len(self._held) >= MOST_HELD or self._bytes + len(frame) > MOST_BYTES:
            self._missed += 1
            self.on_change()
            return None
        self._count += 1
        now_ns = time.time_ns()
        shown = HeldMessage(
            self._count, head.from_client, head.api_key, head.api_version, head.correlation_id, connection.client,
            connection.broker, head.client_id, len(frame), now_ns, now_ns,
        )  # fmt: skip
        held = self._held[shown.number] = HeldFrame(self, shown, frame)
        self._bytes += len(frame)
        return Hold(held)

    def find(self, number: int) -> HeldFrame | None:
        """Return the message with a number, if it still waits."""
        return self._held.get(number)

    def forget(self, held: HeldFrame) -> None:
        """It waits no longer."""
        if self._held.pop(held.shown.number, None) is not None:
            self._bytes -= len(held.frame)
            self.on_change()

    def release_all(self, words: str = "then sent on") -> None:
        """Let all go on as they are."""
        for each in [*self._held.values()]:
            if self.find(each.shown.number) is each:  # the one before may have ended its connection
                each.decide(lambda comment: Pass(comment=comment), words)


def sent_on(held: HeldFrame) -> None:
    """Let it go on as it is."""
    held.decide(lambda comment: Pass(comment=comment), "then sent on")


def dropped(held: HeldFrame) -> None:
    """Let it never come: a request is never answered. The connection stays."""
    held.decide(Drop, "then dropped")


def closed(held: HeldFrame) -> None:
    """Close the connection in its place."""
    held.decide(Close, CLOSED)


def edited(held: HeldFrame, frame: bytes, paths: str) -> str:
    """Let another frame go on; return why not, or nothing. `paths` name the fields that differ."""
    if not _fits(held.frame, frame, is_request=held.shown.from_client):
        return "the edited message is none that can take its place"
    words = f"{paths[:LONGEST_NOTE]}…" if len(paths) > LONGEST_NOTE else paths
    held.decide(lambda comment: Replace(frame, comment), f"then edited: {words}")
    return ""


def _fits(frame: bytes, other: bytes, *, is_request: bool) -> bool:
    """Whether a frame has its own size, and the other's correlation id, API and version."""
    if len(other) < RESPONSE_ID.stop or int.from_bytes(other[:PREFIX], "big") != len(other) - PREFIX:
        return False
    if not is_request:
        return other[RESPONSE_ID] == frame[RESPONSE_ID]
    return key_and_version(other) == key_and_version(frame) and other[REQUEST_ID] == frame[REQUEST_ID]
