"""What the lab runs with: Java, Maven and a sniffer from the system; jars and clients fetched by their own tools."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
BUILD = ROOT / "build" / "lab"
CLIENTS = ("confluent-kafka", "kafka-python", "aiokafka", "cramjam", "python-snappy", "lz4", "zstandard")


class MissingToolError(Exception):
    """A program that the system lacks, or a fetch that failed: one plain line."""


def require(*programs: str) -> str:
    """The first of these programs that is there."""
    for program in programs:
        if found := shutil.which(program):
            return found
    raise MissingToolError(f"the lab needs {' or '.join(programs)}, which this system does not have")


def run(*command: str | Path) -> None:
    """Run to the end; what it prints is shown only if it fails."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingToolError(f"{Path(command[0]).name} failed: {(done.stderr or done.stdout).strip()[-500:]}")


def kafka_version() -> str:
    """The broker's release, as the pom has it."""
    found = re.search(r"kafka_2\.13</artifactId><version>([\d.]+)", (HERE / "pom.xml").read_text())
    assert found
    return found[1]


def classpath() -> str:
    """Kafka's jars and the compiled Java client; fetched and compiled if they are not there."""
    jars, classes = BUILD / "jars", BUILD / "classes"
    if not list(jars.glob("kafka_2.13-*.jar")):
        maven = require("mvn")
        run(maven, "-q", "-B", "-f", HERE / "pom.xml", "dependency:copy-dependencies", f"-DoutputDirectory={jars}")
    run(require("javac"), "-cp", f"{jars}/*", "-d", classes, *sorted((HERE / "java").glob("*.java")))
    return f"{classes}:{jars}/*"


def client_python() -> Path:
    """The Python of an environment with the Python clients."""
    python = BUILD / "clients" / "bin" / "python"
    if not python.exists():
        run(sys.executable, "-m", "venv", BUILD / "clients")
        run(python, "-m", "pip", "install", "--quiet", *CLIENTS)
    return python


def client_version(package: str) -> str:
    """The release of a Python client."""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([client_python(), "-c", code], capture_output=True, text=True, check=True).stdout.strip()
