"""Print rows with all cores: workers, forked when the index is complete, share it and write in turn.

A worker renders a chunk of rows, waits for its turn, writes to stdout, and passes the turn on. Chunks cost about the
same, and are assigned to workers round-robin.

Invariants:
  * the output is that of one process, whatever the number of workers;
  * a worker holds the output of one chunk;
  * when a worker fails, the turn of the others never comes: no row is skipped silently.
"""

import gc
import io
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Final, NoReturn

import numpy as np

from dissector.core.arrays import Int64

Render = Callable[[int, int], Iterator[bytes | memoryview]]
"""Renders the rows from one number to before another."""
Sizes = Callable[[int, int], Int64]
"""Returns the bytes of the capture in the rows from one number to before another, `(n,)`."""

ROW_COST: Final = 256
"""Cost of a row beside that of its bytes, in bytes: little, as many rows of few bytes are to be read together."""
ROWS_PER_BATCH: Final = 1 << 16
"""Rows whose sizes are read together."""
CHUNK: Final = 1 << 22
"""Cost of the rows of a chunk: the more, the less each row costs, as messages of one layout are read together."""
CHUNK_OF_LINES: Final = ROW_COST << 15
"""The same where nearly all rows are lines made of columns, whatever bytes they have: a line takes so little that only
many pay for a second process, which learns for itself what rows have in common."""
MIN_CHUNKS: Final = 8
"""Chunks below which one process is faster."""
MIN_CHUNKS_OF_JSON: Final = 32
"""The same where nearly all rows are JSON that the kernel writes, for a second process: below, it saves no time, as it
fills memory and learns what messages have in common for itself. With more cores `MIN_CHUNKS` are enough."""
MAX_WORKERS: Final = 16
LONGEST_WAIT: Final = 1
"""Seconds after which an interrupt is seen in any case."""
_FAILED: Final = 1
"""Exit code of a worker with an error, which is on stderr."""
_PIPE_CLOSED: Final = 3
"""Exit code of a worker when nobody reads the output."""
_NO_TURN: Final = 4
"""Exit code of a worker when the one before it did not finish."""
_NOTHING: Final = 5
"""Exit code of the last worker when none had output."""
_NONE_YET, _SOME = b"!", b"+"
"""Tokens: no worker has written yet; some worker has."""


class WorkerError(RuntimeError):
    """A worker ended before its work was done."""


def print_rows(
    render: Render,
    count: int,
    sizes: Sizes,
    workers: int | None = None,
    head: bytes = b"",
    chunk: int = CHUNK,
    least: int = MIN_CHUNKS,
) -> bool:
    """Write the first `count` rows to stdout, with `head` before the first output, in chunks of that cost, of which a
    second process needs `least`; return whether there was any output. Raises `WorkerError`, or `BrokenPipeError` if
    nobody reads."""
    if workers != 1:
        chunks = _chunks(count, sizes, chunk)
        workers = min(workers or _workers(len(chunks) - 1, least), len(chunks) - 1)
        if workers > 1:
            return _Ring(render, chunks, workers, head).run()
    printed = False
    for piece in render(0, count):
        if not printed:
            put(head)
        put(piece)
        printed = True
    return printed


def put(piece: bytes | memoryview) -> None:
    """Write to stdout. Python looks for interrupts where a function begins, and not before a call of its own: one that
    came while two megabytes were sliced would be seen when somebody has read them, which may be never."""
    sys.stdout.buffer.write(piece)


def _chunks(count: int, sizes: Sizes, chunk: int) -> list[int]:
    """Return the first row of each chunk, and the end of the last one."""
    begins, before = [0], 0
    for start in range(0, count, ROWS_PER_BATCH):
        after = before + np.cumsum(sizes(start, min(start + ROWS_PER_BATCH, count)) + ROW_COST)
        edges = start + np.flatnonzero(np.diff(after // chunk, prepend=before // chunk))
        begins += edges[edges > 0].tolist()
        before = int(after[-1])
    return [*begins, count]


def _workers(chunks: int, least: int) -> int:
    """Return how many processes pay: one if this one has few chunks to print."""
    most = most_workers()
    if chunks < (least if most <= 2 else MIN_CHUNKS):
        return 1
    try:
        sys.stdout.fileno()
    except (AttributeError, io.UnsupportedOperation):  # the output is collected in this process
        return 1
    return most


def most_workers() -> int:
    """Return how many processes may run. Only Linux is known to fork safely, and only a process with one thread."""
    if sys.platform != "linux" or threading.active_count() > 1:
        return 1
    return min(len(os.sched_getaffinity(0)), MAX_WORKERS)


class _Ring:
    """Workers on a ring of pipes: the one with the token writes. The token shows whether any worker has written."""

    def __init__(self, render: Render, chunks: list[int], count: int, head: bytes) -> None:
        self._render = render
        self._chunks = chunks
        self._head = head
        self._count = count
        self._parent = os.getpid()
        self._pipes = [os.pipe() for _ in range(count)]
        self._ended = os.pipe()

    def run(self) -> bool:
        """Fork, wait for all workers; return whether they have written anything."""
        sys.stdout.flush()
        sys.stderr.flush()
        gc.freeze()  # else the collectors of workers write to pages that all share
        running: list[int] = []
        exit_codes: list[int] = []
        try:
            running.extend(map(self._fork, range(self._count)))
            os.write(self._pipes[0][1], _NONE_YET)
            self._close_pipes(keep=(self._ended[0],))
            self._wait()
            while running:
                exit_codes.append(os.waitstatus_to_exitcode(os.waitpid(running[-1], 0)[1]))
                running.pop()
        finally:
            gc.unfreeze()
            for pid in running:
                os.kill(pid, signal.SIGTERM)
            for pid in running:
                os.waitpid(pid, 0)
            os.close(self._ended[0])
        return self._outcome(exit_codes)

    def _wait(self) -> None:
        """Wait until no worker has the pipe any more that shows its end. An interrupt that comes just before a call
        that waits is seen only behind that call, so the call must not wait for long."""
        ended = select.poll()
        ended.register(self._ended[0])
        while not ended.poll(LONGEST_WAIT * 1000):
            pass

    def _fork(self, number: int) -> int:
        try:
            pid = os.fork()
        except OSError as error:
            raise WorkerError(f"no worker could be started: {error.strerror}") from None
        if not pid:
            self._work(number)
        return pid

    def _outcome(self, exit_codes: list[int]) -> bool:
        """Return whether anything was written. Raises `WorkerError`, `BrokenPipeError`."""
        if _PIPE_CLOSED in exit_codes:
            raise BrokenPipeError
        for code in exit_codes:
            if code < 0:
                raise WorkerError(f"a worker was killed by signal {-code}: the output is not complete")
        if not {0, _NOTHING}.issuperset(exit_codes):
            raise WorkerError("a worker failed: the output is not complete")
        return _NOTHING not in exit_codes

    def _close_pipes(self, keep: tuple[int, ...]) -> None:
        for end in (end for pipe in (*self._pipes, self._ended) for end in pipe if end not in keep):
            os.close(end)

    def _work(self, number: int) -> NoReturn:
        """Run a worker and exit, without the exit handlers of the parent process."""
        code = _FAILED
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            turn, following = self._pipes[number][0], self._pipes[(number + 1) % self._count][1]
            self._close_pipes(keep=(turn, following, self._ended[1]))
            code = self._print(number, turn, following)
        except BrokenPipeError:
            code = _PIPE_CLOSED
        except Exception:  # a bug: Python prints it, and the parent prints one plain line
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)

    def _print(self, number: int, turn: int, following: int) -> int:
        last = len(self._chunks) - 2
        for chunk in range(number, last + 1, self._count):
            pieces = [piece for piece in self._render(self._chunks[chunk], self._chunks[chunk + 1]) if piece]
            token = os.read(turn, 1)
            if not token or os.getppid() != self._parent:
                return _NO_TURN
            if pieces:
                sys.stdout.buffer.writelines([self._head, *pieces] if token == _NONE_YET else pieces)
                sys.stdout.buffer.flush()
                token = _SOME
            pieces.clear()  # before the next ones are made
            if chunk == last:
                return 0 if token == _SOME else _NOTHING
            try:
                os.write(following, token)
            except BrokenPipeError:  # the next worker has failed, and reports it itself
                return _NO_TURN
        return 0
