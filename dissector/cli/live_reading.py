"""Reads a recording while it is made, and shows rows to whoever counts or watches them.

Where nobody looks back, a ring is read by one capture after the other, each of some of its files, and each continues
the one before it: rows, streams and findings go on as if it were one, and what is over is forgotten, in memory and on
disk. All rows of a capture are taken before the next one begins.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from dissector.capture.live import Recording, RingPipes, recording_source
from dissector.capture.live.local_processes import Pair
from dissector.capture.process_notes import Process
from dissector.capture_session import Capture
from dissector.capture_session.process_watch import ProcessWatch
from dissector.capture_session.stage_pipeline import Source
from dissector.core.arrays import Int64
from dissector.core.process_memory import collect

if TYPE_CHECKING:
    from dissector.cli.metering import Metering
    from dissector.core.object_graph import Nodes

FORGOTTEN_BYTES: Final = 64 << 20
"""Bytes of files after which what is over is forgotten: a fraction of a second every some hundred thousand rows."""

TOGETHER_SECONDS: Final = 0.1
"""Rows that complete within this time are taken together: to examine 60 takes two thirds of the time that 300 take."""
_WAIT_SECONDS: Final = 0.02
NO_ROWS: Final[Int64] = np.zeros(0, np.int64)


class LiveReading:
    """What reads. `capture` is the one that reads now."""

    def __init__(
        self,
        recording: Recording,
        open_capture: "Callable[[Source, Nodes | None], Capture]",
        find_processes: Callable[[Set[Pair]], Mapping[Pair, Process]] | None = None,
        meter: "Metering | None" = None,
        *,
        forgets: bool = False,
    ) -> None:
        """`find_processes` finds those at the ends of connections. It `forgets` only what a ring has."""
        self._recording = recording
        self._open_capture, self._find_processes, self._meter = open_capture, find_processes, meter
        self._pipes = RingPipes(recording, FORGOTTEN_BYTES) if forgets and recording.is_ring else None
        self._watchers = ExitStack()
        source = recording_source(recording) if self._pipes is None else self._pipes.begin()
        self.capture = self._opened(source, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._watchers.close()
        self.capture.close()
        if self._pipes is not None:
            self._pipes.close()

    def completed_rows(self) -> Iterator[tuple[Capture, Int64]]:
        """Yield what `Capture.completed_rows` does, each time with the capture whose rows they are. Whoever holds on to
        that capture when asking for more has its memory kept beside that of the next one."""
        while True:
            for rows in together(self.capture.completed_rows(self._goes_on)):
                yield self.capture, rows
            if self._pipes is None or not self._pipes.goes_on:
                return
            while self._meter is not None and not self._meter.has_counted_all():
                time.sleep(_WAIT_SECONDS)
                yield self.capture, NO_ROWS
            state = self._ended()
            del self.capture
            collect(0)  # before the next one takes as much again
            self.capture = self._opened(self._pipes.begin(), state)
            del state  # tens of thousands of nodes

    def _goes_on(self) -> bool:
        return self._pipes is not None and self._pipes.goes_on

    def _opened(self, source: Source, state: "Nodes | None") -> Capture:
        capture = self._open_capture(source, state)
        if self._find_processes is not None:
            self._watchers.enter_context(ProcessWatch(capture, self._recording.comment, self._find_processes))
        if self._meter is not None:
            self._watchers.enter_context(self._meter.of(capture, self._recording))
        return capture

    def _ended(self) -> "Nodes":
        """Close the capture, all of whose rows are taken; return what continues it. Its parts know each other, and are
        large: they don't wait for the collector."""
        capture = self.capture
        self._watchers.close()
        if capture.findings.examination is not None:
            for _ in capture.findings.examine():
                pass
        state = capture.incremental.checkpoint()
        capture.close()
        return state


def together(steps: Iterable[Int64]) -> Iterator[Int64]:
    """Yield, for each step, the rows since the last ones; none where some were yielded just now."""
    held: list[Int64] = []
    yielded = -math.inf
    for rows in steps:
        held += [rows] if len(rows) else []
        if held and time.monotonic() - yielded >= TOGETHER_SECONDS:
            yield np.sort(np.concatenate(held))
            held, yielded = [], time.monotonic()
        else:
            yield NO_ROWS
    if held:
        yield np.sort(np.concatenate(held))
