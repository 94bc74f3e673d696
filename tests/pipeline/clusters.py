"""A Spark cluster of this machine's own: a standalone master and its workers, from what pip installs. Everything
listens on the loopback interface, on ports that the system chooses, and is ended by its id.
"""

import os
import re
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import pyspark

_SPARK_CLASS: Final = Path(pyspark.__file__).parent / "bin" / "spark-class"
_ENVIRONMENT: Final = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
PATIENCE: Final = 300
"""Seconds until something is there that is sure to come."""


class Cluster:
    """A master's URL, and the process ids of its workers."""

    def __init__(self, url: str, workers: list[int]) -> None:
        self.url = url
        self._workers = workers

    def executors(self) -> list[int]:
        """Processes that run tasks now."""
        found = []
        for worker in self._workers:
            for task in Path(f"/proc/{worker}/task").iterdir():
                with suppress(FileNotFoundError):  # the thread has ended
                    found += [int(word) for word in (task / "children").read_text().split()]
        return sorted(each for each in set(found) if b"CoarseGrainedExecutorBackend" in _command(each))


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A master and workers with one core each: hosts of their own to Spark, as each has its own address."""
    with ExitStack() as stack:
        master = stack.enter_context(_daemon(folder / "master.log", "master.Master", "--host", "127.0.0.1"))
        url = _told(folder / "master.log", r"Starting Spark master at (spark://\S+)")
        of_workers = []
        for number in range(workers):
            host, log = f"127.0.0.{number + 2}", folder / f"worker-{number}.log"
            words = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work-{number}"), url)
            made = _daemon(log, "worker.Worker", "--host", host, *words, host=host)
            of_workers.append(stack.enter_context(made).pid)
            _told(log, "(Successfully registered with master)")
        assert master.poll() is None
        yield Cluster(url, of_workers)


@contextmanager
def _daemon(log: Path, name: str, *words: str, host: str = "127.0.0.1") -> Iterator["subprocess.Popen[bytes]"]:
    command = [str(_SPARK_CLASS), f"org.apache.spark.deploy.{name}", "--port", "0", "--webui-port", "0", *words]
    environment = _ENVIRONMENT | {"SPARK_LOCAL_IP": host}
    with log.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file, env=environment) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait()


def _told(log: Path, pattern: str) -> str:
    for _ in range(PATIENCE * 5):
        if found := re.search(pattern, log.read_text()):
            return found[1]
        time.sleep(0.2)
    raise AssertionError(f"{pattern} is not in:\n{log.read_text()[-2000:]}")


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def python_without_us(folder: Path) -> Path:
    """A Python that has what we need, and not us: such as workers have."""
    venv.create(folder, with_pip=False, symlinks=True)
    [packages] = folder.glob("lib/python*/site-packages")
    for each in Path(sysconfig.get_path("purelib")).iterdir():
        if each.suffix != ".pth":
            (packages / each.name).symlink_to(each)
    python = folder / "bin" / "python"
    for name, works in (("orjson", True), ("dissector", False)):
        done = subprocess.run([python, "-c", f"import {name}"], cwd=folder, capture_output=True, check=False)
        assert (done.returncode == 0) == works
    return python


def kdissect(*words: str) -> "subprocess.Popen[str]":
    """The command, started."""
    command = [sys.executable, "-m", "dissector.cli.main", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_ENVIRONMENT)
