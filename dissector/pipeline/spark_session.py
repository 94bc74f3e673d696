"""A Spark session: Java found, quiet, shut down at the end, and what fails in it told in one line. Nothing else in here
starts one."""

import contextlib
import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dissector.pipeline.shipping import shipped

MIN_JAVA: Final = 17
JVM_OPTIONS: Final = (
    "-XX:+IgnoreUnrecognizedVMOptions -XX:+UseParallelGC -XX:Tier4InvocationThreshold=50000"
    " -XX:Tier4MinInvocationThreshold=6000 -XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
"""A JVM of seconds or minutes: half the CPU of its start is the second compiler's, which is told to wait until a method
was called ten times as often as it does by itself; and a collector that does not work beside the tasks."""
SETTINGS: Final = {
    "spark.app.name": "kdissect",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": JVM_OPTIONS,
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "8",
    # Rows come by capture: what writes a few partitions at once need not sort them.
    "spark.sql.maxConcurrentOutputFileWriters": "8",
    # By itself Spark reads as much in one task as gives each core one: the last core to be done is waited for.
    "spark.sql.files.maxPartitionBytes": "16m",
    "spark.sql.parquet.compression.codec": "zstd",
    # Files of sums beside all others are of use to Hadoop alone, and each costs a process that sets its mode.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    # A VARIANT taken apart into columns is read by Spark alone, and each file is taken apart in another way.
    "spark.sql.variant.inferShreddingSchema": "false",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
}
"""What nobody has to set; `--conf` goes above it."""
PYTHON: Final = "spark.pyspark.python"
"""The setting for the Python of workers."""
CONNECT_SECONDS: Final = 5.0
"""Seconds for a master to take a connection."""
_MASTERS: Final = re.compile(r"local(-cluster)?(\[.+\])?|spark://.+|yarn|k8s://.+")
_ENDPOINTS: Final = {"spark": 7077, "sc": 15002}
"""URLs of which the host can be tried before Spark tries it for minutes; the ports are Spark's own defaults."""


class NoSparkError(Exception):
    """Spark can't be started here. Its text is one plain line that says what is missing and how to get it."""


class JobError(Exception):
    """A job failed. Its text is one plain line with the reason."""


@contextlib.contextmanager
def session(
    master: str | None, remote: str | None, settings: Mapping[str, str], *, verbose: bool
) -> Iterator[SparkSession]:
    """A session of `master` (else all cores of this machine), or of a Spark Connect server. Raises `NoSparkError` where
    there is none, and `JobError` for what fails in it."""
    url = remote or master or "local[*]"
    if remote is None and not _MASTERS.fullmatch(url):
        raise NoSparkError(f"{url}: no master: there are local[N], spark://HOST:PORT, yarn and k8s://URL")
    _check_reachable(url)
    if remote is None or is_local(url):
        _check_java()
    if is_local(url):
        os.environ["PYSPARK_PYTHON"] = sys.executable  # workers find what we find
    elif PYTHON in settings:
        os.environ["PYSPARK_PYTHON"] = settings[PYTHON]  # Spark heeds it where spark-submit starts a program, and here
    with _quiet(verbose=verbose):
        spark = _started(master, remote, settings)
        try:
            with contextlib.nullcontext() if is_local(url) else shipped(spark):
                yield spark
        except (PySparkException, Py4JError) as error:
            raise JobError(reason(error)) from error
        finally:
            with contextlib.suppress(Exception):  # of a JVM that is gone there is nothing to stop
                spark.stop()


def is_local(url: str | None) -> bool:
    """Whether tasks run on this machine: also where nobody says where they are to run."""
    return url is None or url.startswith("local")


def _started(master: str | None, remote: str | None, settings: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder
    builder = builder.remote(remote) if remote is not None else builder.master(master or "local[*]")
    at_a_server = remote is not None and not is_local(remote)
    for name, value in {**SETTINGS, **settings}.items():
        if not at_a_server or name.startswith("spark.sql"):
            builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except (PySparkException, Py4JError, ImportError, OSError) as error:
        raise NoSparkError(f"Spark does not start: {reason(error)}") from error


def _check_reachable(url: str) -> None:
    """Whether anybody listens where a master should be: of several, one is enough."""
    scheme, _, places = url.partition("://")
    if scheme not in _ENDPOINTS:
        return
    why = ""
    for place in places.split(";")[0].split("/")[0].split(","):
        try:
            at = urlsplit(f"//{place}")
            socket.create_connection((at.hostname or "", at.port or _ENDPOINTS[scheme]), CONNECT_SECONDS).close()
        except (OSError, ValueError) as error:
            why = (getattr(error, "strerror", None) or str(error)).lower()
        else:
            return
    raise NoSparkError(f"{url}: nobody answers there: {why}")


def reason(error: BaseException) -> str:
    """Why something failed in Spark, in one line: of a task of ours the last line of its traceback; else what Java says
    it is, below the line that only says where it was called."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    python = [line for line in lines if re.match(r"([A-Za-z_]+\.)*[A-Z]\w*(Error|Exception|Full)\b", line)]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    told = causes[-1:] if causes and "PythonException" not in causes[-1] else python[-1:]
    told = told or [line.removeprefix(": ") for line in lines if line.startswith(": ")][:1]
    words = (told or lines[:1] or [type(error).__name__])[0]
    return re.sub(r"^(?:[a-z]\w*\.)+(?=[A-Z])", "", words)[:500]


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    how = f"install a JRE of version {MIN_JAVA} or newer (Debian: openjdk-17-jre-headless) or point JAVA_HOME to one"
    if java is None or not Path(java).exists():
        raise NoSparkError(f"Spark needs Java, and there is none: {how}")
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    except OSError as error:
        raise NoSparkError(f"Spark needs Java, and {java} does not run: {error.strerror}: {how}") from None
    words = told.split('"')
    version = words[1].split(".")[0] if len(words) > 1 else ""
    if version.isdigit() and int(version) < MIN_JAVA:
        raise NoSparkError(f"Spark needs Java {MIN_JAVA}, and {java} is {words[1]}: {how}")


@contextlib.contextmanager
def _quiet(*, verbose: bool) -> Iterator[None]:
    """What the JVM says goes nowhere: it is given the outputs that are there when it starts, so these are nowhere until
    then. What we say goes on, to a copy."""
    if verbose:
        yield
        return
    logging.disable()  # py4j logs an interrupted call by the root logger
    kept, said = os.dup(2), sys.stderr
    nowhere = os.open(os.devnull, os.O_WRONLY)
    sys.stderr.flush()
    os.dup2(nowhere, 2)
    with os.fdopen(os.dup(kept), "w", buffering=1) as ours, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.stderr = ours
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)
            sys.stderr = said
            os.dup2(kept, 2)
            os.close(kept)
            os.close(nowhere)
