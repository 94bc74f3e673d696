"""kafka-python configured for a broker older than 0.11: message sets, not record batches, with each codec of that time.

`python archaic.py SERVERS RELEASE [login]`, for example `127.0.0.1:9092 0.9`. Before 0.9 the broker has no groups;
with 0.10 a login is SaslHandshake v0 and bare tokens.
"""

import sys

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

CODECS = (None, "gzip", "snappy")
LZ4_SINCE = (0, 10)
"""Before that its frames had a wrong checksum, which the library does not write as brokers of today want it."""
EACH = 8


def produce(topic: str, codecs: tuple[str | None, ...], config: dict[str, object]) -> None:
    for codec in codecs:
        producer = KafkaProducer(compression_type=codec, linger_ms=50, **config)
        producer.partitions_for(topic)
        for n in range(EACH):
            producer.send(topic, b"saucer " * 12, key=b"customer-%d" % n if n % 3 else None)
        producer.flush(20)
        producer.close()


def consume(topic: str, wanted: int, config: dict[str, object], *, groups: bool) -> None:
    consumer = KafkaConsumer(group_id=f"{topic}-billing", auto_offset_reset="earliest", enable_auto_commit=False,
                             consumer_timeout_ms=8000, fetch_max_wait_ms=100, **config)  # fmt: skip
    if groups:
        consumer.subscribe([topic])
    else:
        consumer.assign([TopicPartition(topic, 0)])
    seen = sum(1 for _ in zip(range(wanted), consumer, strict=False))
    consumer.commit({TopicPartition(topic, 0): OffsetAndMetadata(seen, "so far", -1)})
    consumer.committed(TopicPartition(topic, 0))
    consumer.end_offsets([TopicPartition(topic, 0)])
    consumer.close()
    assert seen == wanted, seen


def administer(topic: str, config: dict[str, object]) -> None:
    """What the release has not, the client refuses before it is sent."""
    admin = KafkaAdminClient(**config)
    for call in (
        lambda: admin.create_topics([NewTopic(f"{topic}-more", 1, 1)]),
        lambda: admin.describe_groups([f"{topic}-billing"]),
        lambda: admin.list_groups(),
        lambda: admin.list_group_offsets({f"{topic}-billing": [TopicPartition(topic, 0)]}),
        lambda: admin.delete_topics([f"{topic}-more"]),
    ):
        try:
            call()
        except (KafkaError, ValueError, NotImplementedError) as refused:
            print(f"{topic}: {refused!r}"[:300])
    admin.close()


def everything(servers: str, release: str, login: str = "") -> None:
    version = tuple(map(int, release.split(".")))
    config: dict[str, object] = {"bootstrap_servers": servers, "api_version": version}
    if login:
        config |= {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN",
                   "sasl_plain_username": "alice", "sasl_plain_password": "alice-secret"}  # fmt: skip
    topic = f"archaic-{release}{'-login' * bool(login)}"
    codecs = (*CODECS, "lz4") if version >= LZ4_SINCE else CODECS
    produce(topic, codecs, config)
    consume(topic, EACH * len(codecs), config, groups=version >= (0, 9))
    administer(topic, config)


if __name__ == "__main__":
    everything(*sys.argv[1:])
