"""`python -m tests.lab [NAME…]`: record the captures anew, all or the named ones."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime

from tests.lab import request_log
from tests.lab.broker import Broker
from tests.lab.scenarios import SCENARIOS, Scenario
from tests.lab.sniffer import Sniffer, tool
from tests.lab.tools import ROOT, MissingToolError, classpath, client_version, kafka_version

PCAPS = ROOT / "pcaps"
LARGEST = 300_000
CLIENT_SECONDS = 120


def record(scenario: Scenario, broker: Broker, jars: str) -> str:
    """Run one client under the sniffer; a line for the summary."""
    capture = PCAPS / f"{scenario.name}.pcapng"
    command = scenario.command(jars)  # may fetch and compile: before the sniffer listens
    start = broker.log.stat().st_size
    with Sniffer(capture):
        failure = run_client(command)
    entries = list(request_log.exchanges(broker.log, start, request_log.settled(broker.log)))
    request_log.write(PCAPS / f"{scenario.name}.broker.ndjson", entries)
    provenance = {
        "capture": capture.name, "client": scenario.client, "client_version": client_version(scenario.client),
        "broker": "Apache Kafka", "broker_version": kafka_version(), "scenario": scenario.words,
        "recorded": datetime.now(UTC).date().isoformat(), "tool": f"{tool()} on loopback",
    }  # fmt: skip
    (PCAPS / f"{scenario.name}.provenance.json").write_text(json.dumps(provenance) + "\n")
    apis = Counter(str(request_log.condensed(entry)["api"]) for entry in entries)
    size = capture.stat().st_size
    note = " TOO LARGE" if size > LARGEST else ""
    if failure:
        note += f" CLIENT FAILED: {failure[-600:]}"
    return f"{scenario.name:24} {size:>8,} bytes {len(entries):>5} exchanges {len(apis):>3} APIs{note}"


def run_client(command: list[str]) -> str:
    """Run it to its end; what it said if it failed, else nothing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=CLIENT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"did not end within {CLIENT_SECONDS} s"
    return (done.stderr or done.stdout or "no word").strip() if done.returncode else ""


def main(names: list[str]) -> int:
    """Record; 0 if every client ran to its end."""
    unknown = set(names) - {scenario.name for scenario in SCENARIOS}
    if unknown:
        print(f"lab: no scenario {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    try:
        tool()
        jars = classpath()
        PCAPS.mkdir(exist_ok=True)
        lines: list[str] = []
        print("starting the broker", flush=True)
        with Broker(jars) as broker:
            for scenario in SCENARIOS:
                if not names or scenario.name in names:
                    absent = [program for program in scenario.needs if not shutil.which(program)]
                    line = (
                        f"{scenario.name:24} skipped: needs {absent[0]}" if absent else record(scenario, broker, jars)
                    )
                    lines.append(line)
                    print(line, flush=True)
    except MissingToolError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2
    return int(any("FAILED" in line or "LARGE" in line for line in lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
