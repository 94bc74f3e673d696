"""Progress bars on stderr, on a terminal, while a capture is read or analyzed."""

import sys
from collections.abc import Iterable
from typing import Final, Protocol

from dissector.capture_session import Capture, Progress
from dissector.core.text import counted

ROWS_PER_STEP: Final = 1 << 14
"""Rows that are examined together, where nobody waits for a step: the more, the less each row costs."""
MIN_BYTES: Final = 1 << 25
"""Bytes of a capture below which reading is too quick for a bar."""


class ProgressStep(Protocol):
    """A step of work: `done` of `total`, in any unit."""

    @property
    def done(self) -> int: ...

    @property
    def total(self) -> int: ...


def read_with_progress(capture: Capture, steps: Iterable[Progress] | None = None) -> None:
    """Read a capture to its end; or take the steps in which another process reads it."""
    steps = capture.read() if steps is None else steps
    if not _shows_bar(capture):
        for _ in steps:
            pass
        return
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=capture.pipeline.total)
        for step in steps:
            bar.update(task, completed=step.done, description=counted(step.exchanges, "exchange"))


def examine_with_progress(capture: Capture) -> None:
    """Examine the rest of the rows that were read."""
    if _shows_bar(capture):
        step_with_progress(capture.findings.examine(step=ROWS_PER_STEP), "analyzing")
        return
    for _ in capture.findings.examine(step=ROWS_PER_STEP):
        pass


def _shows_bar(capture: Capture) -> bool:
    return capture.pipeline.total >= MIN_BYTES and sys.stderr.isatty()


def step_with_progress(steps: Iterable[ProgressStep], description: str) -> None:
    """Take all steps, with a bar on a terminal."""
    if not sys.stderr.isatty():
        for _ in steps:
            pass
        return
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description)
        for step in steps:
            bar.update(task, completed=step.done, total=step.total)
