"""Ingest on a cluster gives the tables that one process gives, also where executors and drivers die in the middle."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import CAPTURES, QUICK
from tests.needs import needs
from tools.benchmarks.captures import chatty

pytest.importorskip("pyspark", reason="NOT TESTED with pyspark: it is not installed")

from tests.pipeline.clusters import PATIENCE, Cluster, kdissect, python_without_us, standalone
from tests.pipeline.contents import contents, rows_that_count
from tests.pipeline.events import failed, logged, run_again, speculative

pytestmark = [pytest.mark.slow, pytest.mark.spark]
STAGED = "exchanges/*.parquet"
"""There while parts are dissected."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the captures that all of these tests read: real ones, and one that takes a while."""
    needs("java")
    made = tmp_path_factory.mktemp("cluster")
    (made / "captures").mkdir()
    for path in CAPTURES:
        if path.stem in QUICK:
            (made / "captures" / path.name).symlink_to(path)
    chatty(made / "captures" / "chatty.pcap", 20_000)
    return made


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[Cluster]:
    with standalone(folder) as made:
        yield made


@pytest.fixture(scope="module")
def local(folder: Path) -> dict[str, tuple[int, str]]:
    """What a run on this machine gives that nobody disturbs."""
    assert ended(kdissect("ingest", str(folder / "captures"), "--out", str(folder / "local"), "--master", "local[2]"))
    held = contents(folder / "local")
    assert held["exchanges"][0] > 8_000
    assert held["captures"][0] == len(QUICK) + 1
    return held


def ended(process: "subprocess.Popen[str]") -> bool:
    """Whether it succeeded and printed nothing but its summary: not a word is Spark's."""
    out, err = process.communicate(timeout=600)
    print(out, err)
    *problems, summary = err.splitlines() or [""]
    is_quiet = not out and f"{len(QUICK) + 1} captures, " in summary
    return process.returncode == 0 and is_quiet and all(line.startswith("kdissect: ") for line in problems)


def once(there: Callable[[], object], process: "subprocess.Popen[str]") -> None:
    """Wait for something that comes while a process runs."""
    for _ in range(PATIENCE * 20):
        if there():
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.kill()
    raise AssertionError("it did not come")


def on(cluster: Cluster, folder: Path, out: str, *more: str) -> list[str]:
    """A run on the cluster, by a Python that does not have our package."""
    python = folder / "python" / "bin" / "python"
    if not python.exists():
        python_without_us(folder / "python")
    conf = (f"spark.pyspark.python={python}", "spark.executor.memory=512m", "spark.shuffle.readHostLocalDisk=false")
    words = ["ingest", str(folder / "captures"), "--out", str(folder / out), "--master", cluster.url]
    return [*words, *(word for each in (*conf, *more) for word in ("--conf", each))]


def test_workers_that_do_not_have_the_package_are_sent_it(
    cluster: Cluster, folder: Path, local: dict[str, tuple[int, str]]
) -> None:
    assert ended(kdissect(*on(cluster, folder, "standalone")))
    assert contents(folder / "standalone") == local


def test_workers_of_this_machine_use_the_same_python_by_themselves(
    cluster: Cluster, folder: Path, local: dict[str, tuple[int, str]]
) -> None:
    words = ["ingest", str(folder / "captures"), "--out", str(folder / "by itself"), "--master", cluster.url]
    assert ended(kdissect(*words, "--conf", "spark.executor.memory=512m"))
    assert contents(folder / "by itself") == local


def test_executors_that_are_killed_cost_no_row(
    cluster: Cluster, folder: Path, local: dict[str, tuple[int, str]]
) -> None:
    """Both: one of them may have nothing to do at that moment, and nothing to lose."""
    log = folder / "log of killed"
    process = kdissect(*on(cluster, folder, "killed", *(f"{name}={value}" for name, value in logged(log).items())))
    once(lambda: list((folder / "killed").glob(STAGED)), process)
    before = cluster.executors()
    assert len(before) == 2
    for each in before:
        os.kill(each, signal.SIGKILL)
    once(lambda: not set(before) & set(cluster.executors()), process)
    assert ended(process)
    assert "ExecutorLostFailure" in failed(log)
    assert run_again(log) > 0
    assert contents(folder / "killed") == local


def test_tasks_that_run_twice_give_their_rows_once(
    cluster: Cluster, folder: Path, local: dict[str, tuple[int, str]]
) -> None:
    """Speculative execution, as hasty as it can be made: a copy of whatever still runs as others have ended."""
    log = folder / "log of hasty"
    hasty = {
        "spark.speculation": "true", "spark.speculation.interval": "50ms", "spark.speculation.quantile": "0.1",
        "spark.speculation.multiplier": "1.0", "spark.speculation.minTaskRuntime": "1ms",
    }  # fmt: skip
    settings = logged(log) | hasty
    assert ended(kdissect(*on(cluster, folder, "hasty", *(f"{name}={value}" for name, value in settings.items()))))
    assert speculative(log) > 0
    assert contents(folder / "hasty") == local


def test_a_driver_that_is_killed_leaves_nothing_and_the_next_one_does_all(
    folder: Path, local: dict[str, tuple[int, str]]
) -> None:
    out = folder / "driver"
    words = ("ingest", str(folder / "captures"), "--out", str(out), "--master", "local[2]")
    process = kdissect(*words)
    once(lambda: list(out.glob(STAGED)), process)
    process.kill()
    process.communicate()
    assert not any(rows_that_count(out).values())
    assert ended(kdissect(*words))
    assert contents(out) == local


def test_the_same_captures_again_change_nothing(folder: Path, local: dict[str, tuple[int, str]]) -> None:
    process = kdissect("ingest", str(folder / "captures"), "--out", str(folder / "local"), "--master", "local[2]")
    _, err = process.communicate(timeout=600)
    assert process.returncode == 0
    assert err.count(": already in the tables\n") == len(QUICK) + 1
    assert contents(folder / "local") == local


def test_spark_connect_gives_the_same_tables(folder: Path, local: dict[str, tuple[int, str]]) -> None:
    pytest.importorskip("grpc", reason="NOT TESTED with grpc: it is not installed")
    words = ("ingest", str(folder / "captures"), "--out", str(folder / "connect"), "--remote", "local[2]")
    assert ended(kdissect(*words))
    assert contents(folder / "connect") == local
