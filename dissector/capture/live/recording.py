"""Controls the capture process from the analyzing process: start, events, end.

A thread reads its events. Each file comes open: one of a ring may be removed before it is read, and this process may
have no right to go where it is.

Invariants:
  * the capture process ends cleanly when this one ends, however it does: its standard input ends;
  * `next_path` returns every file that was begun, in order.
"""

import contextlib
import json
import os
import queue
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import IO, Any, Final, Self, cast

from dissector.capture.errors import CaptureError
from dissector.capture.fault_counts import FaultCount, FiredFault
from dissector.capture.held_messages import HeldMessage, Interception
from dissector.capture.live import events
from dissector.capture.live.commands import RefusedError, command_line
from dissector.capture.live.events import Event
from dissector.capture.live.recorder_process import RecorderProcess, start_recorder
from dissector.capture.live.settings import RecordingSettings

START_SECONDS: Final = 40
"""Time for several capture programs to be tried in turn."""
END_SECONDS: Final = 30
ANSWER_SECONDS: Final = 10
"""How long a command may take."""
_EVENT_BYTES: Final = 1 << 16


class Recording:
    """A running capture, of a capture process that was started for it, or of one that is started now. The constructor
    waits until capturing has started. Raises `CaptureError`.

    Without a `path` it is written to a temporary file, which is unlinked once it is open."""

    def __init__(self, settings: RecordingSettings, process: RecorderProcess | None = None) -> None:
        self.engine = ""
        """The program that captures."""
        self.captured = 0
        """Packets in the files, as last reported."""
        self.dropped = 0
        """Packets that the kernel dropped, as last reported."""
        self.listening: list[tuple[str, str]] = []
        """Of a proxy, the addresses that clients get, in the order in which they were opened, each with the
        broker's."""
        self.faults: list[FaultCount] = []
        """Of a proxy, what became of its rules for faults, as last reported."""
        self.fired: list[FiredFault] = []
        """The last times that they fired, as last reported."""
        self.interception = Interception()
        """Of a proxy, what it holds until a person decides, as last reported."""
        self._asked: dict[int, queue.SimpleQueue[Mapping[str, Any] | None]] = {}
        """Commands that are not answered, by their numbers."""
        self._asks = 0
        self._asking = threading.Lock()
        self._messages: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
        """Lines, each with the event that it came with."""
        self.failure = ""
        """Why it ended by itself; empty if it did not."""
        self.has_priority = False
        """Whether the capture process has a higher priority than others."""
        self._is_ring = settings.ring is not None
        self._files: queue.SimpleQueue[IO[bytes] | None] = queue.SimpleQueue()
        self._current_file: IO[bytes] | None = None
        self._started = threading.Event()
        self._ended = threading.Event()
        self._since = time.monotonic()
        self._until: float | None = None
        self._process = process or start_recorder(settings)
        self._channel = self._process.channel
        self._listener = threading.Thread(target=self._listen, name="recording", daemon=True)
        self._listener.start()
        self._wait_for_start(settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        if kind is None:
            self.join()

    @property
    def pid(self) -> int:
        """The id of the recording process."""
        return self._process.pid

    @property
    def is_ring(self) -> bool:
        """Whether it writes a ring of files."""
        return self._is_ring

    @property
    def has_next(self) -> bool:
        """Whether the current file is complete: the next one was begun, or the capture has ended."""
        return not self._files.empty()

    @property
    def ended(self) -> bool:
        """Whether everything is written: no file grows any more."""
        return self._ended.is_set()

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._until is not None

    @property
    def seconds(self) -> float:
        """Duration of the capture so far."""
        return (self._until or time.monotonic()) - self._since

    def stop(self) -> None:
        """Stop capturing; packets already received are still written. May be called from signal handlers, and twice."""
        if self._until is None:
            self._until = time.monotonic()
            with contextlib.suppress(OSError):
                self._channel.shutdown(socket.SHUT_WR)

    def comment(self, text: str) -> None:
        """Have a comment of one line written to the file. External programs that capture take none."""
        with contextlib.suppress(OSError):  # it has ended
            self._channel.sendall(text.encode() + b"\n")

    def ask(self, command: str, **values: object) -> Mapping[str, Any]:
        """Have a proxy carry out a command (`commands.py`); return what it answers. Any thread may call it. Raises
        `RefusedError` with what the proxy says, or where it has ended."""
        answer: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
        with self._asking:
            self._asks += 1
            number = self._asks
            self._asked[number] = answer
            try:
                if self._ended.is_set():
                    raise OSError
                self._channel.sendall(command_line(number, command, values))
            except OSError:
                del self._asked[number]
                raise RefusedError("the proxy has ended") from None
        try:
            found = answer.get(timeout=ANSWER_SECONDS)
        except queue.Empty:
            raise RefusedError("the proxy does not answer") from None
        finally:
            self._asked.pop(number, None)
        if found is None:
            raise RefusedError("the proxy has ended")
        if "error" in found:
            raise RefusedError(str(found["error"]))
        return found

    def stop_after(self, seconds: float) -> None:
        """Call `stop` after so many seconds."""
        timer = threading.Timer(seconds, self.stop)
        timer.daemon = True
        timer.start()

    def join(self) -> None:
        """Wait until everything is written."""
        self._ended.wait(END_SECONDS)

    def tell(self, words: str) -> None:
        """Put a line for the user among the messages. Any thread may call it."""
        self._messages.put((events.NOTE, words))

    def messages(self, *, listening: bool = True) -> Iterator[str]:
        """Yield the messages for the user since the last call; with those that say where a proxy listens, or
        without."""
        while not self._messages.empty():
            event, words = self._messages.get()
            if listening or event != events.LISTENING:
                yield words

    def next_path(self) -> str | None:
        """Wait for the next file; return a path to it that works even if it was renamed or removed, or None if there
        are no more files. The path is valid until the next call."""
        if self._current_file is not None:
            self._current_file.close()
        self._current_file = self._files.get()
        return f"/dev/fd/{self._current_file.fileno()}" if self._current_file is not None else None

    def _wait_for_start(self, settings: RecordingSettings) -> None:
        began = self._started.wait(START_SECONDS)
        if began and self.engine:
            return
        self.stop()
        self._listener.join(END_SECONDS)  # not killed: it may have to end a capture program
        raise CaptureError(self.failure or f"{settings.title}: the recording process does not answer")

    def _listen(self) -> None:
        """Handle the events of the capture process until it ends."""
        begun, files = b"", list[int]()
        while True:
            try:
                data, opened, _, _ = socket.recv_fds(self._channel, _EVENT_BYTES, 1)
            except ConnectionResetError:  # it ended with a comment unread
                break
            if not data:
                break
            files += opened
            *lines, begun = (begun + data).split(b"\n")
            for line in lines:
                self._handle(json.loads(line), files)
        self._channel.close()
        self._process.wait()
        with self._asking:
            self._ended.set()
            for each in [*self._asked.values()]:
                each.put(None)
        self._files.put(None)
        if not self.stopping:
            self.failure = self.failure or "the capture process ended by itself"
            self.stop()
        self._ended.set()
        self._started.set()

    def _handle(self, event: Event, files: list[int]) -> None:
        """Take an event; those of files take the first of the files that came."""
        match event["event"]:
            case events.FILE:
                os.set_inheritable(files[0], False)
                self._files.put(os.fdopen(files.pop(0), "rb"))
            case events.STARTED:
                self.engine, self.has_priority = str(event["engine"]), bool(event["raised"])
                self._since = time.monotonic()
                self._started.set()
            case events.LISTENING:
                self.listening.append((str(event["address"]), str(event["broker"])))
                self._messages.put((events.LISTENING, str(event["words"])))
            case events.STATISTICS:
                self.captured, self.dropped = int(str(event["captured"])), int(str(event["dropped"]))
            case events.FAULTS:
                self.faults = fault_counts(event["counts"])
                self.fired = [FiredFault(*each) for each in cast(list[list[Any]], event["fired"])]
            case events.HELD:
                text, limit, missed, held = cast(list[Any], event["state"])
                self.interception = Interception(text, limit, missed, tuple(HeldMessage(*each) for each in held))
            case events.ANSWER:
                if (asked := self._asked.get(int(str(event["to"])))) is not None:
                    asked.put(event)
            case events.NOTE:
                self._messages.put((events.NOTE, str(event["words"])))
            case events.FAILED:
                self.failure = str(event["words"])


def fault_counts(counts: object) -> list[FaultCount]:
    """Return counts as they came."""
    return [FaultCount(*each) for each in cast(list[list[Any]], counts)]
