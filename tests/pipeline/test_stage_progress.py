"""What is said of a job on a cluster while it runs: a job that no executor takes is told, once."""

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyspark", reason="NOT TESTED with pyspark: it is not installed")

from dissector.cli.spark import StageProgress
from dissector.pipeline import spark_session
from dissector.pipeline.ingest import NO_EXECUTORS

PATIENCE = 3


class Info(NamedTuple):
    """As Spark's tracker has it."""

    numCompletedTasks: int  # noqa: N815  # the name is Spark's
    numActiveTasks: int  # noqa: N815  # the name is Spark's
    numTasks: int = 2  # noqa: N815  # the name is Spark's


class Tracker:
    """A job at each poll; it ends behind the last one."""

    def __init__(self, polls: Sequence[Info], done: threading.Event) -> None:
        self.sparkContext = self
        self._polls, self._done = list(polls), done

    def statusTracker(self) -> "Tracker":  # noqa: N802  # the name is Spark's
        return self

    def getActiveStageIds(self) -> list[int]:  # noqa: N802  # the name is Spark's
        return [1]

    def getStageInfo(self, _stage: int) -> Info:  # noqa: N802  # the name is Spark's
        if len(self._polls) == 1:
            self._done.set()
        return self._polls.pop(0)


@pytest.mark.parametrize(
    ("polls", "times"),
    [
        ([Info(0, 0)] * PATIENCE, 1),
        ([Info(0, 0)] * (3 * PATIENCE), 1),
        ([Info(0, 0)] * (PATIENCE - 1), 0),
        ([*[Info(0, 0)] * (PATIENCE - 1), Info(0, 1), Info(0, 0)], 0),
        ([Info(1, 0)] * (2 * PATIENCE), 0),
    ],
)
def test_a_job_without_executors_is_told_once(
    polls: list[Info], times: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(spark_session, "POLL_SECONDS", 0)
    monkeypatch.setattr(spark_session, "PATIENCE", PATIENCE)
    done = threading.Event()
    tracker: Any = Tracker(polls, done)
    spark_session._watch(tracker, "dissecting", StageProgress(), done)
    assert capsys.readouterr().err == f"kdissect: {NO_EXECUTORS}\n" * times
