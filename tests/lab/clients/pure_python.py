"""kafka-python: everyday life."""

import sys

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


if __name__ == "__main__":
    globals()[sys.argv[2]](sys.argv[1])
