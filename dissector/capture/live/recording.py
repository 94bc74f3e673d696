"""Controls the capture process from the analyzing process: start, events, end.

A thread reads its events and opens each file at once: a file of a ring may be removed before it is read, but an open
file stays readable.

Invariants:
  * the capture process ends cleanly when this one ends, however it does: its standard input ends;
  * `next_path` returns every file that was begun, in order.
"""

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from dissector.capture.errors import CaptureError
from dissector.capture.live import events
from dissector.capture.live.events import Event
from dissector.capture.live.settings import CaptureSettings

START_SECONDS: Final = 40
"""Time for several capture programs to be tried in turn."""
END_SECONDS: Final = 30
_ROOT: Final = Path(__file__).parents[3]
"""The folder of the package, for the capture process's import path."""


class Recording:
    """A running capture. The constructor waits until capturing has started. Raises `CaptureError`.

    Without a `path` it is written to a temporary file, which is unlinked once it is open."""

    def __init__(self, settings: CaptureSettings) -> None:
        self.engine = ""
        """The program that captures."""
        self.captured = 0
        """Packets in the files, as last reported."""
        self.dropped = 0
        """Packets that the kernel dropped, as last reported."""
        self._messages: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.failure = ""
        """Why it ended by itself; empty if it did not."""
        self.has_priority = False
        """Whether the capture process has a higher priority than others."""
        self._is_saved = bool(settings.path)
        self._is_ring = settings.ring is not None
        self._files: queue.SimpleQueue[IO[bytes] | None] = queue.SimpleQueue()
        self._current_file: IO[bytes] | None = None
        self._started = threading.Event()
        self._ended = threading.Event()
        self._since = time.monotonic()
        self._until: float | None = None
        if not self._is_saved:
            number, path = tempfile.mkstemp(prefix="kdissect-", suffix=".pcapng")
            os.close(number)
            settings = replace(settings, path=path)
        self._process = self._run(settings)
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
            assert self._process.stdin is not None
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def comment(self, text: str) -> None:
        """Have a comment of one line written to the file. External programs that capture take none."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # it has ended
            self._process.stdin.write(text.encode() + b"\n")
            self._process.stdin.flush()

    def stop_after(self, seconds: float) -> None:
        """Call `stop` after so many seconds."""
        timer = threading.Timer(seconds, self.stop)
        timer.daemon = True
        timer.start()

    def join(self) -> None:
        """Wait until everything is written."""
        self._ended.wait(END_SECONDS)

    def messages(self) -> Iterator[str]:
        """Yield the messages for the user since the last call."""
        while not self._messages.empty():
            yield self._messages.get()

    def next_path(self) -> str | None:
        """Wait for the next file; return a path to it that works even if it was renamed or removed, or None if there
        are no more files. The path is valid until the next call."""
        if self._current_file is not None:
            self._current_file.close()
        self._current_file = self._files.get()
        return f"/dev/fd/{self._current_file.fileno()}" if self._current_file is not None else None

    def _run(self, settings: CaptureSettings) -> subprocess.Popen[bytes]:
        path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
        command = [sys.executable, "-P", "-m", "dissector.capture.live.recorder", settings.as_json()]
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | {"PYTHONPATH": path},
                start_new_session=True,  # Ctrl+C reaches this process only, which then stops the other
            )
        except OSError as error:
            raise CaptureError(f"{sys.executable}: {(error.strerror or str(error)).lower()}") from None

    def _wait_for_start(self, settings: CaptureSettings) -> None:
        began = self._started.wait(START_SECONDS)
        if began and self.engine:
            return
        self.stop()
        with contextlib.suppress(subprocess.TimeoutExpired):  # not killed: it may have to end a capture program
            self._process.wait(END_SECONDS)
        if not self._is_saved:
            Path(settings.path).unlink(missing_ok=True)
        raise CaptureError(self.failure or f"{settings.interface}: the capture process does not answer")

    def _listen(self) -> None:
        """Handle the events of the capture process until it ends."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._handle(json.loads(line))
        self._process.wait()
        self._files.put(None)
        if not self.stopping:
            self.failure = self.failure or "the capture process ended by itself"
            self.stop()
        self._ended.set()
        self._started.set()

    def _handle(self, event: Event) -> None:
        match event["event"]:
            case events.FILE:
                self._open_file(Path(str(event["path"])))
            case events.STARTED:
                self.engine, self.has_priority = str(event["engine"]), bool(event["raised"])
                self._since = time.monotonic()
                self._started.set()
            case events.STATISTICS:
                self.captured, self.dropped = int(str(event["captured"])), int(str(event["dropped"]))
            case events.NOTE:
                self._messages.put(str(event["words"]))
            case events.FAILED:
                self.failure = str(event["words"])

    def _open_file(self, path: Path) -> None:
        file = path.open("rb")
        if not self._is_saved:
            path.unlink()
        self._files.put(file)
