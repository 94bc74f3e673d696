"""What happened in a run of Spark's, from its own event log: which tasks failed and were run again, which ran twice."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def logged(folder: Path) -> dict[str, str]:
    """The settings that have Spark write its event log to a folder, as plain text."""
    folder.mkdir(exist_ok=True)
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }


def failed(folder: Path) -> list[str]:
    """Of each task that did not end well, or was lost with its executor, the class of the reason."""
    ends = (each["Task End Reason"]["Reason"] for each in _events(folder, "TaskEnd"))
    return [reason for reason in ends if reason != "Success"]


def run_again(folder: Path) -> int:
    """How many tasks were run for which there had been a run already that failed, or was lost."""
    starts = list(_events(folder, "TaskStart"))
    return sum(_is_again(each) for each in starts) - speculative(folder)


def speculative(folder: Path) -> int:
    """How many copies of slow tasks were started."""
    return sum(each["Task Info"]["Speculative"] for each in _events(folder, "TaskStart"))


def _is_again(start: dict[str, Any]) -> bool:
    return start["Task Info"]["Attempt"] > 0 or start["Stage Attempt ID"] > 0


def _events(folder: Path, kind: str) -> Iterator[dict[str, Any]]:
    for path in folder.iterdir():
        for line in path.read_text().rpartition("\n")[0].splitlines():  # the last one may be half written
            event = json.loads(line)
            if event["Event"] == f"SparkListener{kind}":
                yield event
