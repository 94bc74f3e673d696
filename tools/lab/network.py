"""Records what a network does to Kafka: `python -m tools.lab.network [SCENARIO ...]` (Linux, as root, with nft, tc and
tcpdump).

A client and a broker of plain sockets, which write their frames with this program's writer, talk through a router: each
in a network namespace of its own, removed at the end. Both ask and answer with Metadata only, as lists of topics can
have any size. The network is the kernel's own: its TCP, its queues, its address translation.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from dissector.protocol.codec.writer import write
from dissector.protocol.message import PREFIX
from dissector.protocol.schema.api_keys import ApiKey

FOLDER: Final = Path(__file__).parents[2] / "pcaps" / "network"
CLIENT, ROUTER, BROKER = "kd-client", "kd-router", "kd-broker"
BROKER_ADDRESS: Final = "10.2.0.2"
SERVICE_ADDRESS: Final = "10.96.0.1"
PORT: Final = 9092
VERSION: Final = 1
"""Of Metadata."""
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


def frame(content: bytes) -> bytes:
    """A frame with its size."""
    return len(content).to_bytes(PREFIX, "big") + content


def request(number: int, topics: int) -> bytes:
    """A Metadata request about so many topics."""
    head = {"request_api_key": ApiKey.METADATA, "request_api_version": VERSION, "correlation_id": number}
    names = [{"name": f"measurements-{n:05}"} for n in range(topics)]
    content = write("RequestHeader", 1, head | {"client_id": "kd-lab"})
    return frame(content + write("MetadataRequest", VERSION, {"topics": names}))


def response(number: int, topics: int) -> bytes:
    """Its response."""
    brokers = [{"node_id": 1, "host": BROKER_ADDRESS, "port": PORT, "rack": None}]
    names = [
        {"error_code": 0, "name": f"measurements-{n:05}", "is_internal": False, "partitions": []} for n in range(topics)
    ]
    content = write("ResponseHeader", 0, {"correlation_id": number})
    body = {"brokers": brokers, "controller_id": 1, "topics": names}
    return frame(content + write("MetadataResponse", VERSION, body))


def received(connection: socket.socket) -> bytes:
    """The next frame, without its size; empty at the end."""
    size = int.from_bytes(_exactly(connection, PREFIX), "big")
    return _exactly(connection, size) if size else b""


def _exactly(connection: socket.socket, size: int) -> bytes:
    """So many bytes, or none: MSG_WAITALL does not wait on a socket with a timeout."""
    data = b""
    while len(data) < size and (part := connection.recv(size - len(data))):
        data += part
    return data if len(data) == size else b""


def number_of(content: bytes) -> int:
    """The correlation id of a request."""
    return int.from_bytes(content[4:8], "big")


Answer = Callable[[socket.socket, int, int], None]
"""Answers a request: the connection, the correlation id, and how many requests came before on the connection."""


def plain(connection: socket.socket, number: int, _nth: int) -> None:
    """At once, and small."""
    connection.sendall(response(number, 2))


def large(connection: socket.socket, number: int, nth: int) -> None:
    """The fourth with four full segments and more."""
    connection.sendall(response(number, 250 if nth == 3 else 2))


def huge(connection: socket.socket, number: int, nth: int) -> None:
    """The 35th with 150 kB."""
    connection.sendall(response(number, 6_000 if nth == 34 else 2))


def in_two_pieces(connection: socket.socket, number: int, _nth: int) -> None:
    """Size and correlation id first, then the rest, with Nagle's algorithm on."""
    data = response(number, 2)
    connection.send(data[:8])
    connection.send(data[8:])


def late_by_itself(connection: socket.socket, number: int, _nth: int) -> None:
    """In two pieces as well, the second one when the program has it."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data = response(number, 2)
    connection.send(data[:8])
    time.sleep(0.06)
    connection.send(data[8:])


def silent(connection: socket.socket, number: int, nth: int) -> None:
    """Not at all from the third on."""
    if nth < 2:
        plain(connection, number, nth)


def slow_once(connection: socket.socket, number: int, nth: int) -> None:
    """The 35th after half a second."""
    time.sleep(0.5 if nth == 34 else 0)
    plain(connection, number, nth)


ANSWERS: Final[dict[str, Answer]] = {
    each.__name__: each for each in (plain, large, huge, in_two_pieces, late_by_itself, silent, slow_once)
}


def serve(answer: Answer, port: int) -> None:
    """Accept connections and answer requests, until the process ends."""
    listener = socket.create_server(("0.0.0.0", port))
    print("listening", flush=True)

    def talk(connection: socket.socket) -> None:
        nth = 0
        with suppress(OSError):
            while content := received(connection):
                answer(connection, number_of(content), nth)
                nth += 1

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=talk, args=(connection,), daemon=True).start()


@dataclass
class Talk:
    """A client's connection."""

    address: str = BROKER_ADDRESS
    is_whole: bool = True
    """Whether a request is written at once, with TCP_NODELAY."""

    def __post_init__(self) -> None:
        self.socket = socket.create_connection((self.address, PORT), timeout=60)
        self.number = 0
        if self.is_whole:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, topics: int = 2) -> None:
        """Send a request."""
        self.number += 1
        data = request(self.number, topics)
        for part in (data,) if self.is_whole else (data[:8], data[8:]):
            self.socket.send(part) if len(part) < 1000 else self.socket.sendall(part)

    def ask(self, topics: int = 2) -> None:
        """Send a request and read the response."""
        self.send(topics)
        received(self.socket)

    def abort(self) -> None:
        """Reset the connection."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.socket.close()


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


def small_then_large() -> None:
    """Three small requests, a large one, and the client's patience of eight seconds."""
    talk = Talk()
    for _ in range(3):
        talk.ask()
    talk.send(300)
    talk.socket.settimeout(8)
    with suppress(OSError):
        received(talk.socket)
    talk.abort()


def small(count: int = 4, wait: float = 8) -> None:
    """So many requests, and the client's patience for the last one."""
    talk = Talk()
    talk.socket.settimeout(wait)
    with suppress(OSError):
        for _ in range(count):
            talk.ask()
    talk.abort()


def idle_for(seconds: float) -> None:
    """A request, a pause, a request."""
    talk = Talk()
    talk.ask()
    time.sleep(seconds)
    talk.send()
    talk.socket.settimeout(8)
    with suppress(OSError):
        received(talk.socket)
    talk.abort()


def steady(seconds: float) -> None:
    """A request each 50 ms."""
    talk = Talk()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        talk.ask()
        time.sleep(0.05)
    talk.socket.close()


def service() -> None:
    """Requests to the service's address, on two connections."""
    for _ in range(2):
        talk = Talk(SERVICE_ADDRESS)
        for _ in range(5):
            talk.ask()
        talk.socket.close()


def in_pieces(count: int) -> None:
    """Requests in two pieces, with Nagle's algorithm on."""
    talk = Talk(is_whole=False)
    for _ in range(count):
        talk.ask()
        time.sleep(0.05)
    talk.socket.close()


def does_not_read() -> None:
    """Small requests, and one whose response is read after a second and a half."""
    talk = Talk()
    talk.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    for _ in range(34):
        talk.ask()
    talk.send()
    time.sleep(1.5)
    received(talk.socket)
    talk.socket.close()


CLIENTS: Final[dict[str, Callable[[], None]]] = {
    "small-then-large": small_then_large, "small": small, "idle": lambda: idle_for(63), "steady": lambda: steady(3),
    "short-pause": lambda: idle_for(1), "forty": lambda: small(40), "service": service,
    "pieces": lambda: in_pieces(24), "does-not-read": does_not_read,
}  # fmt: skip


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
    told = {
        "capture": path.name, "client": "plain sockets", "broker": "plain sockets, Metadata v1 only",
        "scenario": scenario.words, "recorded": f"{datetime.now(UTC):%Y-%m-%d}",
        "tool": f"tcpdump -i {scenario.interface} in a network namespace, Linux {os.uname().release.partition('-')[0]};"
        " python -m tools.lab.network",
    }  # fmt: skip
    path.with_suffix(".provenance.json").write_text(json.dumps(told) + "\n")


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
