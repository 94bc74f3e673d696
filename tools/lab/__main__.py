"""`python -m tools.lab [NAME…]`: record the captures again, all or the named ones."""

import gzip
import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from tools.lab import group_log, key_log, request_log
from tools.lab.node import Cluster
from tools.lab.scenarios import CARRIED, CLIENT_SECONDS, ENCRYPTED, MISTAKES, REBALANCES, SCENARIOS, Scenario
from tools.lab.sniffer import QUIET_SECONDS, Sniffer, tool
from tools.lab.tools import ROOT, MissingToolError, broker_classpath, classpath, client_version

PCAPS = ROOT / "pcaps"
LARGEST = 300_000


def record(scenario: Scenario, cluster: Cluster, jars: str) -> str:
    """Run one client under the sniffer; a line for the summary."""
    capture = PCAPS / f"{scenario.name}.pcapng"
    command = scenario.command(jars)  # may fetch and compile: before the sniffer listens
    failure = warmed(scenario, jars)
    starts = {log: log.stat().st_size for log in cluster.logs}
    secrets = scenario.key_log.stat().st_size if scenario.key_log.exists() else 0
    with Sniffer(capture, scenario.ports):
        failure = failure or run_client(command, scenario.seconds)
    if capture.parent.name == ENCRYPTED:
        key_log.inject(capture, key_log.of_capture(capture, scenario.key_log.read_bytes()[secrets:]))
    logged = [line for log, start in starts.items() for line in request_log.lines(log, start)]
    return kept(scenario, capture, logged, failure)


def warmed(scenario: Scenario, jars: str) -> str:
    """Run what comes before any recording, until its last connections end; return its error output if it failed."""
    if scenario.before is None:
        return ""
    failure = run_client(scenario.before(jars), scenario.seconds)
    time.sleep(QUIET_SECONDS)
    return failure


def record_whole(scenario: Scenario, cluster: Cluster, jars: str) -> str:
    """The life of a cluster, with one client in it."""
    capture = PCAPS / f"{scenario.name}.pcapng"
    command = scenario.command(jars)
    with Sniffer(capture, scenario.ports):
        cluster.start()
        failure = run_client(command, scenario.seconds)
        cluster.stop()
    logged = [line for log in cluster.logs for line in request_log.lines(log, 0)]
    return kept(scenario, capture, logged, failure)


def kept(scenario: Scenario, capture: Path, logged: list[str], failure: str) -> str:
    """Write what goes beside a capture; a line for the summary."""
    entries = list(request_log.exchanges(logged, scenario.ports))
    if capture.parent.name == REBALANCES:
        group_log.write(capture.with_suffix(".group.log"), logged)
        capture = compressed(capture)
    else:
        request_log.write(capture.with_suffix(".broker.ndjson"), entries)
    provenance = {
        "capture": capture.name, "client": scenario.client, "client_version": client_version(scenario.client),
        "broker": "Apache Kafka", "broker_version": scenario.plan.release, "scenario": scenario.words,
        "recorded": datetime.now(UTC).date().isoformat(), "tool": f"{tool()} on loopback",
    }  # fmt: skip
    if scenario.plan.whole:
        provenance["until"] = "every node had stopped"
    if logins := request_log.logins(logged):
        provenance["logins"] = logins
    (PCAPS / f"{scenario.name}.provenance.json").write_text(json.dumps(provenance) + "\n")
    apis = Counter(str(request_log.condensed(entry)["api"]) for entry in entries)
    size = capture.stat().st_size
    note = " TOO LARGE" if size > LARGEST else ""
    if failure:
        note += f" CLIENT FAILED: {failure[-600:]}"
    return f"{scenario.name:30} {size:>8,} bytes {len(entries):>5} exchanges {len(apis):>3} APIs{note}"


def compressed(capture: Path) -> Path:
    """Compress a capture, the same bytes for the same packets: minutes of heartbeats are alike."""
    packed = capture.with_name(f"{capture.name}.gz")
    packed.write_bytes(gzip.compress(capture.read_bytes(), mtime=0))
    capture.unlink()
    return packed


def run_client(command: list[str], seconds: int = CLIENT_SECONDS) -> str:
    """Run it to its end; return its error output if it failed, else an empty text."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return f"did not end within {seconds} s"
    return (done.stderr or done.stdout or "no word").strip() if done.returncode else ""


def recorded(scenarios: Iterable[Scenario]) -> Iterator[str]:
    """Record these, one cluster after the other; a line for each."""
    jars = classpath()
    for plan, group in groupby(scenarios, key=lambda scenario: scenario.plan):
        yield f"starting {' and '.join(node.name for node in plan.nodes)} of Kafka {plan.release}"
        if plan.prepare is not None:
            plan.prepare()
        with Cluster(plan, broker_classpath(plan.release)) as cluster:
            if not plan.whole:
                cluster.start()
            for scenario in group:
                absent = [program for program in scenario.needs if not shutil.which(program)]
                how = record_whole if plan.whole else record
                yield f"{scenario.name:30} skipped: needs {absent[0]}" if absent else how(scenario, cluster, jars)


def main(names: list[str]) -> int:
    """Record; 0 if every client ran to its end."""
    unknown = set(names) - {scenario.name for scenario in SCENARIOS}
    if unknown:
        print(f"lab: no scenario {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    failed = False
    try:
        tool()
        for folder in (MISTAKES, ENCRYPTED, CARRIED, REBALANCES):
            (PCAPS / folder).mkdir(parents=True, exist_ok=True)
        for line in recorded(scenario for scenario in SCENARIOS if not names or scenario.name in names):
            print(line, flush=True)
            failed |= "FAILED" in line or "LARGE" in line
    except MissingToolError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
