"""`python -m tools.lab.segments`: Kafka's own files, for `pcaps/segments/`, and what Kafka's own tool says of each.

A broker lives through transactions, groups of each kind and batches in each codec, and stops; then the folders of a few
partitions are kept as they are. Beside each file is what DumpLogSegments prints of it: ``<file>.dump.txt``.
"""

import json
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from tools.lab.__main__ import PCAPS, run_client
from tools.lab.node import LOGS, Cluster
from tools.lab.plans import KEEPER
from tools.lab.scenarios import EVENTFUL
from tools.lab.tools import MissingToolError, broker_classpath, classpath, require

SEGMENTS = PCAPS / "segments"
LARGEST = 60_000
PARTITIONS = {
    "rdkafka-codecs-0": (),
    "rdkafka-ledger-0": (),
    "java-outbox-0": (),
    "__consumer_offsets-0": ("--offsets-decoder",),
    "__transaction_state-0": ("--transaction-log-decoder",),
    "__share_group_state-0": ("--share-group-state-decoder",),
    "__cluster_metadata-0": ("--cluster-metadata-decoder",),
}
"""Folders, and how the tool is to read their records."""
SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint")
RECORDS = (".log", ".checkpoint")
TOOL = "org.apache.kafka.tools.DumpLogSegments"


def keep(partition: str) -> list[Path]:
    """Copy a partition's folder; of snapshots of the metadata only the newest."""
    folder = SEGMENTS / partition
    folder.mkdir(parents=True)
    found = [file for file in sorted((LOGS / partition).iterdir()) if file.suffix in SUFFIXES]
    older = [file for file in found if file.suffix == ".checkpoint"][:-1]
    return [Path(shutil.copyfile(file, folder / file.name)) for file in found if file not in older]


def holds_something(file: Path) -> bool:
    """An index may be empty; it must be there all the same, or the tool makes one beside a time index."""
    return file.stat().st_size > 0


def dump(file: Path, decoder: tuple[str, ...], jars: str) -> None:
    """Ask Kafka's tool; by a path from here, which it prints."""
    how = ("--deep-iteration", "--print-data-log", *decoder) if file.suffix in RECORDS else ()
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    command = [require("java"), "-Xmx256m", quiet, "-cp", jars, TOOL, *how, "--files", file.name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=file.parent)
    if done.returncode or not done.stdout:
        raise MissingToolError(f"DumpLogSegments {file.name}: {(done.stderr or done.stdout).strip()[-500:]}")
    file.with_name(f"{file.name}.dump.txt").write_text(done.stdout)


def make() -> list[str]:
    """A line for each partition that was kept."""
    jars = broker_classpath(KEEPER.release)
    commands = [command(classpath()) for command in EVENTFUL]
    lines = []
    with Cluster(KEEPER, jars) as cluster:
        cluster.start()
        for command in commands:
            if failure := run_client(command):
                raise MissingToolError(f"a client failed: {failure[-600:]}")
        cluster.stop()
        shutil.rmtree(SEGMENTS, ignore_errors=True)
        for partition, decoder in PARTITIONS.items():
            files = keep(partition)
            for file in filter(holds_something, files):
                dump(file, decoder, jars)
            large = [file.name for file in files if file.stat().st_size > LARGEST]
            note = f" TOO LARGE: {', '.join(large)}" if large else ""
            lines.append(f"{partition:24} {len(files)} files {sum(f.stat().st_size for f in files):>8,} bytes{note}")
    provenance = {"broker": "Apache Kafka", "broker_version": KEEPER.release, "tool": TOOL,
                  "recorded": datetime.now(UTC).date().isoformat()}  # fmt: skip
    (SEGMENTS / "provenance.json").write_text(json.dumps(provenance) + "\n")
    return lines


def main() -> int:
    """Make them; 0 if none is too large to keep."""
    try:
        lines = make()
    except MissingToolError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2
    print("\n".join(lines))
    return int(any("LARGE" in line for line in lines))


if __name__ == "__main__":
    sys.exit(main())
