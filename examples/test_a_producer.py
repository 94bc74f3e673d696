"""A test of what a producer says: BROKER=localhost:9092 pytest test_a_producer.py"""

import os

from confluent_kafka import Producer

from dissector.pytest_plugin import KafkaCapture

BROKER = os.environ.get("BROKER", "localhost:9092")


def test_the_producer_waits_for_all(kafka_capture: KafkaCapture) -> None:
    with kafka_capture(port=int(BROKER.rpartition(":")[2])) as wire:
        producer = Producer({"bootstrap.servers": BROKER, "enable.idempotence": True})
        producer.produce("orders", b"apples")
        assert producer.flush(10) == 0
    assert wire.one("api == Produce")["acks"] == -1
    assert [record.value for record in wire.records("api == Produce")] == [b"apples"]
    wire.none("api == Produce && error")
