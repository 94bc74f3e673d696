"""Side B of a comparison in a process of its own: that reads and profiles B while this one does the same with A.

It is forked when both captures are open, and none is read. It sends what came of reading, and then answers questions:
what the profile is, and what is asked of rows, which stay there.

Invariants:
  * what is printed, and the exit code, is what one process prints: an error over there is raised here where its answer
    is asked for;
  * it ends when the context is left, and when the process is gone that started it.
"""

import mmap
import os
import pickle
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, NoReturn, Self, TypeVar

import numpy as np

from dissector.analysis.diff import DiffSide
from dissector.analysis.diff.side_profile import SideProfile
from dissector.capture_session import Capture, Progress
from dissector.cli.errors import print_error
from dissector.cli.render.progress import read_with_progress
from dissector.cli.show import problems_of
from dissector.cli.workers import LONGEST_WAIT, WorkerError, most_workers

MIN_BYTES: Final = 4 << 20
"""Bytes of the smaller capture below which one process is as fast."""
STEP_SECONDS: Final = 0.1
"""Between two looks at how far reading is."""
Answer = TypeVar("Answer")
Profiling = Callable[[], SideProfile]


class ReadSide(NamedTuple):
    """What came of reading."""

    problems: list[str]
    """As `problems_of` returns them."""
    rows: int


def pays(a: Capture, b: Capture) -> bool:
    """Return whether a second process saves time."""
    return a is not b and min(a.pipeline.total, b.pipeline.total) >= MIN_BYTES and most_workers() > 1


class SideProcess:
    """Reads and profiles one side. Raises `WorkerError` if it ends before it is told to, and whatever it raised."""

    def __init__(self, side: DiffSide, profiling: Profiling) -> None:
        self._side = side
        self._parent = os.getpid()
        self._progress = np.frombuffer(mmap.mmap(-1, len(Progress._fields) * 8), np.int64)
        """Shared by both processes."""
        (answers, its_answers), (its_questions, questions) = os.pipe(), os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            self._pid = os.fork()
        except OSError as error:
            raise WorkerError(f"no process could be started: {error.strerror}") from None
        if not self._pid:
            os.close(answers)
            os.close(questions)
            self._work(side, profiling, its_answers, its_questions)
        os.close(its_answers)
        os.close(its_questions)
        self._answers, self._questions = os.fdopen(answers, "rb"), os.fdopen(questions, "wb")
        self._poll = select.poll()
        self._poll.register(answers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End it, whatever it is at."""
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        self._answers.close()
        with suppress(BrokenPipeError):
            self._questions.close()

    def read_rows(self) -> bool:
        """Wait until it has read the capture, and print as `show.read_rows` does; return whether it has rows."""
        read_with_progress(self._side.capture, self._steps())
        read: ReadSide = self._answer()
        for each in read.problems:
            print_error(each)
        return read.rows > 0

    def _steps(self) -> Iterator[Progress]:
        while not self._poll.poll(STEP_SECONDS * 1000):
            yield Progress(*self._progress.tolist())

    def profile(self) -> SideProfile:
        """Return the profile of the side, whose questions go there. To be called once, after `read_rows`."""
        found: SideProfile = self.ask(None)
        side = self._side
        return found.of(SideElsewhere(side.capture, side.label, side.filter, side.client, process=self))

    def ask(self, question: Callable[[DiffSide], Any] | None) -> Any:
        """Return the answer of the other process; None asks for the profile."""
        with suppress(BrokenPipeError):  # that it has died, its missing answer tells
            pickle.dump(question, self._questions)
            self._questions.flush()
        return self._answer()

    def _answer(self) -> Any:
        # An interrupt just before a call that waits is seen only behind it.
        while not self._poll.poll(LONGEST_WAIT * 1000):
            pass
        try:
            answer = pickle.load(self._answers)  # its own, through a pipe that nobody else has
        except (EOFError, pickle.UnpicklingError):
            raise WorkerError(f"{', '.join(self._side.capture.names)}: the process that reads it has ended") from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _work(self, side: DiffSide, profiling: Profiling, answers: int, questions: int) -> NoReturn:
        """Read, and answer, and exit without the exit handlers of the process that was forked."""
        code = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
            with os.fdopen(answers, "wb") as out, os.fdopen(questions, "rb") as asked:
                for answer in self._work_answers(side, profiling, lambda: pickle.load(asked)):
                    pickle.dump(answer, out)
                    out.flush()
        except (BrokenPipeError, EOFError):  # nobody asks any more
            code = 0
        except Exception:  # a bug: Python prints it, and the process that started this one a plain line
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)

    def _work_answers(
        self, side: DiffSide, profiling: Profiling, next_question: Callable[[], Callable[[DiffSide], Any] | None]
    ) -> Iterator[Any]:
        """Yield what came of reading, then an answer for each question; an error in place of what it kept from being
        found."""
        capture = side.capture
        try:
            for step in capture.read():
                self._progress[:] = step
                if os.getppid() != self._parent:
                    return
            yield ReadSide(problems_of(capture), len(capture))
            profile = profiling()
        except Exception as error:  # whatever it is: raised where the answer is asked for
            yield error
            return
        while True:
            question = next_question()
            yield profile if question is None else question(side)


@dataclass(frozen=True, slots=True)
class SideElsewhere(DiffSide):
    """A side whose capture another process has read: here it is not."""

    process: SideProcess = field(kw_only=True)

    def ask(self, question: Callable[[DiffSide], Answer]) -> Answer:
        answer: Answer = self.process.ask(question)
        return answer
