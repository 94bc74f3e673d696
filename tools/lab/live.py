"""`python -m tools.lab.live`: clients over TLS at a real broker, watched by `kdissect live` while the key log grows.

The rows that it prints, as text, are held to the broker's request log: none missing, none over. In one run the key log
is the one that the broker's agent writes; in another one it is empty until a connection has had many exchanges, and has
the broker's lines from then on. Prints a line for each run, and fails on a difference.
"""

import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Final

from tools.lab import request_log
from tools.lab.__main__ import run_client
from tools.lab.node import Cluster
from tools.lab.plans import TLS_BROKER, TLS_PORT
from tools.lab.scenarios import ENCRYPTED, SCENARIOS
from tools.lab.tools import BROKER_PEM, KEY_LOG, MissingToolError, broker_classpath, classpath

RECORDS: Final = 20_000
"""Of the producer that makes the most of the exchanges, one a request."""
LATE: Final = 2_000_000
"""Bytes of the request log after which the late key log has its first secrets: some thousands of exchanges."""
LONGEST: Final = 120
"""Seconds until rows that have not come count as lost."""
_STEP: Final = 0.1
Row = tuple[str, int, int]
"""API, version and correlation id."""


def main() -> int:
    """Both runs; 0 if nothing differs."""
    jars = classpath()
    assert TLS_BROKER.prepare is not None
    TLS_BROKER.prepare()
    differs = False
    with Cluster(TLS_BROKER, broker_classpath(TLS_BROKER.release)) as cluster, tempfile.TemporaryDirectory() as name:
        cluster.start()
        [log] = cluster.logs
        late = Path(name) / "late.log"
        for title, key_log in (("a key log that grows", KEY_LOG), ("a key log that comes late", late)):
            began = time.monotonic()
            differences, line = _watched(jars, log, Path(name) / "rows", key_log)
            print(f"{title}: {line}; {time.monotonic() - began:.0f} s", flush=True)
            differs |= bool(differences)
    return int(differs)


def _watched(jars: str, log: Path, printed: Path, key_log: Path) -> tuple[int, str]:
    """Run clients beside `kdissect live`; how many rows differ, and a line on them."""
    start, ended = log.stat().st_size, threading.Event()
    key_log.touch()
    command = [sys.executable, "-m", "dissector.cli.main", "live", "-p", str(TLS_PORT), "--keylog", str(key_log)]
    with printed.open("wb") as rows:
        process = subprocess.Popen(command, stdout=rows, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    if "capturing on" not in (said := process.stderr.readline()):
        raise MissingToolError(said.strip())
    follower = threading.Thread(target=_follow, args=(log, start + LATE, key_log, ended))
    if key_log != KEY_LOG:
        follower.start()
    failures = [failure for client in _clients(jars) if (failure := run_client(client))]
    logged = Counter(_logged(request_log.lines(log, start)))
    deadline = time.monotonic() + LONGEST
    while logged - _printed(printed) and time.monotonic() < deadline:
        time.sleep(_STEP)
    ended.set()
    process.send_signal(signal.SIGINT)
    summary = process.communicate()[1].splitlines()[-1]
    if failures:
        raise MissingToolError(failures[0])
    found = _printed(printed)
    missing, over = (logged - found).total(), (found - logged).total()
    counts = f"{logged.total():,} exchanges in the broker's log, {missing} not printed, {over} only printed"
    return missing + over, f"{counts}; {summary}"


def _clients(jars: str) -> list[list[str]]:
    """A producer with many requests, and the clients of the recordings at this port."""
    settings = [
        f"bootstrap.servers=127.0.0.1:{TLS_PORT}", "security.protocol=SSL", "ssl.truststore.type=PEM",
        f"ssl.truststore.location={BROKER_PEM}", "linger.ms=0", "batch.size=1",
    ]  # fmt: skip
    producer = [
        "java", "-Xmx256m", "-cp", jars, "org.apache.kafka.tools.ProducerPerformance", "--topic", "watched",
        "--num-records", str(RECORDS), "--record-size", "100", "--throughput", "-1", "--producer-props", *settings,
    ]  # fmt: skip
    recorded = [
        scenario.command(jars) for scenario in SCENARIOS
        if scenario.name in (f"{ENCRYPTED}/java-1.3", f"{ENCRYPTED}/aiokafka-1.3")
    ]  # fmt: skip
    return [producer, *recorded]


def _follow(log: Path, size: int, key_log: Path, ended: threading.Event) -> None:
    """Copy the broker's key log, once the request log has a size, and what it grows by until the end."""
    copied = 0
    while not ended.wait(_STEP):
        if log.stat().st_size < size:
            continue
        with KEY_LOG.open("rb") as source, key_log.open("ab") as target:
            source.seek(copied)
            copied += target.write(source.read())


def _logged(lines: list[str]) -> list[Row]:
    entries = map(request_log.condensed, request_log.exchanges(lines, (TLS_PORT,)))
    return [
        (str(each["api"]).replace("_", "").casefold(), int(str(each["version"])), int(str(each["correlation_id"])))
        for each in entries
    ]


def _printed(path: Path) -> Counter[Row]:
    """Whole lines with a response."""
    found: Counter[Row] = Counter()
    for line in path.read_text().splitlines()[1:]:
        with suppress(ValueError, IndexError):
            _, _, _, api, version, correlation_id, *_ = line.split()
            found[api.casefold(), int(version), int(correlation_id)] += 1
    return found


if __name__ == "__main__":
    try:
        sys.exit(main())
    except MissingToolError as error:
        print(f"lab: {error}", file=sys.stderr)
        sys.exit(2)
