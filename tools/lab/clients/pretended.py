"""kafka-python configured for a broker of an older release: the same work in the versions that were new then.

`python pretended.py SERVERS RELEASE CODEC`, for example `127.0.0.1:9092 0.11 gzip`.
"""

import sys
from collections.abc import Callable

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ConfigResourceType,
    NewTopic,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

COUNT = 12


def admin_calls(admin: KafkaAdminClient, topic: str, group: str) -> list[Callable[[], object]]:
    """What an administrator asks; which of it a release has not, the client refuses before it is sent."""
    partition = TopicPartition(topic, 0)
    pattern = ResourcePattern(ResourceType.TOPIC, topic)
    any_acl = ResourcePatternFilter(ResourceType.TOPIC, topic, ACLResourcePatternType.LITERAL)
    everything = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, any_acl)
    allow = ACL("User:ANONYMOUS", "*", ACLOperation.ALL, ACLPermissionType.ALLOW, pattern)
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    changed = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"retention.ms": "86400000"})
    return [
        lambda: admin.create_partitions({topic: 3}),
        lambda: admin.describe_topics([topic]),
        lambda: admin.describe_cluster(),
        lambda: admin.describe_configs([resource]),
        lambda: admin.alter_configs([changed], incremental=False),
        lambda: admin.alter_configs([changed], incremental=True),
        lambda: admin.create_acls([allow]),
        lambda: admin.describe_acls(everything),
        lambda: admin.delete_acls([everything]),
        lambda: admin.describe_log_dirs(),
        lambda: admin.describe_groups([group]),
        lambda: admin.list_groups(),
        lambda: admin.list_group_offsets({group: [partition]}),
        lambda: admin.alter_group_offsets(group, {partition: OffsetAndMetadata(1, "moved", -1)}),
        lambda: admin.delete_group_offsets(group, [partition]),
        lambda: admin.list_partition_offsets({partition: -1}),
        lambda: admin.delete_records({partition: 1}),
        lambda: admin.elect_leaders(0, {topic: [0]}),
        lambda: admin.alter_partition_reassignments({partition: [1]}),
        lambda: admin.list_partition_reassignments([partition]),
        lambda: admin.describe_user_scram_credentials(),
        lambda: admin.describe_producers([partition]),
        lambda: admin.list_transactions(),
        lambda: admin.describe_transactions(["nobody"]),
        lambda: admin.delete_groups([group]),
        lambda: admin.delete_topics([topic]),
    ]


def everything(servers: str, release: str, codec: str) -> None:
    """Create, produce with and without a transaction, consume, administer, delete."""
    version = tuple(map(int, release.split(".")))
    config = {"bootstrap_servers": servers, "api_version": version}
    topic, group = f"pretended-{release}", f"pretended-{release}-billing"
    admin = KafkaAdminClient(client_id=f"as-{release}", **config)
    admin.create_topics([NewTopic(topic, 1, 1)])
    for transactional_id in (None, f"pretended-{release}-teller"):
        producer = KafkaProducer(compression_type=codec, linger_ms=20, transactional_id=transactional_id, **config)
        if transactional_id:
            producer.init_transactions()
            producer.begin_transaction()
        for n in range(COUNT):
            producer.send(topic, b"saucer " * 12, key=b"customer-%d" % (n % 7), headers=[("n", bytes([n]))])
        producer.flush(20)
        if transactional_id:
            producer.send_offsets_to_transaction({TopicPartition(topic, 0): OffsetAndMetadata(2, "", -1)}, group)
            producer.commit_transaction()
        producer.close()
    consumer = KafkaConsumer(topic, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False,
                             isolation_level="read_committed", consumer_timeout_ms=8000, fetch_max_wait_ms=100,
                             **config)  # fmt: skip
    seen = sum(1 for _ in zip(range(2 * COUNT - 2), consumer, strict=False))
    consumer.commit()
    consumer.committed(TopicPartition(topic, 0))
    consumer.offsets_for_times({TopicPartition(topic, 0): 0})
    consumer.close()
    for call in admin_calls(admin, topic, group):
        try:
            call()
        except (KafkaError, ValueError, NotImplementedError, KeyError) as refused:
            # KeyError: kafka-python 3.0.12 cannot read its own DescribeCluster v0; the answer is on the wire.
            print(f"{release}: {refused!r}"[:300])
    admin.close()
    assert seen == 2 * COUNT - 2, seen


if __name__ == "__main__":
    everything(*sys.argv[1:4])
