"""`python -m tools.lab.proxied [--brokers 3] [--way WAY]… [CLIENT…]`: the survey's clients through the proxy.

Each runs its task where it reaches nothing but the proxy; every exchange that was recorded is held against the brokers'
logs, and every record that was acknowledged against the topic. With three brokers the leader of the topic moves and a
broker restarts meanwhile. Prints a line for each client, keeps what came of it for the page, and fails on a difference.

Clients at one broker go several ways at a time, those of a listener one after the other: so the log of a listener is
that of one client.
"""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby
from typing import Final, NamedTuple

from tools.lab import request_log
from tools.lab.node import Cluster
from tools.lab.proxied import truth
from tools.lab.proxied.clusters import BROKERS, cluster_plan, ports_of
from tools.lab.proxied.island import island, loopback_packets, reaches
from tools.lab.proxied.results import Outcome, keep
from tools.lab.proxied.run import proxied
from tools.lab.proxied.ways import WAYS, Way
from tools.lab.survey import admin
from tools.lab.survey.clients import CLIENTS, SurveyedClient
from tools.lab.tools import BUILD, MissingToolError, broker_classpath

AT_ONCE: Final = 2
DOWN_SECONDS: Final = 3
SETTLED_SECONDS: Final = 5
_LOGGED_SECONDS: Final = 2
"""Behind the last exchange, until a broker has logged it."""
_FIRST_LINES: Final = 3


def _trouble(cluster: Cluster, topic: str) -> None:
    """Move the leader of the topic, and restart a broker that is not the controller."""
    time.sleep(2 * SETTLED_SECONDS)
    admin.move_leader(topic)
    time.sleep(SETTLED_SECONDS)
    cluster.restart("broker-2", DOWN_SECONDS)
    time.sleep(2 * SETTLED_SECONDS)


class Client(NamedTuple):
    """One of the survey, ready to run."""

    of: SurveyedClient
    command: list[str]
    """What runs its program on the island; empty if it can't run."""


def one(client: Client, cluster: Cluster, brokers: int, way: Way) -> Outcome:
    """Run one."""
    name = client.of.name
    ports = ports_of(way.listener, brokers)
    topic = f"orders-{name}-{way.name}-{brokers}"
    admin.create(topic, 1 if brokers > 1 else 2, brokers)
    starts = {log: log.stat().st_size for log in cluster.logs}
    task = "leader-moved" if brokers > 1 else "plain"

    def command(server: str) -> list[str]:
        return [*client.command, server, task, topic, f"{topic}-group"]

    event = partial(_trouble, cluster, topic) if brokers > 1 else None
    with proxied(command, ports, way, event=event) as ran:
        time.sleep(_LOGGED_SECONDS)
        logged = [line for log, start in starts.items() for line in request_log.since(log, start)]
        held = truth.hold(ran.path, logged, ports, login=bool(way.mechanism))
        places, elsewhere = truth.acknowledged(ran.path)
    lost = truth.lost(places, admin.dump(topic))
    admin.clear(topic)  # and not those of other ways, which run now
    return Outcome(
        client.of.title, client.of.version, held.equal, held.values, held.missing, held.over, len(places), len(lost),
        elsewhere, ran.failure[-300:], ran.said,
    )  # fmt: skip


def _each(clients: Iterable[Client], cluster: Cluster, brokers: int, way: Way) -> bool:
    """Run clients one way; whether all is as it should be."""
    good = True
    for client in clients:
        name = client.of.name
        reason = way.refusal(client.of) or ("" if client.command else f"not run: needs {client.of.needs}")
        if reason:
            print(f"{name:16} {way.name:11} {reason}", flush=True)
            keep(brokers, way.name, name, Outcome(client.of.title, client.of.version, refusal=reason))
            continue
        found = one(client, cluster, brokers, way)
        keep(brokers, way.name, name, found)
        print(f"{name:16} {way.name:11} {brokers} brokers: {found.words}", flush=True)
        for line in [] if found.is_good else found.details(_FIRST_LINES):
            print(f"    {line}", flush=True)
        good &= found.is_good
    return good


def _ready(client: SurveyedClient, prefix: list[str]) -> Client:
    """Fetch and compile what it needs."""
    return Client(client, [] if client.needs and not shutil.which(client.needs) else [*prefix, *client.program()])


def main(arguments: list[str]) -> int:
    """Run them; 0 if nothing differs."""
    parser = argparse.ArgumentParser(prog="proxied", description=__doc__)
    parser.add_argument("clients", nargs="*", metavar="CLIENT")
    parser.add_argument("--brokers", type=int, default=1, choices=(1, BROKERS))
    parser.add_argument("--way", action="append", choices=WAYS, help="each, unless given")
    given = parser.parse_args(arguments)
    chosen = [each for each in CLIENTS if not given.clients or each.name in given.clients]
    ways = [WAYS[name] for name in given.way or WAYS]
    plan = cluster_plan(given.brokers)
    os.environ["XDG_DATA_HOME"] = str(BUILD / "data")  # the CA of the lab's proxy, not that of whoever runs it
    try:
        if plan.prepare is not None:
            plan.prepare()
        with island() as prefix, Cluster(plan, broker_classpath(plan.release)) as cluster:
            cluster.start()
            admin.warm()
            direct = [port for port in ports_of("CLIENTS", given.brokers) if reaches(prefix, port)]
            print(f"clients reach {len(direct)} brokers directly", flush=True)
            before = loopback_packets(prefix)
            clients = [_ready(each, prefix) for each in chosen]

            def go(ways_of_listener: list[Way]) -> bool:
                return sum(not _each(clients, cluster, given.brokers, way) for way in ways_of_listener) == 0

            listeners = [[*each] for _, each in groupby(sorted(ways, key=_listener), key=_listener)]
            with ThreadPoolExecutor(AT_ONCE if given.brokers == 1 else 1) as pool:
                good = all([*pool.map(go, listeners)])
            tried = loopback_packets(prefix) - before
            print(f"clients sent {tried} packets to the addresses of brokers", flush=True)
    except MissingToolError as error:
        print(f"proxied: {error}", file=sys.stderr)
        return 2
    return int(not good or bool(direct) or bool(tried))


def _listener(way: Way) -> str:
    return way.listener


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
