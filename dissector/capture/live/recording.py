"""Controls the capture process from the analyzing process: start, events, end.

A thread reads its events and opens each file at once: a file of a ring may be removed before it is read, but an open
file stays readable.

Invariants:
  * the capture process ends cleanly when this one ends, however it does: its standard input ends;
  * `next_path` gives every file that was begun, in order.
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
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from dissector.capture.errors import CaptureError
from dissector.capture.live import events
from dissector.capture.live.events import Event
from dissector.capture.live.settings import CaptureSettings

START_SECONDS: Final = 40
"""Each of the programs that may capture is waited for."""
END_SECONDS: Final = 30
LOWER_PRIORITY: Final = 5
_ROOT: Final = Path(__file__).parents[3]
"""Where the package is, for the capture process to find it."""


class Recording:
    """A running capture. Opening it waits for the first packet to be possible. Raises `CaptureError`.

    Without a `path` it is written to a file that has no name any more once it is open."""

    def __init__(self, wanted: CaptureSettings) -> None:
        self.engine = ""
        """What captures."""
        self.captured = 0
        """Packets in the files, as last reported."""
        self.dropped = 0
        """Packets that the kernel dropped, as last reported."""
        self._notes: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.failure = ""
        """Why it ended by itself."""
        self._raised = False
        self._kept = bool(wanted.path)
        self._is_ring = wanted.ring is not None
        self._files: queue.SimpleQueue[IO[bytes] | None] = queue.SimpleQueue()
        self._read: IO[bytes] | None = None
        self._started = threading.Event()
        self._over = threading.Event()
        self._since = time.monotonic()
        self._until: float | None = None
        if not self._kept:
            number, path = tempfile.mkstemp(prefix="kdissect-", suffix=".pcapng")
            os.close(number)
            wanted = CaptureSettings.from_json(json.dumps(json.loads(wanted.as_json()) | {"path": path}))
        self._process = self._run(wanted)
        self._ears = threading.Thread(target=self._listen, name="recording", daemon=True)
        self._ears.start()
        self._wait_for_start(wanted)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        if kind is None:
            self.join()

    @property
    def is_ring(self) -> bool:
        """Whether it is several files."""
        return self._is_ring

    @property
    def has_next(self) -> bool:
        """Whether the file that is read is whole: another one was begun, or all is over."""
        return not self._files.empty()

    @property
    def over(self) -> bool:
        """Whether all is written: no file grows any more."""
        return self._over.is_set()

    @property
    def stopping(self) -> bool:
        """Whether it was asked to end."""
        return self._until is not None

    @property
    def seconds(self) -> float:
        """How long it has captured."""
        return (self._until or time.monotonic()) - self._since

    def stop(self) -> None:
        """Ask it to end; what it holds is still written. May be called from a signal's handler, and twice."""
        if self._until is None:
            self._until = time.monotonic()
            assert self._process.stdin is not None
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def stop_after(self, seconds: float) -> None:
        """End it then."""
        timer = threading.Timer(seconds, self.stop)
        timer.daemon = True
        timer.start()

    def join(self) -> None:
        """Wait until all is written."""
        self._over.wait(END_SECONDS)

    def said(self) -> Iterator[str]:
        """What the capture process found worth saying since the last time."""
        while not self._notes.empty():
            yield self._notes.get()

    def next_path(self) -> str | None:
        """The next file that was begun, a path that leads to it whatever became of its name; None when there is none
        any more. Waits for it. A path is good until the next one is asked for."""
        if self._read is not None:
            self._read.close()
        self._read = self._files.get()
        return f"/dev/fd/{self._read.fileno()}" if self._read is not None else None

    def _run(self, wanted: CaptureSettings) -> subprocess.Popen[bytes]:
        path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
        command = [sys.executable, "-P", "-m", "dissector.capture.live.recorder", wanted.as_json()]
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | {"PYTHONPATH": path},
                start_new_session=True,  # Ctrl+C is for us alone, who then end it
            )
        except OSError as error:
            raise CaptureError(f"{sys.executable}: {(error.strerror or str(error)).lower()}") from None

    def _wait_for_start(self, wanted: CaptureSettings) -> None:
        began = self._started.wait(START_SECONDS)
        if began and self.engine:
            if not self._raised:
                os.nice(LOWER_PRIORITY)
            return
        self.stop()
        with contextlib.suppress(subprocess.TimeoutExpired):  # not killed: it may have a program of its own to end
            self._process.wait(END_SECONDS)
        if not self._kept:
            Path(wanted.path).unlink(missing_ok=True)
        raise CaptureError(self.failure or f"{wanted.interface}: the capture process does not answer")

    def _listen(self) -> None:
        """Hear it to its end."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._hear(json.loads(line))
        self._process.wait()
        self._files.put(None)
        if not self.stopping:
            self.failure = self.failure or "the capture process ended by itself"
            self.stop()
        self._over.set()
        self._started.set()

    def _hear(self, event: Event) -> None:
        match event["event"]:
            case events.FILE:
                self._take(Path(str(event["path"])))
            case events.STARTED:
                self.engine, self._raised = str(event["engine"]), bool(event["raised"])
                self._since = time.monotonic()
                self._started.set()
            case events.STATISTICS:
                self.captured, self.dropped = int(str(event["captured"])), int(str(event["dropped"]))
            case events.NOTE:
                self._notes.put(str(event["words"]))
            case events.FAILED:
                self.failure = str(event["words"])

    def _take(self, path: Path) -> None:
        file = path.open("rb")
        if not self._kept:
            path.unlink()
        self._files.put(file)
