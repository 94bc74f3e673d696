"""`python -m tools.lab.proxied.faults [--fault NAME]… [CLIENT…]`: record what clients do after a fault.

Each client produces 40 records, one each 20 ms, and consumes them in a group, with its default settings, against one
broker; the proxy injects one fault. Its program goes on after errors, and says what the client told it. The recording
of the proxy is kept, and beside it what the program said and what is in the topic. The page is made from these.
"""

import argparse
import json
import os
import shutil
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Final

import cramjam

from tools.lab.node import Cluster
from tools.lab.proxied.clusters import cluster_plan, ports_of
from tools.lab.proxied.fault_recordings import fault_recording
from tools.lab.proxied.fault_rules import FAULTS, InjectedFault
from tools.lab.proxied.island import island
from tools.lab.proxied.run import proxied
from tools.lab.proxied.ways import WAYS
from tools.lab.survey import admin
from tools.lab.survey.clients import CLIENTS, SurveyedClient
from tools.lab.survey.recording_files import LARGEST, provenance_path
from tools.lab.tools import BUILD, MissingToolError, broker_classpath

AT_ONCE: Final = 3
MOST_SECONDS: Final = 300
TASK: Final = "faulted"
MOST_TOLD: Final = 12
"""Different lines of what a program was told that are kept."""
_TOLD: Final = ("not delivered: ", "thrown: ")


def record(client: SurveyedClient, command: list[str], fault: InjectedFault, release: str) -> str:
    """Run a client into a fault; a line on it."""
    topic = f"orders-{client.name}-{fault.name}"
    admin.create(topic, 1, 1)
    with proxied(
        lambda server: [*command, server, TASK, topic, f"{topic}-group"], ports_of("CLIENTS", 1), WAYS["plain"],
        seconds=MOST_SECONDS, faults=((fault.name, fault.rule),),
    ) as ran:  # fmt: skip
        values = Counter(value.partition(b":")[0] for value in admin.dump(topic).values())
        data = bytes(cramjam.zstd.compress(ran.path.read_bytes(), level=19))
    admin.clear()
    path = fault_recording(client.name, fault.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    provenance = {
        "capture": path.name, "client": client.title, "client_version": client.version, "broker": "Apache Kafka",
        "broker_version": release, "scenario": f"40 records, one each 20 ms, then read in a group; {fault.rule}",
        "recorded": datetime.now(UTC).date().isoformat(), "tool": "kdissect proxy", "fired": ran.fired,
        "there": len(values), "twice": values.total() - len(values), **_said(ran.failure),
    }  # fmt: skip
    provenance_path(path).write_text(json.dumps(provenance) + "\n")
    note = " TOO LARGE" if len(data) > LARGEST else ""
    return f"{client.name:16} {fault.name:20} {len(data):>7,} bytes{note}, fired {ran.fired}, {ran.failure[-200:]!r}"


def _said(output: str) -> dict[str, object]:
    """What a program said: what it was told, each line with how often; how many records were refused, and were read."""
    lines = output.splitlines()
    told = Counter(line for line in lines if line.startswith(_TOLD))
    seen = next((int(line.removeprefix("seen: ")) for line in lines if line.startswith("seen: ")), None)
    refused = sum(line.startswith(_TOLD[0]) for line in lines)
    return {"told": told.most_common(MOST_TOLD), "refused": refused, "seen": seen}


def main(arguments: list[str]) -> int:
    """Run them all, or the named ones; 0 if each ran."""
    parser = argparse.ArgumentParser(prog="faults", description=__doc__)
    parser.add_argument("clients", nargs="*", metavar="CLIENT")
    parser.add_argument("--fault", action="append", choices=[fault.name for fault in FAULTS])
    given = parser.parse_args(arguments)
    os.environ["XDG_DATA_HOME"] = str(BUILD / "data")
    plan = cluster_plan(1)
    chosen = [each for each in CLIENTS if not given.clients or each.name in given.clients]
    faults = [fault for fault in FAULTS if not given.fault or fault.name in given.fault]
    try:
        if plan.prepare is not None:
            plan.prepare()
        with island() as prefix, Cluster(plan, broker_classpath(plan.release)) as cluster:
            cluster.start()
            admin.warm()
            with ThreadPoolExecutor(AT_ONCE) as pool:
                runs = []
                for client in chosen:
                    if client.needs and not shutil.which(client.needs):
                        print(f"{client.name:16} not run: needs {client.needs}", flush=True)
                        continue
                    command = [*prefix, *client.program()]
                    possible = [fault for fault in faults if not refusal(client, fault)]
                    runs += [pool.submit(record, client, command, fault, plan.release) for fault in possible]
                for run in runs:
                    print(run.result(), flush=True)
    except MissingToolError as error:
        print(f"faults: {error}", file=sys.stderr)
        return 2
    return 0


def refusal(client: SurveyedClient, fault: InjectedFault) -> str:
    """Why a client can't meet a fault; empty if it can."""
    return client.refusal("group-classic") if fault.api == "OffsetCommit" else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
