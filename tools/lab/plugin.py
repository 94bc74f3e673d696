"""`python -m tools.lab.plugin`: tests with `kafka_capture` and a real client at a real broker.

One is the example of the repository. The other writes down what it captured of a producer and a group, which is held
to the broker's request log: none missing, none over. Prints a line for each, and fails on a difference.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

from tools.lab import request_log
from tools.lab.node import Cluster
from tools.lab.plans import ONE_BROKER, PORT
from tools.lab.tools import ROOT, MissingToolError, broker_classpath

EXAMPLE: Final = ROOT / "examples" / "test_a_producer.py"
CAPTURED: Final = """
import json
from confluent_kafka import Consumer, Producer

BROKER = {"bootstrap.servers": "127.0.0.1:9092"}


def test_a_group(kafka_capture):
    with kafka_capture() as wire:
        producer = Producer(BROKER)
        for number in range(100):
            producer.produce("plugin", b"%d" % number)
        assert producer.flush(20) == 0
        consumer = Consumer(BROKER | {"group.id": "plugin", "auto.offset.reset": "earliest"})
        consumer.subscribe(["plugin"])
        assert len([message for _ in range(100) if (message := consumer.poll(20)) and not message.error()]) == 100
        consumer.close()
    assert len({record.value for record in wire.records("api == Fetch")}) == 100
    with open("rows.json", "w") as file:
        json.dump([(each.api, each.api_version, each.correlation_id) for each in wire.exchanges()], file)
"""
Row = tuple[str, int, int]
"""API, version and correlation id."""


def main() -> int:
    """Both; 0 if the tests pass and nothing differs."""
    with Cluster(ONE_BROKER, broker_classpath(ONE_BROKER.release)) as cluster, tempfile.TemporaryDirectory() as name:
        cluster.start()
        [log] = cluster.logs
        failed = _tested(EXAMPLE, Path(name))
        start = request_log.settled(log)
        test = Path(name) / "test_group.py"
        test.write_text(CAPTURED)
        failed |= _tested(test, Path(name))
        logged = Counter(map(_row, request_log.exchanges(request_log.lines(log, start), (PORT,))))
        found = Counter((api.casefold(), version, number) for api, version, number in _captured(Path(name)))
    missing, over = (logged - found).total(), (found - logged).total()
    print(f"{logged.total():,} exchanges in the broker's log, {missing} not captured, {over} only captured")
    return int(failed or missing + over > 0)


def _tested(test: Path, folder: Path) -> bool:
    """Run a test; return whether it failed."""
    words = [sys.executable, "-m", "pytest", "-q", "--rootdir", str(folder), str(test)]
    environment = os.environ | {"BROKER": f"127.0.0.1:{PORT}"}
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder, env=environment)
    print(f"{test.name}: {done.stdout.splitlines()[-1] if done.stdout else done.stderr}", flush=True)
    if done.returncode:
        print(done.stdout)
    return done.returncode != 0


def _row(entry: dict[str, object]) -> Row:
    line = request_log.condensed(entry)
    return str(line["api"]).replace("_", "").casefold(), int(str(line["version"])), int(str(line["correlation_id"]))


def _captured(folder: Path) -> list[Row]:
    path = folder / "rows.json"
    return [tuple(row) for row in json.loads(path.read_text())] if path.exists() else []


if __name__ == "__main__":
    try:
        sys.exit(main())
    except MissingToolError as error:
        print(f"lab: {error}", file=sys.stderr)
        sys.exit(2)
