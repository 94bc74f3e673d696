"""Rows printed by all cores: workers, forked once the index is complete, share it and print in turn.

A worker renders a chunk of rows, waits until it is its turn, writes, and passes the turn on: bytes go straight to where
they belong. Chunks are dealt out in order, so all of them cost about the same.

Invariants:
  * the output is that of one process, whatever their number;
  * a worker holds the output of one chunk;
  * none goes on when another one has failed: its turn never comes, and rows are not left out silently.
"""

import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Final, NoReturn

import numpy as np

from dissector.core.arrays import Int64

Render = Callable[[int, int], Iterator[bytes]]
"""What stdout gets for the rows from one number to before another."""
Sizes = Callable[[int, int], Int64]
"""How many bytes of the capture these rows have, `(n,)`."""

ROW_COST: Final = 2048
"""What a row costs beside its bytes, counted in bytes."""
STRETCH: Final = 1 << 16
"""Rows whose sizes are looked at together."""
CHUNK: Final = 256 << 10
PAYS: Final = 64
"""Chunks below which one process is done before others could help."""
MOST: Final = 16
_TOLD: Final = 1
"""Exit codes of workers: what went wrong is on stderr; nobody reads; the one before did not finish."""
_PIPE_CLOSED: Final = 3
_NO_TURN: Final = 4
_NOTHING: Final = 5
"""The last worker's, where none had anything to write."""
_NONE_YET, _SOME = b"!", b"+"


class WorkerError(RuntimeError):
    """A worker ended before its work did."""


def print_rows(render: Render, count: int, sizes: Sizes, workers: int | None = None, head: bytes = b"") -> bool:
    """Write the first `count` rows to stdout, `head` before the first that there is; whether there was one. Raises
    `WorkerError`, or `BrokenPipeError` when nobody reads any more."""
    if workers != 1:
        chunks = _chunks(count, sizes)
        workers = min(workers or _workers(len(chunks) - 1), len(chunks) - 1)
        if workers > 1:
            return _Ring(render, chunks, workers, head).run()
    printed = False
    for piece in render(0, count):
        sys.stdout.buffer.write(piece if printed else head + piece)
        printed = True
    return printed


def _chunks(count: int, sizes: Sizes) -> list[int]:
    """Where chunks begin, and the end of the last."""
    begins, before = [0], 0
    for start in range(0, count, STRETCH):
        after = before + np.cumsum(sizes(start, min(start + STRETCH, count)) + ROW_COST)
        edges = start + np.flatnonzero(np.diff(after // CHUNK, prepend=before // CHUNK))
        begins += edges[edges > 0].tolist()
        before = int(after[-1])
    return [*begins, count]


def _workers(chunks: int) -> int:
    """How many processes are worth their while. Forking is for Linux, and for a process of one thread."""
    if chunks < PAYS or sys.platform != "linux" or threading.active_count() > 1:
        return 1
    try:
        sys.stdout.fileno()
    except (AttributeError, io.UnsupportedOperation):  # somebody collects the output in this process
        return 1
    return min(len(os.sched_getaffinity(0)), MOST)


class _Ring:
    """Workers around a ring of pipes; who has the token writes. The token says whether anybody has written yet."""

    def __init__(self, render: Render, chunks: list[int], count: int, head: bytes) -> None:
        self._render = render
        self._chunks = chunks
        self._head = head
        self._count = count
        self._parent = os.getpid()
        self._pipes = [os.pipe() for _ in range(count)]

    def run(self) -> bool:
        """Fork, wait for all; whether they have written."""
        sys.stdout.flush()
        sys.stderr.flush()
        gc.freeze()  # what the workers share is not written to by their collectors
        running: set[int] = set()
        ends: list[int] = []
        try:
            for number in range(self._count):
                running.add(self._fork(number))
            os.write(self._pipes[0][1], _NONE_YET)
            self._close_pipes(keep=())
            while running:
                pid, status = os.wait()
                if pid in running:
                    running.remove(pid)
                    ends.append(os.waitstatus_to_exitcode(status))
        finally:
            gc.unfreeze()
            for pid in running:
                os.kill(pid, signal.SIGTERM)
            for pid in running:
                os.waitpid(pid, 0)
        return self._judge(ends)

    def _fork(self, number: int) -> int:
        try:
            pid = os.fork()
        except OSError as error:
            raise WorkerError(f"no worker could be started: {error.strerror}") from None
        if not pid:
            self._work(number)
        return pid

    def _judge(self, ends: list[int]) -> bool:
        if _PIPE_CLOSED in ends:
            raise BrokenPipeError
        for end in ends:
            if end < 0:
                raise WorkerError(f"a worker was killed by signal {-end}: the output is not complete")
        if not {0, _NOTHING}.issuperset(ends):
            raise WorkerError("a worker failed: the output is not complete")
        return _NOTHING not in ends

    def _close_pipes(self, keep: tuple[int, ...]) -> None:
        for end in (end for pipe in self._pipes for end in pipe if end not in keep):
            os.close(end)

    def _work(self, number: int) -> NoReturn:
        """The life of a worker; it ends here, and runs nothing that its parent has to do at its own end."""
        code = _TOLD
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            turn, following = self._pipes[number][0], self._pipes[(number + 1) % self._count][1]
            self._close_pipes(keep=(turn, following))
            code = self._print(number, turn, following)
        except BrokenPipeError:
            code = _PIPE_CLOSED
        except Exception:  # a bug of ours: Python prints it, and the parent ends with one plain line
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)

    def _print(self, number: int, turn: int, following: int) -> int:
        last = len(self._chunks) - 2
        for chunk in range(number, last + 1, self._count):
            out = b"".join(self._render(self._chunks[chunk], self._chunks[chunk + 1]))
            token = os.read(turn, 1)
            if not token or os.getppid() != self._parent:
                return _NO_TURN
            if out:
                _write(self._head + out if token == _NONE_YET else out)
                token = _SOME
            if chunk == last:
                return 0 if token == _SOME else _NOTHING
            try:
                os.write(following, token)
            except BrokenPipeError:  # whose turn it is has failed, and says so itself
                return _NO_TURN
        return 0


def _write(out: bytes) -> None:
    """All of it, whatever a pipe takes at a time."""
    left = memoryview(out)
    while left:
        left = left[os.write(sys.stdout.fileno(), left) :]
