"""Progress of a job: the name of its stage, and how many of its tasks are done, polled from Spark. Under Spark Connect
there is only the name of the stage."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

from dissector.pipeline.ingest import Report

POLL_SECONDS: Final = 0.5
"""Seconds between two polls."""


@contextmanager
def stage(spark: SparkSession, name: str, report: Report) -> Iterator[None]:
    """Report the progress of a stage while the context lasts."""
    report(name, 0, 0)
    if not hasattr(spark, "_jsparkSession"):  # Spark Connect has no status tracker
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
        except Exception:  # the session or its JVM ends: the job reports that
            return
        counts = [(each.numCompletedTasks, each.numTasks) for each in running if each is not None]
        if counts:
            report(name, sum(done for done, _ in counts), sum(total for _, total in counts))
