"""Records what a network does to Kafka: `python -m tools.lab.network [SCENARIO ...]` (Linux, as root, with nft, tc and
tcpdump).

A client and a broker of plain sockets (`network_ends`) talk through a router: each in its network namespace, removed at
the end. They exchange Metadata only, as lists of topics can have any size. The network is the kernel's: its TCP, its
queues, its address translation.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tools.lab.network_ends import (
    ANSWERS,
    BROKER_ADDRESS,
    CLIENTS,
    PORT,
    SERVICE_ADDRESS,
    Answer,
    huge,
    in_two_pieces,
    large,
    late_by_itself,
    plain,
    serve,
    silent,
    slow_once,
)

FOLDER: Final = Path(__file__).parents[2] / "pcaps" / "network"
CLIENT, ROUTER, BROKER = "kd-client", "kd-router", "kd-broker"
SETUP: Final = f"""
ip netns add {CLIENT}
ip netns add {ROUTER}
ip netns add {BROKER}
ip link add c0 netns {CLIENT} type veth peer name r0 netns {ROUTER}
ip link add b0 netns {BROKER} type veth peer name r1 netns {ROUTER}
ip -n {CLIENT} addr add 10.1.0.2/24 dev c0
ip -n {ROUTER} addr add 10.1.0.1/24 dev r0
ip -n {ROUTER} addr add 10.2.0.1/24 dev r1
ip -n {BROKER} addr add {BROKER_ADDRESS}/24 dev b0
ip -n {CLIENT} link set c0 gso_max_segs 1 up
ip -n {BROKER} link set b0 gso_max_segs 1 up
ip -n {ROUTER} link set r0 gso_max_segs 1 up
ip -n {ROUTER} link set r1 gso_max_segs 1 up
ip -n {CLIENT} route add default via 10.1.0.1
ip -n {BROKER} route add default via 10.2.0.1
ip netns exec {ROUTER} sysctl -qw net.ipv4.ip_forward=1
"""
SMALL_MTU: Final = f"""
ip -n {ROUTER} link set r1 mtu 1300
ip netns exec {ROUTER} nft add table ip f
ip netns exec {ROUTER} nft add chain ip f o {{ type filter hook output priority 0 ; }}
ip netns exec {ROUTER} nft add rule ip f o ip protocol icmp drop
"""
SMALL_MTU_BACK: Final = SMALL_MTU.replace("r1 mtu", "r0 mtu")
FORGET: Final = f"""
ip netns exec {ROUTER} nft add table ip f
ip netns exec {ROUTER} nft add chain ip f w {{ type filter hook forward priority 0 ; }}
ip netns exec {ROUTER} nft add rule ip f w tcp dport {PORT} drop
"""
REMEMBER: Final = f"ip netns exec {ROUTER} nft delete table ip f"
TRANSLATE: Final = f"""
ip netns exec {ROUTER} nft add table ip n
ip netns exec {ROUTER} nft add chain ip n p {{ type nat hook prerouting priority -100 ; }}
ip netns exec {ROUTER} nft add rule ip n p ip daddr {SERVICE_ADDRESS} tcp dport {PORT} dnat to {BROKER_ADDRESS}:19092
"""
MASQUERADE: Final = f"""
{TRANSLATE}
ip netns exec {ROUTER} nft add chain ip n q {{ type nat hook postrouting priority 100 ; }}
ip netns exec {ROUTER} nft add rule ip n q ip daddr {BROKER_ADDRESS} masquerade
"""
SLOW_LINK: Final = f"ip netns exec {ROUTER} tc qdisc add dev r0 root tbf rate 1mbit burst 16kb latency 4000ms"


def run(commands: str) -> None:
    """Run commands, a line each."""
    for line in filter(None, map(str.strip, commands.splitlines())):
        subprocess.run(line.split(), check=True)


def in_namespace(name: str, *words: str) -> list[str]:
    """A command in a namespace."""
    return ["ip", "netns", "exec", name, *words]


class Lab:
    """What a scenario may do while it is recorded."""

    def __init__(self, broker: "subprocess.Popen[str]") -> None:
        self.broker = broker

    def client(self, what: str) -> "subprocess.Popen[str]":
        """Start a client: a word of `CLIENTS`."""
        return subprocess.Popen(in_namespace(CLIENT, sys.executable, "-m", "tools.lab.network", "--client", what))


def _simply(what: str) -> Callable[[Lab], None]:
    def act(lab: Lab) -> None:
        lab.client(what).wait()

    return act


def _meanwhile(what: str, after: float, commands: str, then: tuple[float, str] | None = None) -> Callable[[Lab], None]:
    """A client, and commands while it runs."""

    def act(lab: Lab) -> None:
        client = lab.client(what)
        time.sleep(after)
        run(commands)
        if then is not None:
            time.sleep(then[0])
            run(then[1])
        client.wait()

    return act


def _stopped(connections: int) -> Callable[[Lab], None]:
    """Clients of a broker that is stopped for a second in their middle."""

    def act(lab: Lab) -> None:
        clients = [lab.client("steady") for _ in range(connections)]
        time.sleep(2.2)
        children = subprocess.run(["pgrep", "-P", str(lab.broker.pid)], capture_output=True, text=True, check=False)
        process = (children.stdout.split() or [str(lab.broker.pid)])[0]
        run(f"kill -STOP {process}")
        time.sleep(1)
        run(f"kill -CONT {process}")
        for client in clients:
            client.wait()

    return act


@dataclass(frozen=True)
class Scenario:
    """A recording."""

    words: str
    act: Callable[[Lab], None]
    answer: Answer = plain
    setup: str = ""
    where: str = CLIENT
    interface: str = "c0"
    port: int = PORT


SCENARIOS: Final[dict[str, Scenario]] = {
    "mtu": Scenario("a link on the path has MTU 1300, its ICMP is dropped; a request of 5 kB",
                    _simply("small-then-large"), setup=SMALL_MTU),
    "mtu-response": Scenario("the same on the way back: a response of 5 kB, captured at the broker", _simply("small"),
                             large, SMALL_MTU_BACK, BROKER, "b0"),
    "mtu-passes": Scenario("requests of 5 kB through a network without trouble", _simply("small-then-large")),
    "firewall-forgot": Scenario("a router drops a connection's packets after 62 s of silence",
                                _meanwhile("idle", 60, FORGET)),
    "path-lost": Scenario("a router drops a connection's packets after a second",
                          _meanwhile("short-pause", 0.8, FORGET)),
    "loss-recovered": Scenario("a router drops packets for two seconds, then no more",
                               _meanwhile("short-pause", 0.8, FORGET, (2.5, REMEMBER))),
    "nagle-response": Scenario("a broker that writes responses in two pieces", _simply("forty"), in_two_pieces),
    "nagle-request": Scenario("a client that writes requests in two pieces", _simply("pieces")),
    "late-by-itself": Scenario("a broker that writes the rest of each response 60 ms later, without Nagle",
                               _simply("steady"), late_by_itself),
    "stopped-broker": Scenario("a broker that is stopped for a second, four clients", _stopped(4)),
    "one-slow-response": Scenario("a broker that answers one request after half a second", _simply("forty"), slow_once),
    "never-answered": Scenario("a broker that does not answer the third request", _simply("small"), silent),
    "service-and-pod": Scenario("a service's address translated to a pod's, all interfaces of the node",
                                _simply("service"), setup=TRANSLATE, where=ROUTER, interface="any", port=19092),
    "service-masqueraded": Scenario("the same with the client's address translated, too", _simply("service"),
                                    setup=MASQUERADE, where=ROUTER, interface="any", port=19092),
    "two-interfaces": Scenario("all interfaces of a router that translates nothing: each packet twice",
                               _simply("small"), where=ROUTER, interface="any"),
    "slow-link": Scenario("a response of 150 kB over 1 Mbit/s", _simply("forty"), huge, SLOW_LINK),
    "client-does-not-read": Scenario("a client that reads a response of 150 kB late",
                                     _simply("does-not-read"), huge),
}  # fmt: skip


@contextmanager
def namespaces(scenario: Scenario) -> Iterator[None]:
    """The network, until the end."""
    try:
        run(SETUP)
        run(scenario.setup)
        yield
    finally:
        for name in (CLIENT, ROUTER, BROKER):
            subprocess.run(["ip", "netns", "del", name], check=False)


def record(name: str) -> None:
    """Record a scenario."""
    scenario = SCENARIOS[name]
    path = FOLDER / f"{name}.pcap"
    FOLDER.mkdir(exist_ok=True)
    program = (sys.executable, "-m", "tools.lab.network")
    with namespaces(scenario):
        capture = subprocess.Popen(
            in_namespace(scenario.where, "tcpdump", "-i", scenario.interface, "-U", "-s", "0", "-w", str(path), "tcp"),
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert capture.stderr is not None
        while "listening" not in capture.stderr.readline():
            pass
        server = (*program, "--serve", scenario.answer.__name__, "--port", str(scenario.port))
        broker = subprocess.Popen(in_namespace(BROKER, *server), stdout=subprocess.PIPE, text=True)
        assert broker.stdout is not None
        broker.stdout.readline()
        try:
            scenario.act(Lab(broker))
            time.sleep(1.5)
        finally:
            for process in (broker, capture):
                process.terminate()
                process.wait()
    provenance = {
        "capture": path.name, "client": "plain sockets", "broker": "plain sockets, Metadata v1 only",
        "scenario": scenario.words, "recorded": f"{datetime.now(UTC):%Y-%m-%d}",
        "tool": f"tcpdump -i {scenario.interface} in a network namespace, Linux {os.uname().release.partition('-')[0]};"
        " python -m tools.lab.network",
    }  # fmt: skip
    path.with_suffix(".provenance.json").write_text(json.dumps(provenance) + "\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Record the scenarios that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenarios", nargs="*", choices=[[], *SCENARIOS], metavar="SCENARIO")
    parser.add_argument("--serve", choices=ANSWERS, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=PORT, help=argparse.SUPPRESS)
    parser.add_argument("--client", choices=CLIENTS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        serve(ANSWERS[options.serve], options.port)
    elif options.client:
        CLIENTS[options.client]()
    else:
        for name in options.scenarios or SCENARIOS:
            record(name)


if __name__ == "__main__":
    main()
