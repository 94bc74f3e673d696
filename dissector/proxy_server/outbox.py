"""Sends events to the analyzing process without ever waiting for it: it may be stopped, and the relay goes on.

Invariants:
  * events come in order, whole, and files with theirs; of those that say how something is now (`LATEST`), only the
    newest waits, and what is waited for is bounded: notes beyond are left out, and counted in one;
  * where the other process has gone nothing is sent, and nothing raised.
"""

import asyncio
import json
import os
import select
import socket
from collections import deque
from typing import Final

from dissector.capture.live import events

LATEST: Final = frozenset((events.STATISTICS, events.FAULTS, events.HELD))
MOST_LINES: Final = 1_000
MOST_BYTES: Final = 32 << 20
"""Of what waits; answers beyond are refused by what asked for them taking its time to read."""
_NEVER_LEFT_OUT: Final = frozenset((events.FILE, events.FAILED, events.ENDED, events.STARTED, events.LISTENING))


class Outbox:
    """What is to be sent."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._lines: deque[tuple[str, bytes, int | None]] = deque()
        self._bytes = 0
        self._begun = False
        """Whether a part of the first line was sent."""
        self._left_out = 0
        self._is_watching = False
        self._is_gone = False

    def send(self, event: str, *, file: int | None = None, **values: object) -> None:
        """Send an event, now or as soon as it is taken, with an open file to read, which the caller may close."""
        if self._is_gone:
            return
        if event in LATEST:
            self._forget(event)
        line = json.dumps({"event": event} | values).encode() + b"\n"
        full = len(self._lines) >= MOST_LINES or self._bytes + len(line) > MOST_BYTES
        if full and event not in _NEVER_LEFT_OUT and event not in LATEST:
            self._left_out += 1
            return
        self._add(event, line, None if file is None else os.dup(file))
        self.flush()

    def _add(self, event: str, line: bytes, file: int | None) -> None:
        self._lines.append((event, line, file))
        self._bytes += len(line)

    def _forget(self, event: str) -> None:
        """Leave out one that is no longer true, unless it has begun."""
        for at, (waiting, line, _) in enumerate(self._lines):
            if waiting == event and (at or not self._begun):
                del self._lines[at]
                self._bytes -= len(line)
                return

    def flush(self) -> None:
        """Send as much as is taken."""
        while self._lines and not self._is_gone:
            event, line, file = self._lines[0]
            try:
                if file is None:
                    sent = self._channel.send(line, socket.MSG_DONTWAIT)
                else:
                    sent = socket.send_fds(self._channel, [line], [file], socket.MSG_DONTWAIT)
                    os.close(file)
            except BlockingIOError:
                self._watch()
                return
            except OSError:  # it has gone
                self._is_gone = True
                break
            self._bytes -= sent
            if sent < len(line):
                self._lines[0], self._begun = (event, line[sent:], None), True
                continue
            self._lines.popleft()
            self._begun = False
            if not self._lines and self._left_out:
                words = f"{self._left_out:,} messages were left out: they were not taken in time"
                self._left_out = 0
                self._add(events.NOTE, json.dumps({"event": events.NOTE, "words": words}).encode() + b"\n", None)
        self._unwatch()

    def drain(self, seconds: float) -> None:
        """Send all, at the end, if it is taken in time."""
        self.flush()
        while self._lines and not self._is_gone and select.select([], [self._channel], [], seconds)[1]:
            self.flush()

    def _watch(self) -> None:
        if not self._is_watching:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:  # not yet, or no longer: `flush` and `drain` go on
                return
            loop.add_writer(self._channel, self.flush)
            self._is_watching = True

    def _unwatch(self) -> None:
        if self._is_watching:
            self._is_watching = False
            asyncio.get_running_loop().remove_writer(self._channel)
