"""The main screen while packets still come: rows appear, and the cursor goes along while it stands on the last one."""

import time
from collections import deque
from typing import Final

import numpy as np
from rich.text import Text
from textual.widgets import Static

from dissector.capture.live import Recording, Wanted, silence_words
from dissector.capture_file import Capture, Progress
from dissector.text import clean
from tui.screens.main import MainScreen

RATE_SECONDS: Final = 2.0
"""Over which exchanges a second are counted."""
PATIENCE: Final = 3
"""Seconds without a packet after which it is said what may be wrong."""


class LiveScreen(MainScreen):
    """Everything at one glance, as it happens."""

    SETTLED = False

    def __init__(self, capture: Capture, recording: Recording, wanted: Wanted) -> None:
        super().__init__(capture)
        self._recording = recording
        self._wanted = wanted
        self._steps: deque[tuple[float, int]] = deque()
        """When there were how many exchanges, of the last seconds."""
        self._seen = 0
        """Packets that are drawn."""
        self._waits = False
        """Whether the exchange that is looked at is still to be answered."""

    def _loaded(self, progress: Progress, done: bool) -> None:
        """A step further; often nothing is new."""
        now = time.monotonic()
        self._steps.append((now, len(self.capture)))
        while now - self._steps[0][0] > RATE_SECONDS:
            self._steps.popleft()
        self._progress, self._done = progress, done
        if progress.packets != self._seen or done:
            self._seen = progress.packets
            # Who looks at fields or bytes stays with that exchange; back in the list, G goes along again.
            looks = self.focused in (self._fields, self._bytes)
            self._list.show(len(self.capture), anew=True, along=not looks)
            self._look_again()
            self._grown(done=done)
        self._draw_title()
        self._draw_waiting()
        for words in (*self._recording.said(), *([self._recording.failure] if done else [])):
            if words:
                self.notify(words, markup=False, timeout=10)

    def _look_again(self) -> None:
        """The exchange that is looked at may have been answered."""
        if self._waits and self._is_complete(self.number):
            self._choose(self.number)

    def _choose(self, number: int) -> None:
        super()._choose(number)
        self._waits = len(self.capture) > 0 and not self._is_complete(number)

    def _is_complete(self, number: int) -> bool:
        return bool(self.capture.is_complete(np.array([number]))[0])

    def _draw_title(self) -> None:
        where = self._wanted.interface if self._wanted.expression else f"{self._wanted.interface}:{self._ports}"
        title = Text()  # styles of its parts alone: only the mark is red
        title.append("○ ended" if self._done else "● live", "dim" if self._done else "bold red")
        title.append(clean(f" {where}"), "bold").append(f" · {len(self.capture):,} exchanges")
        if not self._done and len(self._steps) > 1:
            (since, before), (now, count) = self._steps[0], self._steps[-1]
            title.append(f" · {(count - before) / max(now - since, 0.1):,.0f}/s")
        lost = self._recording.dropped
        title.append(f" · {lost:,} packets dropped", "bold red" if lost else "dim")
        state = f"with {self._recording.engine}"
        room = self.app.size.width - 2 - title.cell_len - len(state)
        if room > 0:
            title.append(" " * room).append(state, "dim")
        self.query_one("#title", Static).update(title)

    @property
    def _ports(self) -> str:
        return ",".join(map(str, self._wanted.ports))

    def _draw_waiting(self) -> None:
        """What is listened to, as long as there is nothing to show."""
        empty = self.query_one("#empty", Static)
        waiting = not len(self.capture)
        for selector in ("#list", "#lower"):
            self.query_one(selector).set_class(waiting, "hidden")
        if waiting:
            empty.update(Text(clean(self._waiting_words()), justify="center"))
        elif empty.has_class("shown"):
            self._list.focus()
        empty.set_class(waiting, "shown")

    def _waiting_words(self) -> str:
        if self.capture.packets:
            return f"{self.capture.packets:,} packets, {self.capture.connections:,} TCP connections, no Kafka so far"
        if self._recording.seconds < PATIENCE or self._done:
            return f"listening on {self._wanted.interface}, {self._wanted.filter_said}"
        return silence_words(self._wanted, self._recording.seconds)
