"""Starts a Spark session: finds Java, keeps Spark quiet, sends the package to its workers, reports progress, stops it
at the end and reports failures in one line. This is the only module that starts one."""

import contextlib
import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pyspark
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dissector.pipeline import class_archive
from dissector.pipeline.ingest import NO_EXECUTORS, Report

MIN_JAVA: Final = 17
JVM_OPTIONS: Final = (
    "-XX:+IgnoreUnrecognizedVMOptions -XX:+UseParallelGC -XX:Tier4InvocationThreshold=50000"
    " -XX:Tier4MinInvocationThreshold=6000 -XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
"""For a JVM that lives seconds or minutes: C2, the second compiler, uses half the CPU of the start, so its thresholds
are ten times the defaults; and the garbage collector does not run concurrently with tasks."""
ONE_COMPILER: Final = "-XX:TieredStopAtLevel=1"
"""For a JVM that hands all work to Python: without the second compiler it needs a third less CPU."""
SETTINGS: Final = {
    "spark.app.name": "kdissect",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "8",
    # The default gives each core one task, so that all wait for the slowest.
    "spark.sql.files.maxPartitionBytes": "16m",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
}
"""Defaults; `--conf` overrides them."""
ON_THIS_MACHINE: Final = {
    # Without checksum files: only Hadoop uses them, and each costs a process that sets its mode. YARN can't do it.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    **({"spark.python.daemon.module": "dissector.pipeline.worker_daemon"} if sys.platform == "linux" else {}),
    # All workers have the same environment then: those that `_start_workers` starts are used by all jobs.
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    # Else `python -m` would take modules from the current folder first, whoever put them there.
    "spark.executorEnv.PYTHONSAFEPATH": "1",
}
"""Defaults where tasks run on this machine."""
JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
"""Name of the setting for the options of the driver's JVM."""
PYTHON: Final = "spark.pyspark.python"
"""Name of the setting for the workers' Python."""
CONNECT_SECONDS: Final = 5.0
"""Seconds within which a master must accept a connection."""
_MASTERS: Final = re.compile(r"local(-cluster)?(\[.+\])?|spark://.+|yarn|k8s://.+")
_ENDPOINTS: Final = {"spark": 7077, "sc": 15002}
"""Schemes of URLs whose host is tried first, as Spark would try it for minutes; with Spark's default ports."""


class NoSparkError(Exception):
    """Spark can't be started here. The message is one line: what is missing and how to get it."""


class JobError(Exception):
    """A job failed. The message is one line with the reason."""


@contextlib.contextmanager
def session(
    master: str | None, remote: str | None, settings: Mapping[str, str], *, verbose: bool, is_for_python: bool = False
) -> Iterator[SparkSession]:
    """Start a session on `master` (default: all cores of this machine) or connect to the Spark Connect server `remote`.
    `is_for_python` says that its JVM sees few rows, as Python does the work. Raises `NoSparkError` if that fails, and
    `JobError` if a job in the session fails."""
    url = remote or master or "local[*]"
    if remote is None and not _MASTERS.fullmatch(url):
        raise NoSparkError(f"{url}: not a master: use local[N], spark://HOST:PORT, yarn or k8s://URL")
    _check_reachable(url)
    has_own_java = remote is None or is_local(url)
    archive = class_archive.java_options(_java_version(), pyspark.__version__, pyspark.__file__) if has_own_java else ""
    if is_local(url):
        os.environ["PYSPARK_PYTHON"] = sys.executable  # workers use the same Python and packages
    elif PYTHON in settings:
        os.environ["PYSPARK_PYTHON"] = settings[PYTHON]  # Spark itself applies it only in spark-submit
    elif url.startswith("spark://"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's own choice would be `python3`
    with _quiet(verbose=verbose):
        java_options = f"{JVM_OPTIONS} {ONE_COMPILER if is_for_python else ''} {archive}"
        spark = _started(master, remote, {JAVA_OPTIONS: java_options, **settings})
        if is_for_python and is_local(master) and remote is None:
            threading.Thread(target=_start_workers, args=(spark,), daemon=True).start()
        try:
            with contextlib.nullcontext() if is_local(url) else shipped(spark):
                yield spark
        except (PySparkException, Py4JError) as error:
            raise JobError(reason(error)) from error
        finally:
            with contextlib.suppress(Exception):  # the JVM may be gone
                _stop(spark)


def _start_workers(spark: SparkSession) -> None:
    """Let Spark start the process that its Python workers are forked of, by a job that does nothing: the JVM plans the
    first real one meanwhile."""
    with contextlib.suppress(Exception):  # the session may end
        spark.sparkContext.parallelize([0], 1).foreach(lambda _: None)


def _stop(spark: SparkSession) -> None:
    """Stop a session. A thread waits for pyspark's server of accumulators, of which we have none: it looks once a
    second whether it is to end."""
    context: Any = getattr(spark, "_sc", None)  # Spark Connect has none
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        context._accumulatorServer = None
        threading.Thread(target=server.shutdown, daemon=True).start()
    spark.stop()


def is_local(url: str | None) -> bool:
    """Whether tasks run on this machine, which is the default."""
    return url is None or url.startswith("local")


def _started(master: str | None, remote: str | None, settings: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder
    builder = builder.remote(remote) if remote is not None else builder.master(master or "local[*]")
    is_on_server = remote is not None and not is_local(remote)
    defaults = SETTINGS | (ON_THIS_MACHINE if is_local(remote or master) else {})
    for name, value in {**defaults, **settings}.items():
        if not is_on_server or name.startswith("spark.sql"):
            builder = builder.config(name, value)
    try:
        # Who reads our output need not wait for the JVM, which may live longer to write its archive.
        with _discarded(1):
            return builder.getOrCreate()
    except (PySparkException, Py4JError, ImportError, OSError) as error:
        raise NoSparkError(f"Spark did not start: {reason(error)}") from error


def _check_reachable(url: str) -> None:
    """Raise `NoSparkError` if no master listens at the URL. If it names more than one, one is enough."""
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
    raise NoSparkError(f"{url}: no answer: {why}")


def reason(error: BaseException) -> str:
    """Return why something failed in Spark, in one line: the last line of a task's traceback in Python, else Java's
    message, which follows the line of py4j that only names the call."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    python = [line for line in lines if re.match(r"([A-Za-z_]+\.)*[A-Z]\w*(Error|Exception|Full)\b", line)]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    messages = causes[-1:] if causes and "PythonException" not in causes[-1] else python[-1:]
    messages = messages or [line.removeprefix(": ") for line in lines if line.startswith(": ")][:1]
    words = (messages or lines[:1] or [type(error).__name__])[0]
    return re.sub(r"^(?:[a-z]\w*\.)+(?=[A-Z])", "", words)[:500]


def _java_version() -> str:
    """Return what Java says of its version. Raises `NoSparkError` if there is no Java, or an old one."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    how = f"install a JRE of version {MIN_JAVA} or newer (Debian: openjdk-17-jre-headless) or point JAVA_HOME to one"
    if java is None or not Path(java).exists():
        raise NoSparkError(f"Spark needs Java, and none was found: {how}")
    try:
        output = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    except OSError as error:
        raise NoSparkError(f"Spark needs Java, and {java} does not run: {error.strerror}: {how}") from None
    words = output.split('"')
    version = words[1].split(".")[0] if len(words) > 1 else ""
    if version.isdigit() and int(version) < MIN_JAVA:
        raise NoSparkError(f"Spark needs Java {MIN_JAVA}, and {java} is {words[1]}: {how}")
    return output


@contextlib.contextmanager
def _quiet(*, verbose: bool) -> Iterator[None]:
    """Discard the output of the JVM. It inherits the standard error open when it starts, so that is redirected to
    `/dev/null`. Our messages go to a copy of the original."""
    if verbose:
        yield
        return
    logging.disable()  # py4j logs an interrupted call by the root logger
    original_stderr = sys.stderr
    sys.stderr.flush()
    with (
        _discarded(2) as original,
        os.fdopen(os.dup(original), "w", buffering=1) as stderr_copy,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        sys.stderr = stderr_copy
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)
            sys.stderr = original_stderr


@contextlib.contextmanager
def _discarded(descriptor: int) -> Iterator[int]:
    """Redirect a descriptor to `/dev/null` for a time. Yield one of where it led to."""
    original, null = os.dup(descriptor), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    try:
        yield original
    finally:
        os.dup2(original, descriptor)
        os.close(original)
        os.close(null)


_ROOT: Final = Path(__file__).parents[1]
_EXCLUDED: Final = ("__pycache__", "cli", "tui")


@contextmanager
def shipped(spark: SparkSession) -> Iterator[None]:
    """Send the package, all but its faces on a terminal, to a cluster or a Spark Connect server, so that it need not be
    installed there. Executors fetch it when they start, so it exists as long as the session.

    Its own library in C is sent as it was compiled here, so workers must have the same system and processor.
    Dependencies in C can't be sent like that (numpy, orjson, cramjam, lz4, google-re2, google-crc32c): workers must
    have them, as they must have pyarrow and pandas."""
    with packed() as path:
        spark.addArtifacts(str(path), pyfile=True)
        yield


@contextmanager
def packed() -> Iterator[Path]:
    """Pack the package into a zip file that Python can import from, schema tables included."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{_ROOT.name}.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
            for each in sorted(_ROOT.rglob("*")):
                inside = each.relative_to(_ROOT)
                if each.is_file() and not set(inside.parts) & set(_EXCLUDED):
                    target.write(each, Path(_ROOT.name) / inside)
        yield path


POLL_SECONDS: Final = 0.5
"""Seconds between two polls."""
PATIENCE: Final = 30
"""Polls without a task that runs or is done, after which that is said."""


@contextmanager
def stage(spark: SparkSession, name: str, report: Report) -> Iterator[None]:
    """Report the progress of a stage while the context lasts: its name, and how many of its tasks are done, polled from
    Spark. Under Spark Connect there is only the name."""
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
    idle = 0
    while not done.wait(POLL_SECONDS):
        try:
            running = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
        except Exception:  # the session or its JVM ends: the job reports that
            return
        counts = [(each.numCompletedTasks, each.numTasks) for each in running if each is not None]
        is_idle = not any(each.numCompletedTasks or each.numActiveTasks for each in running if each is not None)
        idle = idle + 1 if counts and is_idle else 0
        if idle == PATIENCE:
            report(NO_EXECUTORS, 0, 0)
        elif counts:
            report(name, sum(done for done, _ in counts), sum(total for _, total in counts))
