"""Record the survey: each client in each scenario, one cluster at a time, one client at a time."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import cramjam

from tools.lab.node import Cluster
from tools.lab.sniffer import Sniffer, tool
from tools.lab.survey import admin
from tools.lab.survey.clients import SurveyedClient
from tools.lab.survey.clusters import ADMIN_PORT
from tools.lab.survey.earlier import EVERY_CLIENT
from tools.lab.survey.recording_files import LARGEST, RECORDINGS, provenance_path, recording_path
from tools.lab.survey.scenarios import SCENARIOS, SurveyScenario
from tools.lab.tools import broker_classpath

CLIENT_SECONDS = 240


class Choice(NamedTuple):
    """What to record, where to put it."""

    clients: Collection[str]
    scenarios: Mapping[str, int]
    """And how often; 0 for as often as the scenario says."""
    broker: str = ""
    """A release of the broker; empty for the newest."""
    folder: Path = RECORDINGS


def record(choice: Choice) -> Iterator[str]:
    """Record it; a line for each recording."""
    chosen = [each for each in SCENARIOS if each.name in choice.scenarios]
    if choice.broker:
        chosen = [each._replace(plan=replace(each.plan, release=choice.broker)) for each in chosen]
    chosen = [each._replace(times=choice.scenarios[each.name] or each.times) for each in chosen]
    for plan, group in groupby(chosen, key=lambda scenario: scenario.plan):
        yield f"starting {len(plan.nodes)} of Kafka {plan.release} for the survey, administered at port {ADMIN_PORT}"
        with Cluster(plan, broker_classpath(plan.release)) as cluster:
            cluster.start()
            admin.warm()
            for scenario in group:
                for client in EVERY_CLIENT:
                    if client.name in choice.clients:
                        yield from _record_client(client, scenario, cluster, choice.folder)


def _record_client(client: SurveyedClient, scenario: SurveyScenario, cluster: Cluster, folder: Path) -> Iterator[str]:
    label = f"{client.name} {scenario.name}"
    if reason := client.refusal(scenario.name):
        yield f"{label:34} {reason}"
    elif client.needs and not shutil.which(client.needs):
        yield f"{label:34} skipped: needs {client.needs}"
    else:
        program = client.program()
        for number in range(1, scenario.times + 1):
            said, data = _recorded(client, scenario, number, program, cluster)
            path = recording_path(client.name, scenario.name, number).relative_to(RECORDINGS)
            _keep(client, scenario, folder / path, data)
            note = " TOO LARGE" if len(data) > LARGEST else ""
            yield f"{label:34} {len(data):>7,} bytes{note}{f' CLIENT FAILED: {said[-400:]}' if said else ''}"


def _recorded(
    client: SurveyedClient, scenario: SurveyScenario, number: int, program: list[str], cluster: Cluster
) -> tuple[str, bytes]:
    """What it said if it failed, and the capture, compressed."""
    topic, group = (f"{word}-{client.name}-{scenario.name}-{number}" for word in ("orders", "billing"))
    admin.create(topic, scenario.partitions, len(scenario.plan.nodes))
    command = [*program, f"127.0.0.1:{scenario.port}", scenario.task or scenario.name, topic, group]
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "raw.pcapng"
        with scenario.around(), Sniffer(raw, (scenario.port, *scenario.ports)):
            happens = scenario.event
            event = None if happens is None else partial(happens, cluster, topic, group)
            failure = run_client(command, event, CLIENT_SECONDS)
        data = bytes(cramjam.zstd.compress(raw.read_bytes(), level=19))
    admin.clear()
    return failure, data


def _keep(client: SurveyedClient, scenario: SurveyScenario, path: Path, data: bytes) -> None:
    """Write a recording and its provenance."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    provenance = {
        "capture": path.name, "client": client.title, "client_version": client.version, "broker": "Apache Kafka",
        "broker_version": scenario.plan.release, "scenario": scenario.words,
        "recorded": datetime.now(UTC).date().isoformat(), "tool": f"{tool()} on loopback",
    }  # fmt: skip
    provenance_path(path).write_text(json.dumps(provenance) + "\n")


def run_client(command: Sequence[str], event: Callable[[], object] | None, seconds: float) -> str:
    """Run it as `output_of` does; return its output if it failed."""
    code, said = output_of(command, event, seconds, {})
    return said if code else ""


def output_of(
    command: Sequence[str], event: Callable[[], object] | None, seconds: float, environment: Mapping[str, str]
) -> tuple[int, str]:
    """Run it to its end; return its exit code and what it said. `event` happens meanwhile; the client's standard input
    ends when it returns. `environment` is added to that of this process."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=output, stderr=output, env=os.environ | environment
        )
        try:
            if event is not None:
                event()
            process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return 1, f"did not end within {seconds:.0f} s"
        output.seek(0)
        said = output.read().decode(errors="replace").strip()
    return process.returncode, said or ("no word" if process.returncode else "")
