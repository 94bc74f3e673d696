"""Fetch releases of Kafka, let their generated classes write and read messages. Run as ``python -m tools.lab.vectors``.

For each release a file `vectors-<release>.ndjson.gz`, one message a line (`WriteVectors.java` says what a line has).

Invariants:
  * the same releases, seed and count give the same bytes;
  * exit code 0: the files are there; 2: java or Maven is missing or failed, and what was there before still is.
"""

import argparse
import gzip
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tools.lab.tools import BUILD, ROOT, MissingToolError, require, run, schema_jars

RELEASES: Final = ("3.9.2", "4.4.0")
"""Together they have every version of every API."""

HERE: Final = Path(__file__).parent
SEED: Final = 1
COUNT: Final = 8
"""Random messages of a version, beside one of each other kind: what the committed files have."""


def main(arguments: list[str] | None = None) -> int:
    """Do all of it; the exit code."""
    wanted = _parser().parse_args(arguments)
    wanted.out.mkdir(parents=True, exist_ok=True)
    try:
        for release in wanted.release or RELEASES:
            lines = write_vectors(release, wanted.seed, wanted.count)
            file = wanted.out / f"vectors-{release}.ndjson.gz"
            file.write_bytes(gzip.compress(lines, mtime=0))
            print(f"{file.name}: {len(lines.splitlines()):,} messages, {file.stat().st_size:,} bytes")
    except MissingToolError as error:
        print(f"vectors: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.lab.vectors", description="Messages from Apache's own codec."
    )
    parser.add_argument("--release", action="append", metavar="R", help=f"a release of Kafka: {', '.join(RELEASES)}")
    parser.add_argument("--seed", type=int, default=SEED, metavar="N")
    parser.add_argument("--count", type=int, default=COUNT, metavar="K", help="random messages of each version")
    parser.add_argument("--out", type=Path, default=ROOT / "tests" / "golden", metavar="FOLDER")
    return parser


def write_vectors(release: str, seed: int, count: int) -> bytes:
    """What `WriteVectors` prints of a release."""
    folder = BUILD / f"vectors-{release}"
    jars, classes = folder / "jars", folder / "classes"
    fetch(release, jars)
    shutil.rmtree(classes, ignore_errors=True)
    run(require("javac"), "-encoding", "UTF-8", "-cp", f"{jars}/*", "-d", classes, *sorted(HERE.glob("*.java")))
    program = [require("java"), "-cp", f"{classes}:{jars}/*", "WriteVectors", str(seed), str(count)]
    done = subprocess.run([*program, *schema_jars(release, jars)], capture_output=True, check=False)
    if done.returncode:
        output_lines = done.stderr.decode(errors="replace").splitlines()
        why = next((line for line in output_lines if line.startswith("Exception")), "it does not say why")
        raise MissingToolError(f"WriteVectors failed on {release}: {why}")
    return done.stdout


def fetch(release: str, jars: Path) -> None:
    """A release's jars and what they run with, in `jars`; fetched if this pom did not fetch them already."""
    pom, stamp = HERE / "pom.xml", jars / "pom.xml"
    if stamp.exists() and stamp.read_text() == pom.read_text():
        return
    shutil.rmtree(jars, ignore_errors=True)  # a jar that was copied by half would stay for ever
    options = (f"-Dkafka.version={release}", f"-DoutputDirectory={jars}")
    run(require("mvn"), "-q", "-B", "-f", pom, *options, "dependency:copy-dependencies")
    shutil.copyfile(pom, stamp)


if __name__ == "__main__":
    sys.exit(main())
