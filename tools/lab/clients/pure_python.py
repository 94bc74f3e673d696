"""kafka-python: everyday life."""

import sys
import time

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import NewTopic

CODECS = (None, "gzip", "snappy", "lz4", "zstd")
TOPIC, GROUP = "kafka-python-orders", "kafka-python-billing"


def everyday(servers: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=servers, client_id="kafka-python-admin")
    admin.create_topics([NewTopic(TOPIC, 2, 1)])
    for codec in CODECS:
        producer = KafkaProducer(bootstrap_servers=servers, compression_type=codec, linger_ms=20)
        for n in range(20):
            producer.send(
                TOPIC, b"saucer " * 12, key=b"customer-%d" % (n % 7), headers=[("codec", str(codec).encode())]
            )
        producer.flush(20)
        producer.close()
    consumer = KafkaConsumer(TOPIC, bootstrap_servers=servers, group_id=GROUP, auto_offset_reset="earliest",
                             enable_auto_commit=False, consumer_timeout_ms=8000, fetch_max_wait_ms=100)  # fmt: skip
    seen = 0
    for _ in consumer:
        seen += 1
        if seen == 20 * len(CODECS):
            break
    consumer.commit()
    consumer.end_offsets(list(consumer.assignment()))
    consumer.close()
    assert seen == 20 * len(CODECS), seen
    admin.list_topics()
    admin.describe_topics([TOPIC])
    admin.describe_cluster()
    admin.delete_topics([TOPIC])
    admin.close()


def compare(servers: str, topic: str, group: str, seconds: float) -> None:
    """What every client of the comparison does, with defaults: the topic comes to be when it is written to."""
    producer = KafkaProducer(bootstrap_servers=servers)
    for n in range(100):
        producer.send(topic, f"order {n}: {'teacup ' * 12}".encode(), key=b"customer-%d" % (n % 7))
    producer.flush(20)
    producer.close()
    consumer = KafkaConsumer(topic, bootstrap_servers=servers, group_id=group, auto_offset_reset="earliest")
    seen, deadline = 0, time.monotonic() + 30
    while seen < 100 and time.monotonic() < deadline:
        seen += sum(map(len, consumer.poll(100).values()))
    consumer.commit()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        consumer.poll(100)
    consumer.close()
    assert seen == 100, seen


if __name__ == "__main__":
    if sys.argv[2] == "compare":
        compare(sys.argv[1], sys.argv[3], sys.argv[4], float(sys.argv[5]))
    else:
        globals()[sys.argv[2]](sys.argv[1])
