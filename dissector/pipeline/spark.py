"""A Spark session: Java found, quiet, shut down at the end. Nothing else in here starts one."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

LEAST_JAVA: Final = 17
SETTINGS: Final = {
    "spark.app.name": "kdissect",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "8",
    # A block of packets is a row: few of them at a time go to Python.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "32",
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
}
"""What nobody has to set; `--conf` goes above it."""


class NoSparkError(Exception):
    """Spark can't be started here. Its text is one plain line that says what is missing and how to get it."""


@contextlib.contextmanager
def session(
    master: str | None, remote: str | None, settings: Mapping[str, str], *, verbose: bool
) -> Iterator[SparkSession]:
    """A session of `master` (else all cores of this machine), or of a Spark Connect server. Raises `NoSparkError`."""
    builder = SparkSession.builder
    if remote is not None:
        builder = builder.remote(remote)
    else:
        _need_java()
        builder = builder.master(master or "local[*]")
        if master is None or master.startswith("local"):
            os.environ["PYSPARK_PYTHON"] = sys.executable  # workers find what we find
    for name, value in {**SETTINGS, **settings}.items():
        if remote is None or not name.startswith(("spark.driver", "spark.ui", "spark.app")):
            builder = builder.config(name, value)
    with _quiet(verbose=verbose):
        spark = builder.getOrCreate()
    if not verbose and remote is None:
        spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()


def _need_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    how = f"install a JRE of version {LEAST_JAVA} or newer (Debian: openjdk-17-jre-headless) or point JAVA_HOME to one"
    if java is None or not Path(java).exists():
        raise NoSparkError(f"Spark needs Java, and there is none: {how}")
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    words = told.split('"')
    version = words[1].split(".")[0] if len(words) > 1 else ""
    if version.isdigit() and int(version) < LEAST_JAVA:
        raise NoSparkError(f"Spark needs Java {LEAST_JAVA}, and {java} is {words[1]}: {how}")


@contextlib.contextmanager
def _quiet(*, verbose: bool) -> Iterator[None]:
    """What the JVM says while it starts goes nowhere."""
    if verbose:
        yield
        return
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
