"""A ring that tcpdump really writes, followed by a process that is killed: its tables are those of one run."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.capture.live.loopback import needs_rights
from tests.needs import needs

pytest.importorskip("deltalake", reason="NOT TESTED with deltalake: it is not installed")

from dissector.pipeline.follow_state import FOLLOWER, WORK
from tests.pipeline.clusters import PATIENCE, kdissect
from tests.pipeline.contents import contents, lines, rows_that_count
from tests.pipeline.live_ring import ring

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive, needs_rights]
TABLES: Final = ("captures", "connections", "exchanges", "records", "findings", "gaps")
IDLE: Final = 8
"""Seconds without a new file: the ring is over."""


class Followed(NamedTuple):
    """What came of a ring."""

    followed: Path
    batch: Path
    output: str
    """By the process that went on to the end."""


def until(is_so: Callable[[], bool], what: str, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def follow(folder: Path, seconds: float) -> Followed:
    """Follow a ring, kill that in a micro-batch, go on `seconds` later, and to the end; then in one run."""
    out, batch = folder / "followed", folder / "batch"
    command = ("ingest", "--follow", str(folder / "ring"), "--out", str(out))
    with ring(folder / "ring"):
        first = kdissect(*command)
        try:
            until(lambda: contents(out).get("captures", (0,))[0] > 0, "nothing was committed", first)
            until(lambda: any((out / WORK).glob("*/*")), "no micro-batch began after that", first)
        finally:
            os.kill(first.pid, signal.SIGKILL)
        first.communicate()
        assert (out / FOLLOWER).exists()
        time.sleep(seconds)
        second = kdissect(*command, "--idle", str(IDLE))
        time.sleep(seconds)
    output = second.communicate(timeout=600)[1]
    assert second.returncode == 0, output
    whole = kdissect("ingest", str(folder / "ring"), "--out", str(batch))
    words = whole.communicate(timeout=600)
    assert whole.returncode == 0, words
    return Followed(out, batch, output)


def test_a_ring_that_is_followed_and_killed_gives_the_tables_of_one_run(tmp_path: Path) -> None:
    needs("tcpdump")
    made = follow(tmp_path, 8)
    print(made.output)
    assert not (made.followed / FOLLOWER).exists(), "nothing is left of a ring that is over"
    there, expected = rows_that_count(made.followed), rows_that_count(made.batch)
    assert len(there["captures"]) == len(list((tmp_path / "ring").iterdir())) > 5
    assert len(there["exchanges"]) > 1_000
    assert there["findings"]
    for row in (*there["captures"], *expected["captures"]):
        row.pop("other_connections")  # unknown where connections go on in the next micro-batch
    for name in there:
        followed, whole = lines(there[name]), lines(expected[name])
        assert sorted(set(followed) - set(whole))[:3] == sorted(set(whole) - set(followed))[:3], name
        assert followed == whole, f"{name}: rows that are there twice"
