"""`python -m tests.lab [NAME…]`: record the captures anew, all or the named ones."""

import json
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime

from tests.lab import request_log
from tests.lab.broker import Broker
from tests.lab.scenarios import SCENARIOS, Scenario, version_of
from tests.lab.sniffer import Sniffer
from tests.lab.tools import ROOT, MissingToolError, classpath, kafka_version

PCAPS = ROOT / "pcaps"
LARGEST = 300_000
CLIENT_SECONDS = 120


def record(scenario: Scenario, broker: Broker, jars: str) -> str:
    """Run one client under the sniffer; a line for the summary."""
    capture = PCAPS / f"{scenario.name}.pcapng"
    start = broker.log.stat().st_size
    with Sniffer(capture):
        command = scenario.command(jars)
        done = subprocess.run(command, capture_output=True, text=True, timeout=CLIENT_SECONDS, check=False)
    time.sleep(1)
    entries = list(request_log.exchanges(broker.log, start, broker.log.stat().st_size))
    request_log.write(PCAPS / f"{scenario.name}.broker.ndjson", entries)
    provenance = {
        "capture": capture.name, "client": scenario.client, "client_version": version_of(scenario.client),
        "broker": "Apache Kafka", "broker_version": kafka_version(), "scenario": scenario.words,
        "recorded": datetime.now(UTC).date().isoformat(), "tool": "dumpcap on loopback",
    }  # fmt: skip
    (PCAPS / f"{scenario.name}.provenance.json").write_text(json.dumps(provenance) + "\n")
    apis = Counter(str(request_log.condensed(entry)["api"]) for entry in entries)
    size = capture.stat().st_size
    note = " TOO LARGE" if size > LARGEST else ""
    if done.returncode:
        note += f" CLIENT FAILED: {(done.stderr or done.stdout).strip()[-600:]}"
    return f"{scenario.name:24} {size:>8,} bytes {len(entries):>5} exchanges {len(apis):>3} APIs{note}"


def main(names: list[str]) -> int:
    """Record; 0 if every client ran to its end."""
    unknown = set(names) - {scenario.name for scenario in SCENARIOS}
    if unknown:
        print(f"lab: no scenario {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    try:
        jars = classpath()
        PCAPS.mkdir(exist_ok=True)
        lines: list[str] = []
        print("starting the broker", flush=True)
        with Broker(jars) as broker:
            for scenario in SCENARIOS:
                if not names or scenario.name in names:
                    lines.append(record(scenario, broker, jars))
                    print(lines[-1], flush=True)
    except MissingToolError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2
    return int(any("FAILED" in line or "LARGE" in line for line in lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
