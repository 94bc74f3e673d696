"""A progress bar on stderr while a capture is read or counted, for whoever watches a terminal and has to wait."""

import sys
from collections.abc import Iterable
from typing import Final, Protocol

from dissector.capture_session import Capture
from dissector.core.text import counted

WORTH_A_BAR: Final = 1 << 25
"""Bytes below which reading is over before a bar could be read."""


class ProgressStep(Protocol):
    """How far something is: so much of so much."""

    @property
    def done(self) -> int: ...

    @property
    def total(self) -> int: ...


def read_with_progress(capture: Capture) -> None:
    """Read it all."""
    if not _is_worth_a_bar(capture):
        for _ in capture.read():
            pass
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=capture.pipeline.total)
        for step in capture.read():
            bar.update(task, completed=step.done, description=counted(step.exchanges, "exchange"))


def examine_with_progress(capture: Capture) -> None:
    """Examine what was read, from where that stopped."""
    if _is_worth_a_bar(capture):
        step_with_progress(capture.examine(), "analyzing")
        return
    for _ in capture.examine():
        pass


def _is_worth_a_bar(capture: Capture) -> bool:
    return capture.pipeline.total >= WORTH_A_BAR and sys.stderr.isatty()


def step_with_progress(steps: Iterable[ProgressStep], words: str) -> None:
    """Take all steps; those that are many with a bar."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(words)
        for step in steps:
            bar.update(task, completed=step.done, total=step.total)
