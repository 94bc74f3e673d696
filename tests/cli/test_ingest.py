"""`ingest` says what it did and what is wrong in lines of its own, and nothing else: Spark is not heard."""

import os
import signal
from pathlib import Path

import pytest

from tests.conftest import PCAPS
from tests.forked import run_module
from tests.needs import needs

pytest.importorskip("pyspark", reason="NOT TESTED with pyspark: it is not installed")

from tests.cases import cases
from tests.pipeline.clusters import kdissect
from tests.pipeline.test_cluster import STAGED, once
from tools.benchmarks.captures import chatty

JAVA = str(PCAPS / "java.pcapng")
HERE = ("--master", "local[2]")
INSTALL = "install a JRE of version 17 or newer (Debian: openjdk-17-jre-headless) or point JAVA_HOME to one\n"


def ingest(*words: str, env: dict[str, str] | None = None) -> tuple[int, str, str]:
    """Run `kdissect ingest`; return the exit code, stdout, stderr."""
    done = run_module("dissector.cli.main", ["ingest", *words], os.environ | (env or {}), longest=600)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.slow
def test_no_java_is_one_line(tmp_path: Path) -> None:
    code, out, err = ingest(JAVA, "--out", str(tmp_path / "out"), *HERE, env={"PATH": str(tmp_path), "JAVA_HOME": ""})
    assert (code, out, err) == (2, "", f"kdissect: Spark needs Java, and none was found: {INSTALL}")


@pytest.mark.slow
def test_an_old_java_is_one_line(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    code, out, err = ingest(JAVA, "--out", str(tmp_path / "out"), *HERE, env={"JAVA_HOME": str(tmp_path)})
    assert (code, out, err) == (2, "", f"kdissect: Spark needs Java 17, and {java} is 11.0.2: {INSTALL}")


@pytest.mark.long
@pytest.mark.slow
@cases(
    ("words", "why"),
    [
        (("--master", "spark://127.0.0.1:1"), "spark://127.0.0.1:1: no answer: connection refused"),
        (("--remote", "sc://127.0.0.1:1"), "sc://127.0.0.1:1: no answer: connection refused"),
        (("--master", "foo"), "foo: not a master: use local[N], spark://HOST:PORT, yarn or k8s://URL"),
        (("--conf", "spark.x"), "--conf spark.x: not NAME=VALUE"),
    ],
)
def test_what_can_not_be_reached_is_one_line(tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    code, out, err = ingest(JAVA, "--out", str(tmp_path / "out"), *words)
    assert (code, out, err) == (2, "", f"kdissect: {why}\n")


@pytest.mark.slow
@cases(
    ("folder", "why"),
    [
        ("/proc/nowhere", "/proc/nowhere: no such file or directory"),
        (JAVA, f"{JAVA}: file exists"),
        (
            "nonsense://x/y",
            "nonsense://x/y: tables and captures are read from s3, gs, abfss, hdfs, and paths, not from nonsense",
        ),
    ],
)
def test_a_folder_that_can_not_be_written_to_is_one_line(folder: str, why: str) -> None:
    code, out, err = ingest(JAVA, "--out", folder)
    assert (code, out, err) == (2, "", f"kdissect: {why}\n")


@pytest.mark.long
@pytest.mark.slow
def test_small_captures_need_no_java(tmp_path: Path) -> None:
    """As often as one likes: what is in the tables is not read again."""
    nowhere = {"PATH": str(tmp_path), "JAVA_HOME": ""}
    code, out, err = ingest(JAVA, "--out", str(tmp_path / "out"), env=nowhere)
    assert (code, out) == (0, "")
    assert err.startswith(f"1 capture, 266 packets -> {tmp_path}/out: connections 15, exchanges 60, ")
    assert ingest(JAVA, "--out", str(tmp_path / "out"), env=nowhere) == (0, "", f"{JAVA}: already in the tables\n")


@pytest.mark.slow
@pytest.mark.spark
def test_a_run_says_what_it_could_not_read_and_what_it_did(tmp_path: Path) -> None:
    needs("java")
    noise = tmp_path / "noise.pcap"
    noise.write_bytes(b"no capture at all")
    target = tmp_path / "out"
    code, out, err = ingest(JAVA, str(noise), "--out", str(target), "--master", "local[2]")
    [problem, summary] = err.splitlines()
    assert (code, out) == (2, "")
    assert problem.startswith(f"kdissect: {noise}: not a capture")
    assert summary.startswith(f"1 capture, 266 packets -> {target}: connections 15, exchanges 60, ")


@pytest.mark.slow
@pytest.mark.spark
def test_a_setting_that_spark_refuses_is_one_line(tmp_path: Path) -> None:
    needs("java")
    code, out, err = ingest(JAVA, "--out", str(tmp_path), "--conf", "spark.driver.memory=none")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("kdissect: Spark did not start: ")


@pytest.mark.slow
@pytest.mark.spark
def test_interrupted_it_ends_quietly_and_leaves_nothing(tmp_path: Path) -> None:
    needs("java")
    chatty(tmp_path / "chatty.pcap", 100_000)
    target = tmp_path / "out"
    process = kdissect("ingest", str(tmp_path / "chatty.pcap"), "--out", str(target), "--master", "local[2]")
    once(lambda: list(target.glob(STAGED)), process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out, err) == (130, "", "")
    assert list(target.rglob("*.parquet")) == []
    assert list((target / "_runs").iterdir()) == []
