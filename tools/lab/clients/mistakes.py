"""librdkafka with wrong settings, which must fail: `python mistakes.py SERVERS [NAME=VALUE…]`."""

import sys

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

SECONDS = 3


def main(servers: str, *settings: str) -> None:
    """Ask for the topics of a cluster, and produce to one."""
    config = dict(setting.split("=", 1) for setting in settings)
    base = {"bootstrap.servers": servers, "client.id": "orders", "reconnect.backoff.ms": 1000}
    client = AdminClient(base | config)
    try:
        client.list_topics(timeout=SECONDS)
    except KafkaException as failed:
        print(failed)
        return
    producer = Producer(base | config | {"message.timeout.ms": 2000})
    refused: list[object] = []
    producer.produce("orders", b"order 1", on_delivery=lambda error, _: refused.append(error) if error else None)
    producer.flush(SECONDS)
    if not refused:
        sys.exit("nothing went wrong")


if __name__ == "__main__":
    main(*sys.argv[1:])
