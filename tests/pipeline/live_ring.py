"""A ring as it really comes about: clients of a cluster on loopback, and tcpdump that rotates into a folder."""

import contextlib
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.probe.servers import mock_cluster

ROTATES: Final = 3
"""Seconds a file."""


@contextlib.contextmanager
def clients(brokers: list[str]) -> Iterator[None]:
    """A producer and a group that reads what it sends, as long as it lasts; and jobs that come and go, of which one in
    three asks for what is not there, again and again."""
    over = threading.Event()
    some = [threading.Thread(target=work, args=(",".join(brokers), over)) for work in (_produce, _consume, _jobs)]
    for thread in some:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in some:
            thread.join(60)


def _produce(brokers: str, over: threading.Event) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 0, "client.id": "orders-web", "log_level": 0})
    count = 0
    while not over.wait(0.02):
        count += 1
        producer.produce("orders", b"a cup of tea " * (count % 400), key=b"%d" % (count % 7))
        producer.poll(0)
    producer.flush(10)


def _consume(brokers: str, over: threading.Event) -> None:
    from confluent_kafka import Consumer

    settings = {"bootstrap.servers": brokers, "group.id": "readers", "auto.offset.reset": "earliest", "log_level": 0}
    consumer = Consumer(settings | {"client.id": "orders-reader"})
    consumer.subscribe(["orders"])
    while not over.is_set():
        consumer.poll(0.1)
    consumer.close()


def _jobs(brokers: str, over: threading.Event) -> None:
    from confluent_kafka import Consumer, Producer, TopicPartition

    number = 0
    while not over.wait(1):
        number += 1
        about = {"bootstrap.servers": brokers, "client.id": f"job-{number % 5}", "log_level": 0}
        producer = Producer(about | {"enable.idempotence": True})
        producer.produce("jobs", b"x" * 50_000)
        producer.flush(10)
        if number % 3 == 0:
            reader = Consumer(about | {"group.id": f"jobs-{number}", "topic.metadata.refresh.interval.ms": 10})
            reader.assign([TopicPartition("orders", 0, 0)])
            reader.poll(2)
            reader.close()


@contextlib.contextmanager
def ring(folder: Path) -> Iterator[Path]:
    """What a cluster and its clients say, in files that tcpdump closes after some seconds; the last one at the end."""
    folder.mkdir()
    with mock_cluster(2) as brokers:
        ports = " or ".join(f"tcp port {broker.rpartition(':')[2]}" for broker in brokers)
        command = [str(shutil.which("tcpdump")), "-i", "lo", "-n", "-s", "0", "-B", "32768", "-Z", "root"]
        log = folder.parent / "tcpdump.log"
        with log.open("wb") as output:
            tcpdump = subprocess.Popen(
                [*command, "-G", str(ROTATES), "-w", str(folder / "ring-%s.pcap"), ports], stdout=output, stderr=output
            )
        try:
            deadline = time.monotonic() + 20
            while "listening on" not in log.read_text():
                assert tcpdump.poll() is None, log.read_text()
                assert time.monotonic() < deadline, "tcpdump did not start"
                time.sleep(0.1)
            with clients(brokers):
                yield folder
            time.sleep(1)
        finally:
            tcpdump.terminate()
            tcpdump.wait(20)
