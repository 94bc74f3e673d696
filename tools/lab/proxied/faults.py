"""`python -m tools.lab.proxied.faults [CLIENT…]`: what clients do after a fault, for a page.

Each client produces 40 records, one each 20 ms, and consumes them in a group, with its default settings, against one
broker. What it did afterwards is read from the recording, what became of its records from the topic.
"""

import argparse
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, Final

from tools.lab.node import Cluster
from tools.lab.proxied.aftermath import CONSUMED, Aftermath, aftermath
from tools.lab.proxied.clusters import cluster_plan, ports_of
from tools.lab.proxied.fault_page import FAULTS, read_facts, write_facts
from tools.lab.proxied.island import island
from tools.lab.proxied.run import proxied
from tools.lab.survey import admin
from tools.lab.survey.clients import CLIENTS, SurveyedClient
from tools.lab.tools import MissingToolError, broker_classpath

AT_ONCE: Final = 5
MOST_SECONDS: Final = 60
TASK: Final = "slow-broker"


def one(client: SurveyedClient, name: str, prefix: list[str]) -> Aftermath:
    """Run a client with a fault."""
    topic = f"orders-{client.name}-{name}"
    admin.create(topic, 1, 1)
    program = client.program()
    with proxied(
        lambda server: [*prefix, *program, server, TASK, topic, f"{topic}-group"], ports_of("CLIENTS", 1),
        faults=((name, FAULTS[name]),), seconds=MOST_SECONDS,
    ) as ran:  # fmt: skip
        values = [value.partition(b":")[0] for value in admin.dump(topic).values()]
        found = aftermath(ran.path, ran.failure, ran.fired, values)
    admin.delete(topic)
    return found


def main(arguments: list[str]) -> int:
    """Run them all, or the named ones; 0 if each ran."""
    parser = argparse.ArgumentParser(prog="faults", description=__doc__)
    parser.add_argument("clients", nargs="*", metavar="CLIENT")
    parser.add_argument("--fault", action="append", choices=FAULTS)
    given = parser.parse_args(arguments)
    plan = cluster_plan(1)
    chosen = [each for each in CLIENTS if not given.clients or each.name in given.clients]
    chosen = [each for each in chosen if not each.needs or shutil.which(each.needs)]
    facts: dict[str, Any] = read_facts()
    try:
        if plan.prepare is not None:
            plan.prepare()
        for client in chosen:
            client.program()  # may fetch and compile
        with island() as prefix, Cluster(plan, broker_classpath(plan.release)) as cluster:
            cluster.start()
            admin.warm()
            with ThreadPoolExecutor(AT_ONCE) as pool:
                runs = {
                    (client.name, fault): pool.submit(one, client, fault, prefix)
                    for client in chosen
                    for fault in given.fault or FAULTS
                }
                for client in chosen:
                    entry = facts["clients"].setdefault(client.name, {"faults": {}})
                    entry |= {"title": client.title, "version": client.version}
                    for fault in given.fault or FAULTS:
                        found = runs[client.name, fault].result()
                        print(f"{client.name:16} {fault:24} {found}", flush=True)
                        entry["faults"][fault] = found._asdict()
        facts |= {"broker": plan.release, "run": datetime.now(UTC).date().isoformat(), "records": CONSUMED}
        write_facts(facts)
    except MissingToolError as error:
        print(f"faults: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
