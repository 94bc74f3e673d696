"""What the lab does to a cluster of the survey beside its clients, at a listener that is not recorded.

`admin.py SERVERS ACTION …`, run by the Python that has kafka-python; the functions run it.
"""

import json
import sys
import time
from pathlib import Path

SETTLE_SECONDS = 3


def create(topic: str, partitions: int, replicas: int) -> None:
    """Make a topic; return when its partitions have leaders."""
    _run("create", topic, str(partitions), str(replicas))


def clear(prefix: str = "") -> None:
    """Delete all topics whose names begin so, but the brokers' own: what a client made, too, so that the next finds
    none of it."""
    _run("clear", prefix)


def warm() -> None:
    """Make the topics of groups and transactions."""
    _run("warm")


def move_leader(topic: str) -> None:
    """Give a topic's only partition the other broker for its leader."""
    _run("move", topic)


def dump(topic: str) -> dict[tuple[int, int], bytes]:
    """Return the values of a topic, by partition and offset."""
    lines = _run("dump", topic).splitlines()
    return {(part, offset): value.encode() for part, offset, value in map(json.loads, lines)}


def _run(*arguments: str) -> str:
    from tools.lab.survey.clusters import ADMIN  # not there where this module is the program
    from tools.lab.tools import client_python, run

    return run(client_python(), Path(__file__), ADMIN, *arguments)


def main(servers: str, action: str, *arguments: str) -> None:
    """Act."""
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import NewTopic

    admin = KafkaAdminClient(bootstrap_servers=servers)
    topic = arguments[0] if arguments else "warm"
    match action:
        case "create":
            admin.create_topics([NewTopic(topic, int(arguments[1]), int(arguments[2]))])
            time.sleep(1)
        case "clear":
            found = [name for name in admin.list_topics() if name.startswith(topic) and not name.startswith("__")]
            admin.delete_topics(found)
        case "warm":
            producer = KafkaProducer(bootstrap_servers=servers, transactional_id=topic)
            producer.init_transactions()
            producer.begin_transaction()
            producer.send(topic, b"warm").get(30)
            producer.commit_transaction()
            producer.close()
            consumer = KafkaConsumer(topic, bootstrap_servers=servers, group_id=topic, auto_offset_reset="earliest",
                                     consumer_timeout_ms=20_000)  # fmt: skip
            next(consumer)
            consumer.close()
            admin.delete_topics([topic])
        case "dump":
            reader = KafkaConsumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest",
                                   consumer_timeout_ms=5_000)  # fmt: skip
            for record in reader:
                print(json.dumps([record.partition, record.offset, record.value.decode()]))
            reader.close()
        case "move":
            [partition] = admin.describe_topics([topic])[0]["partitions"]
            other = [node for node in partition["replica_nodes"] if node != partition["leader_id"]]
            order = [*other, partition["leader_id"]]
            admin.alter_partition_reassignments({TopicPartition(topic, 0): order})
            time.sleep(SETTLE_SECONDS)
            admin.elect_leaders(0, {topic: [0]})
    admin.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
