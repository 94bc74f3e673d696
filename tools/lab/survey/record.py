"""Record the survey: each client in each scenario, one cluster at a time, one client at a time."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

import cramjam

from tools.lab.node import Cluster
from tools.lab.sniffer import Sniffer, tool
from tools.lab.survey import admin
from tools.lab.survey.clients import CLIENTS, SurveyedClient
from tools.lab.survey.clusters import ADMIN_PORT
from tools.lab.survey.recording_files import LARGEST, provenance_path, recording_path
from tools.lab.survey.scenarios import SCENARIOS, SurveyScenario, happen
from tools.lab.tools import broker_classpath

CLIENT_SECONDS = 120


def record(clients: Collection[str], scenarios: Collection[str]) -> Iterator[str]:
    """Record the named ones, all for none; a line for each."""
    chosen = [each for each in SCENARIOS if not scenarios or each.name in scenarios]
    for plan, group in groupby(chosen, key=lambda scenario: scenario.plan):
        yield f"starting {len(plan.nodes)} of Kafka {plan.release} for the survey, administered at port {ADMIN_PORT}"
        with Cluster(plan, broker_classpath(plan.release)) as cluster:
            cluster.start()
            admin.warm()
            for scenario in group:
                for client in CLIENTS:
                    if not clients or client.name in clients:
                        yield from _record_client(client, scenario, cluster)


def _record_client(client: SurveyedClient, scenario: SurveyScenario, cluster: Cluster) -> Iterator[str]:
    label = f"{client.name} {scenario.name}"
    if reason := client.cannot.get(scenario.name):
        yield f"{label:34} {reason}"
    elif client.needs and not shutil.which(client.needs):
        yield f"{label:34} skipped: needs {client.needs}"
    else:
        program = client.program()
        for number in range(1, scenario.times + 1):
            yield f"{label:34} {_record_once(client, scenario, number, program, cluster)}"


def _record_once(
    client: SurveyedClient, scenario: SurveyScenario, number: int, program: list[str], cluster: Cluster
) -> str:
    topic, group = (f"{word}-{client.name}-{scenario.name}-{number}" for word in ("orders", "billing"))
    admin.create(topic, scenario.partitions, len(scenario.plan.nodes))
    command = [*program, f"127.0.0.1:{scenario.port}", scenario.name, topic, group]
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "raw.pcapng"
        with scenario.around(), Sniffer(raw, (scenario.port, *scenario.ports)):
            failure = _run_client(command, scenario, cluster, topic)
        data = bytes(cramjam.zstd.compress(raw.read_bytes(), level=19))
    admin.delete(topic)
    path = recording_path(client.name, scenario.name, number)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    provenance = {
        "capture": path.name, "client": client.title, "client_version": client.version, "broker": "Apache Kafka",
        "broker_version": scenario.plan.release, "scenario": scenario.words,
        "recorded": datetime.now(UTC).date().isoformat(), "tool": f"{tool()} on loopback",
    }  # fmt: skip
    provenance_path(client.name, scenario.name, number).write_text(json.dumps(provenance) + "\n")
    note = " TOO LARGE" if len(data) > LARGEST else ""
    return f"{len(data):>7,} bytes{note}{f' CLIENT FAILED: {failure[-400:]}' if failure else ''}"


def _run_client(command: list[str], scenario: SurveyScenario, cluster: Cluster, topic: str) -> str:
    """Run it to its end; return its error output if it failed."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output)
        try:
            if scenario.event is not None:
                happen(scenario, cluster, topic)
            process.communicate(timeout=CLIENT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return f"did not end within {CLIENT_SECONDS} s"
        output.seek(0)
        said = output.read().decode(errors="replace").strip()
    return said or "no word" if process.returncode else ""
