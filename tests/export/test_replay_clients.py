"""Real clients produce to the server of an exported pytest file: it names itself as the only broker."""

import asyncio
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.cases import cases
from tests.conftest import PCAPS
from tests.export.test_pytest_file import text_of

confluent_kafka = pytest.importorskip("confluent_kafka", reason="NOT TESTED against librdkafka: it can't be imported")
pytestmark = pytest.mark.slow
SECONDS = 15


def librdkafka(address: str, topic: str) -> list[int]:
    done: list[int] = []

    def delivered(error: object, message: Any) -> None:
        assert error is None
        done.append(message.partition())

    producer = confluent_kafka.Producer({"bootstrap.servers": address, "message.timeout.ms": 1000 * SECONDS})
    producer.produce(topic, b"x", partition=0, on_delivery=delivered)
    producer.flush(SECONDS)
    return done


def kafka_python(address: str, topic: str) -> list[int]:
    """Both partitions in one request, as it was recorded."""
    import kafka

    producer = kafka.KafkaProducer(bootstrap_servers=address, linger_ms=200)
    sent = [producer.send(topic, b"x", partition=partition) for partition in (0, 1)]
    done = [each.get(SECONDS).partition for each in sent]
    producer.close()
    return done


def aiokafka_(address: str, topic: str) -> list[int]:
    import aiokafka

    async def produce() -> list[int]:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=address, linger_ms=200) as producer:
            sent = [await producer.send(topic, b"x", partition=partition) for partition in (0, 1)]
            return [(await each).partition for each in sent]

    return asyncio.run(asyncio.wait_for(produce(), SECONDS))


def module_of(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cases(
    ("produce", "name", "partitions"),
    [(librdkafka, "librdkafka", [0]), (kafka_python, "kafka-python", [0, 1]), (aiokafka_, "aiokafka", [0, 1])],
    ids=["librdkafka", "kafka-python", "aiokafka"],
)
def test_a_real_client_stays_with_the_replaying_broker(
    produce: Callable[[str, str], list[int]], name: str, partitions: list[int], tmp_path: Path
) -> None:
    path = tmp_path / f"replay_{name.replace('-', '_')}.py"
    path.write_text(text_of(PCAPS / f"compare-{name}-1.pcapng"), "ascii")
    with module_of(path).served() as broker:
        assert produce(broker.bootstrap, f"{name}-orders-1") == partitions
        assert broker.unanswered == []
