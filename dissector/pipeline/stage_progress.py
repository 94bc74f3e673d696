"""How far a job is: its stage, which says how much there is, and tasks done of how many, asked of Spark while it runs.
Under Spark Connect only the stage."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

Report = Callable[[str, int, int], None]
"""Told how far a stage is: its name, tasks done, of how many; 0 where nobody knows."""
POLL_SECONDS: Final = 0.5
"""Seconds between two looks."""


@contextmanager
def stage(spark: SparkSession, name: str, report: Report) -> Iterator[None]:
    """While it lasts, whoever wants to know is told how far it is."""
    report(name, 0, 0)
    if not hasattr(spark, "_jsparkSession"):  # Spark Connect: the server tells nobody
        yield
        return
    done = threading.Event()
    watch = threading.Thread(target=_watch, args=(spark, name, report, done), daemon=True)
    watch.start()
    try:
        yield
    finally:
        done.set()
        watch.join()


def _watch(spark: SparkSession, name: str, report: Report, done: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    while not done.wait(POLL_SECONDS):
        try:
            running = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
        except Exception:  # the session ends, or its JVM did: whoever waits for the job says so
            return
        told = [(each.numCompletedTasks, each.numTasks) for each in running if each is not None]
        if told:
            report(name, sum(count for count, _ in told), sum(count for _, count in told))
