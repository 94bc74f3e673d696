"""librdkafka through confluent-kafka: everyday life, acks=0, pipelined produce, a login."""

import sys
import time

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, OffsetSpec

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def create(servers: str, topic: str, partitions: int, **config: object) -> None:
    admin = AdminClient({"bootstrap.servers": servers, **config})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(10)


def produce(servers: str, topic: str, codec: str, count: int, **config: object) -> None:
    producer = Producer({"bootstrap.servers": servers, "compression.codec": codec, "linger.ms": 20, **config})
    for n in range(count):
        value = f"order {n} of {codec}: ".encode() + b"teacup " * 12
        producer.produce(topic, value, key=f"customer-{n % 7}", headers={"codec": codec, "n": bytes([n % 256])})
    producer.flush(20)


def consume(servers: str, topic: str, group: str, count: int, **config: object) -> None:
    settings = {"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest",
                "enable.auto.commit": False, "fetch.wait.max.ms": 100, **config}  # fmt: skip
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    seen, deadline = 0, time.monotonic() + 30
    while seen < count and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        seen += message is not None and not message.error()
    consumer.commit(asynchronous=False)
    consumer.committed(consumer.assignment(), timeout=5)
    consumer.close()
    assert seen == count, f"{seen} of {count} records"


def describe(servers: str, topic: str, group: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.list_topics(timeout=5)
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result(10)
    admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)])
    spec = {TopicPartition(topic, 0): OffsetSpec.latest(), TopicPartition(topic, 1): OffsetSpec.earliest()}
    for future in admin.list_offsets(spec).values():
        future.result(10)
    admin.list_consumer_groups().result(10)
    admin.describe_consumer_groups([group])[group].result(10)
    admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(10)
    admin.describe_cluster().result(10)
    admin.describe_user_scram_credentials([])
    admin.delete_consumer_groups([group])[group].result(10)
    admin.delete_topics([topic])[topic].result(10)


def everyday(servers: str) -> None:
    topic, group = "rdkafka-orders", "rdkafka-billing"
    create(servers, topic, 2)
    for codec in CODECS:
        produce(servers, topic, codec, 20)
    consume(servers, topic, group, 20 * len(CODECS))
    describe(servers, topic, group)


def codecs(servers: str) -> None:
    """A topic that stays, with an entry in its index every few batches."""
    topic = "rdkafka-codecs"
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, 1, 1, config={"index.interval.bytes": "500"})])[topic].result(10)
    for codec in CODECS:
        produce(servers, topic, codec, 20)


def acks0(servers: str) -> None:
    topic = "rdkafka-fire-and-forget"
    create(servers, topic, 1)
    produce(servers, topic, "none", 40, acks=0, **{"batch.num.messages": 4})
    consume(servers, topic, "rdkafka-hope", 40)


def pipelined(servers: str) -> None:
    topic = "rdkafka-firehose"
    create(servers, topic, 1)
    produce(servers, topic, "lz4", 1080, **{"batch.num.messages": 3, "max.in.flight": 50, "linger.ms": 0})
    consume(servers, topic, "rdkafka-drain", 1080)


def consumer_protocol(servers: str) -> None:
    topic = "rdkafka-next-gen"
    create(servers, topic, 3)
    produce(servers, topic, "zstd", 30)
    consume(servers, topic, "rdkafka-kip848", 30, **{"group.protocol": "consumer"})


def transactions(servers: str) -> None:
    topic = "rdkafka-ledger"
    create(servers, topic, 1)
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "rdkafka-teller"})
    producer.init_transactions(20)
    for commit in (True, False, True):
        producer.begin_transaction()
        for n in range(5):
            producer.produce(topic, f"entry {n}".encode())
        producer.flush(20)  # what was not sent yet, an abort would not send
        producer.commit_transaction(20) if commit else producer.abort_transaction(20)
    consume(servers, topic, "rdkafka-audit", 10, **{"isolation.level": "read_committed"})


def compare(servers: str, topic: str, group: str, seconds: float) -> None:
    """What every client of the comparison does, with defaults: the topic comes to be when it is written to."""
    producer = Producer({"bootstrap.servers": servers})
    for n in range(100):
        producer.produce(topic, f"order {n}: {'teacup ' * 12}".encode(), key=f"customer-{n % 7}")
    producer.flush(20)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    seen, deadline = 0, time.monotonic() + 30
    while seen < 100 and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        seen += message is not None and not message.error()
    consumer.commit(asynchronous=False)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        consumer.poll(0.1)
    consumer.close()
    assert seen == 100, f"{seen} of 100 records"


def login(servers: str) -> None:
    topic = "rdkafka-behind-a-door"
    config = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "SCRAM-SHA-256",
              "sasl.username": "alice", "sasl.password": "alice-secret"}  # fmt: skip
    create(servers, topic, 1, **config)
    produce(servers, topic, "none", 5, **config)
    consume(servers, topic, "rdkafka-insiders", 5, **config)


def encrypted(servers: str, *settings: str) -> None:
    """A day behind TLS."""
    config: dict[str, object] = dict(setting.split("=", 1) for setting in settings)
    topic = "rdkafka-behind-tls"
    create(servers, topic, 1, **config)
    for codec in ("none", "zstd"):
        produce(servers, topic, codec, 20, **config)
    consume(servers, topic, "rdkafka-behind-tls", 40, **config)
    admin = AdminClient({"bootstrap.servers": servers, **config})
    admin.delete_topics([topic])[topic].result(10)


if __name__ == "__main__":
    try:
        if sys.argv[2] == "compare":
            compare(sys.argv[1], sys.argv[3], sys.argv[4], float(sys.argv[5]))
        else:
            globals()[sys.argv[2]](sys.argv[1], *sys.argv[3:])
    except KafkaException as error:
        sys.exit(f"librdkafka: {error}")
