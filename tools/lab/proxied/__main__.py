"""`python -m tools.lab.proxied [--brokers 3] [--way plain|tls|mtls] [CLIENT…]`: the survey's clients through the proxy.

Each runs its task where it reaches nothing but the proxy; every exchange that was recorded is held against the brokers'
logs, and every record that was acknowledged against the topic. With three brokers the leader of the topic moves and a
broker restarts meanwhile. Prints a line for each client; fails on a difference.
"""

import argparse
import shutil
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from dissector.proxy_server.settings import UpstreamTls
from tools.lab import request_log
from tools.lab.node import Cluster
from tools.lab.proxied import truth
from tools.lab.proxied.certificates import client_certificate
from tools.lab.proxied.clusters import BROKERS, cluster_plan, ports_of
from tools.lab.proxied.island import island, reaches
from tools.lab.proxied.run import Way, proxied
from tools.lab.survey import admin
from tools.lab.survey.clients import CLIENTS, SurveyedClient
from tools.lab.tools import BROKER_PEM, MissingToolError, broker_classpath

DOWN_SECONDS: Final = 3
SETTLED_SECONDS: Final = 5
WAYS: Final[dict[str, tuple[str, Callable[[], Way]]]] = {
    "plain": ("CLIENTS", Way),
    "tls": ("TLS", lambda: Way(UpstreamTls(ca=str(BROKER_PEM)))),
    "mtls": ("MTLS", lambda: Way(UpstreamTls(str(BROKER_PEM), *map(str, client_certificate())))),
}
"""The listener of the brokers, and how the proxy connects to it; clients speak plain to the proxy."""


def _trouble(cluster: Cluster, topic: str) -> None:
    """Move the leader of the topic, and restart a broker that is not the controller."""
    time.sleep(2 * SETTLED_SECONDS)
    admin.move_leader(topic)
    time.sleep(SETTLED_SECONDS)
    cluster.restart("broker-2", DOWN_SECONDS)
    time.sleep(2 * SETTLED_SECONDS)


def one(client: SurveyedClient, cluster: Cluster, brokers: int, way: str, prefix: list[str]) -> tuple[str, bool]:
    """Run one; a line, and whether all is as it should be."""
    listener, how = WAYS[way]
    ports = ports_of(listener, brokers)
    topic = f"orders-{client.name}-{way}-{brokers}"
    admin.create(topic, 1 if brokers > 1 else 2, brokers)
    starts = {log: request_log.settled(log) for log in cluster.logs}
    task = "leader-moved" if brokers > 1 else "plain"
    program = client.program()

    def command(server: str) -> list[str]:
        return [*prefix, *program, server, task, topic, f"{topic}-group"]

    event = partial(_trouble, cluster, topic) if brokers > 1 else None
    with proxied(command, ports, how(), event=event) as ran:
        logged = [line for log, start in starts.items() for line in request_log.lines(log, start)]
        held = truth.hold(ran.path, logged, ports, login=False)
        places, elsewhere = truth.acknowledged(ran.path)
    lost = truth.lost(places, admin.dump(topic))
    admin.delete(topic)
    stopped = brokers > 1  # what a broker answers last before it stops, it may not log
    bad = bool(ran.failure or held.missing or lost or (held.over and not stopped) or not held.equal)
    words = (
        f"{client.name:16} {way:5} {brokers} brokers: {held.equal:5} exchanges equal ({held.values:,} values), "
        f"{len(held.missing)} missing, {len(held.over)} only recorded; {len(places)} records acknowledged, "
        f"{len(lost)} lost{f', {elsewhere} without an offset' if elsewhere else ''}"
    )
    details = [ran.failure[-300:], *ran.said[:3], *held.missing[:3], *held.over[:3]] if bad else []
    return "\n    ".join([words, *filter(None, details)]), not bad


def main(arguments: list[str]) -> int:
    """Run them; 0 if nothing differs."""
    parser = argparse.ArgumentParser(prog="proxied", description=__doc__)
    parser.add_argument("clients", nargs="*", metavar="CLIENT")
    parser.add_argument("--brokers", type=int, default=1, choices=(1, BROKERS))
    parser.add_argument("--way", action="append", choices=WAYS)
    given = parser.parse_args(arguments)
    chosen = [each for each in CLIENTS if not given.clients or each.name in given.clients]
    plan = cluster_plan(given.brokers)
    good = True
    try:
        if plan.prepare is not None:
            plan.prepare()
        with island() as prefix, Cluster(plan, broker_classpath(plan.release)) as cluster:
            cluster.start()
            admin.warm()
            direct = [port for port in ports_of("CLIENTS", given.brokers) if reaches(prefix, port)]
            print(f"clients reach {len(direct)} brokers directly", flush=True)
            good = not direct
            for way in given.way or ["plain"]:
                for client in chosen:
                    if client.needs and not shutil.which(client.needs):
                        print(f"{client.name:16} skipped: needs {client.needs}")
                        continue
                    line, is_good = one(client, cluster, given.brokers, way, prefix)
                    print(line, flush=True)
                    good &= is_good
    except MissingToolError as error:
        print(f"proxied: {error}", file=sys.stderr)
        return 2
    return int(not good)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
