"""Records clients of today at brokers of before 2.0: `python -m tools.lab.old_brokers [SCENARIO ...]` (Linux, as root,
with Java 17, Maven and tcpdump).

Each broker has a ZooKeeper beside it, from the same jars. They run on loopback, and are stopped at the end.
"""

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from confluent_kafka import Producer

from dissector import encode_request
from tools.lab.network import FOLDER
from tools.lab.tools import HERE, MissingToolError, fetched, require

PORT: Final = 9092
ZOOKEEPER_PORT: Final = 22181
SCALA: Final = {"0.8.2.2": "2.11", "0.9.0.1": "2.11", "0.10.2.2": "2.11", "1.1.1": "2.12"}
"""By release."""
HOME: Final = Path("/tmp/kafka-logs/lab-old")
START_SECONDS: Final = 60
IDLE_MS: Final = 5_000
USUAL_IDLE_MS: Final = 600_000
PROPERTIES: Final = f"""
broker.id=1
host.name=127.0.0.1
port={PORT}
zookeeper.connect=127.0.0.1:{ZOOKEEPER_PORT}
zookeeper.connection.timeout.ms=30000
log.dirs={HOME}/log
offsets.topic.replication.factor=1
"""
ZOOKEEPER: Final = f"dataDir={HOME}/zookeeper\nclientPort={ZOOKEEPER_PORT}\nclientPortAddress=127.0.0.1\n"
SERVERS: Final = f"127.0.0.1:{PORT}"


def produce(seconds: float) -> Callable[[], None]:
    """Produce with librdkafka, and give up after these seconds."""

    def act() -> None:
        producer = Producer({"bootstrap.servers": SERVERS, "reconnect.backoff.ms": 1_000, "log_level": 0})
        producer.produce("orders", b"tea")
        producer.flush(seconds)

    return act


def produce_with_aiokafka() -> None:
    """Produce once; what the broker refuses is in the recording."""

    async def act() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=SERVERS)
        await producer.start()
        with contextlib.suppress(KafkaError):
            await producer.send_and_wait("orders", b"tea")
        await producer.stop()

    asyncio.run(act())


def come_back_after(seconds: float) -> Callable[[], None]:
    """Ask for metadata, and again after a silence."""

    def act() -> None:
        with socket.create_connection(("127.0.0.1", PORT)) as broker:
            for number, silence in enumerate((0.0, seconds)):
                time.sleep(silence)
                broker.sendall(
                    encode_request("Metadata", 0, {"topics": []}, correlation_id=number, client_id="nightly")
                )
                with contextlib.suppress(ConnectionError):
                    broker.recv(9_999)

    return act


@dataclass(frozen=True)
class OldScenario:
    """A release, and what is done at its broker."""

    words: str
    release: str
    client: str
    act: Callable[[], None]
    makes_topic: bool = False
    """Whether the topic is there before."""
    idle_ms: int = USUAL_IDLE_MS
    """`connections.max.idle.ms` of the broker."""


_IDLE: Final = f"a client that is silent for {{}} s at a broker with connections.max.idle.ms={IDLE_MS}"
SCENARIOS: Final[dict[str, OldScenario]] = {
    "broker-0.8-api-versions": OldScenario("ApiVersions at a broker that does not know it and closes the connection",
                                           "0.8.2.2", "confluent-kafka", produce(3.5)),
    "broker-0.9-api-versions": OldScenario("ApiVersions at a broker that does not know it and never answers",
                                           "0.9.0.1", "confluent-kafka", produce(12.0)),
    "broker-0.10-record-batch": OldScenario("record batches of magic 2 in Produce v2", "0.10.2.2", "aiokafka",
                                            produce_with_aiokafka, makes_topic=True),
    "broker-0.10-works": OldScenario("a producer that steps down to the broker's versions", "0.10.2.2",
                                     "confluent-kafka", produce(10.0), makes_topic=True),
    "broker-0.10-idle": OldScenario(_IDLE.format(8), "0.10.2.2", "plain socket", come_back_after(8.0), idle_ms=IDLE_MS),
    "broker-1.1-idle": OldScenario(_IDLE.format(8), "1.1.1", "plain socket", come_back_after(8.0), idle_ms=IDLE_MS),
    "broker-1.1-not-idle": OldScenario(_IDLE.format(3), "1.1.1", "plain socket", come_back_after(3.0), idle_ms=IDLE_MS),
}  # fmt: skip


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.5)
    raise MissingToolError(f"nothing listens on port {port}")


@contextmanager
def broker(release: str, idle_ms: int) -> Iterator[None]:
    """ZooKeeper and a broker, until the end."""
    pom = HERE / "old" / "broker-zookeeper.xml"
    jars = fetched(pom, f"jars-{release}", f"-Dkafka={release}", f"-Dscala={SCALA[release]}")
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    started: list[subprocess.Popen[bytes]] = []
    programs = (
        ("org.apache.zookeeper.server.quorum.QuorumPeerMain", ZOOKEEPER, ZOOKEEPER_PORT),
        ("kafka.Kafka", f"{PROPERTIES}connections.max.idle.ms={idle_ms}\n", PORT),
    )
    try:
        for program, properties, port in programs:
            config = HOME / f"{program}.properties"
            config.write_text(properties)
            command = [require("java"), "-Xmx256m", "-cp", f"{jars}/*", program, str(config)]
            quiet = subprocess.DEVNULL
            started.append(subprocess.Popen(command, stdout=quiet, stderr=quiet))
            _wait_for(port)
        time.sleep(3)
        yield
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


def record(name: str) -> None:
    """Record a scenario."""
    scenario = SCENARIOS[name]
    path = FOLDER / f"{name}.pcap"
    with broker(scenario.release, scenario.idle_ms):
        if scenario.makes_topic:
            produce(10.0)()
        sniffer = [require("tcpdump"), "-i", "lo", "-U", "-w", str(path), f"tcp port {PORT}"]
        capture = subprocess.Popen(sniffer, stderr=subprocess.PIPE, text=True)
        assert capture.stderr is not None
        while "listening" not in capture.stderr.readline():
            pass
        try:
            scenario.act()
            time.sleep(1.5)
        finally:
            capture.terminate()
            capture.wait()
    provenance = {
        "capture": path.name, "client": scenario.client, "broker": "Apache Kafka", "broker_version": scenario.release,
        "scenario": scenario.words, "recorded": f"{datetime.now(UTC):%Y-%m-%d}",
        "tool": f"tcpdump on loopback, Linux {os.uname().release.partition('-')[0]}; python -m tools.lab.old_brokers",
    }  # fmt: skip
    path.with_suffix(".provenance.json").write_text(json.dumps(provenance) + "\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Record the scenarios that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenarios", nargs="*", choices=[[], *SCENARIOS], metavar="SCENARIO")
    for name in parser.parse_args(arguments).scenarios or SCENARIOS:
        record(name)


if __name__ == "__main__":
    main()
