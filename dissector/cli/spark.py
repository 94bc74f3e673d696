"""Spark sessions for commands: progress on the terminal, and errors as one line.

The progress bar is gone when the first row is printed.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dissector.capture import CaptureError
from dissector.cli.errors import print_error
from dissector.cli.options import Cluster
from dissector.core.extras import is_installed, missing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.progress import Progress


class StageProgress:
    """The progress of stages on a terminal, as a `pipeline.ingest.Report`."""

    def __init__(self, bar: "Progress | None" = None, first: str = "") -> None:
        self._bar = bar
        self._task = bar.add_task(first, total=None) if bar is not None else None

    def __call__(self, stage: str, done: int, total: int) -> None:
        from dissector.pipeline.ingest import NO_EXECUTORS

        if stage == NO_EXECUTORS:
            print_error(stage)
        elif self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=stage, completed=done, total=total or None)

    def stop(self) -> None:
        """Remove the bar before anything else is printed."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def require_spark() -> None:
    """Raise `CaptureError` if Spark's Python side is not installed."""
    if not is_installed("pyspark"):
        raise CaptureError(missing("this needs Spark's Python side", "spark"))


@contextmanager
def spark_session(cluster: Cluster, *, is_for_python: bool = False) -> "Iterator[tuple[SparkSession, StageProgress]]":
    """Start a Spark session with a progress bar. Raises `CaptureError` if Spark can't start, or a job fails."""
    require_spark()
    from dissector.pipeline.spark_session import JobError, NoSparkError, session

    try:
        with (
            progress_bar(cluster, "starting Spark") as bar,
            session(
                cluster.master, cluster.remote, cluster.settings, verbose=cluster.verbose, is_for_python=is_for_python
            ) as spark,
        ):
            yield spark, bar
    except (NoSparkError, JobError) as error:
        raise CaptureError(str(error)) from None


@contextmanager
def progress_bar(cluster: Cluster, first: str) -> Iterator[StageProgress]:
    """Show the progress of stages on a terminal; `first` is the first one."""
    if cluster.verbose or not sys.stderr.isatty():
        yield StageProgress()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    # `pipeline.spark_session` replaces stderr while Spark runs: rich must not redirect and restore it.
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as bar:
        yield StageProgress(bar, first)
