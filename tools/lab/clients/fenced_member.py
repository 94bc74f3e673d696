"""A member of a KIP-848 group that goes on from an older state of its own, as a process does that is resumed from a
snapshot of its machine: the coordinator fences it (FENCED_MEMBER_EPOCH), and it joins again.

worker-a and worker-b are librdkafka's consumers; worker-c is a plain socket, as no library lets its epoch be set.
"""

import socket
import struct
import sys
import time
import uuid
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from dissector import decode_response, encode_request

GROUP: Final = "billing"
TOPIC: Final = "orders"
HEARTBEAT: Final = 68
VERSION: Final = 1
FENCED: Final = 110
SECONDS: Final = 30


class Member:
    """worker-c."""

    def __init__(self, servers: str) -> None:
        host, port = servers.split(":")
        self._connection = socket.create_connection((host, int(port)), 10)
        self._id = str(uuid.uuid4())
        self._number = 0
        self.epoch = 0
        self.owned: list[dict[str, Any]] = []

    def heartbeat(self, epoch: int, owned: list[dict[str, Any]]) -> int:
        """Send one and take what the coordinator says of it; return its error code."""
        body = {
            "group_id": GROUP, "member_id": self._id, "member_epoch": epoch, "instance_id": None, "rack_id": None,
            "rebalance_timeout_ms": 300_000, "subscribed_topic_names": [TOPIC], "subscribed_topic_regex": None,
            "server_assignor": None, "topic_partitions": owned,
        }  # fmt: skip
        self._number += 1
        self._connection.sendall(
            encode_request("ConsumerGroupHeartbeat", VERSION, body, correlation_id=self._number, client_id="worker-c")
        )
        answer = decode_response(self._response(), api_key=HEARTBEAT, api_version=VERSION).body
        if not answer["error_code"]:
            self.epoch = answer["member_epoch"]
            if answer["assignment"] is not None:
                self.owned = answer["assignment"]["topic_partitions"]
        return int(answer["error_code"])

    def live(self, seconds: float) -> None:
        """Send a heartbeat a second, of what it owns."""
        for _ in range(int(seconds)):
            self.heartbeat(self.epoch, self.owned)
            time.sleep(1)

    def _response(self) -> bytes:
        data = b""
        while len(data) < 4 or len(data) < 4 + struct.unpack(">i", data[:4])[0]:
            data += self._connection.recv(9_999)
        return data


def joined(servers: str, name: str) -> Consumer:
    """A consumer of librdkafka's in the group."""
    consumer = Consumer({
        "bootstrap.servers": servers, "group.id": GROUP, "client.id": name, "group.protocol": "consumer",
        "auto.offset.reset": "earliest", "fetch.wait.max.ms": 2_000,
    })  # fmt: skip
    consumer.subscribe([TOPIC])
    return consumer


def poll(consumers: list[Consumer], seconds: float) -> None:
    """Let consumers work."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for consumer in consumers:
            consumer.poll(0.2)


def main(servers: str) -> int:
    """Join, let another join, go on from before that."""
    admin = AdminClient({"bootstrap.servers": servers})
    for made in admin.create_topics([NewTopic(TOPIC, 6, 1)]).values():
        made.result(SECONDS)
    producer = Producer({"bootstrap.servers": servers, "client.id": "till"})
    for number in range(12):
        producer.produce(TOPIC, b"tea", partition=number % 6)
    producer.flush(SECONDS)

    worker_a = joined(servers, "worker-a")
    poll([worker_a], 3)
    member = Member(servers)
    member.heartbeat(0, [])
    for _ in range(4):
        poll([worker_a], 1)
        member.live(1)
    old_epoch, old_owned = member.epoch, member.owned
    worker_b = joined(servers, "worker-b")
    for _ in range(5):
        poll([worker_a, worker_b], 1)
        member.live(1)
    code = member.heartbeat(old_epoch, old_owned)
    member.heartbeat(0, [])
    for _ in range(3):
        poll([worker_a, worker_b], 1)
        member.live(1)
    member.heartbeat(-1, [])
    poll([worker_a, worker_b], 3)
    worker_b.close()
    poll([worker_a], 3)
    worker_a.close()
    return 0 if code == FENCED else KafkaError(code).code()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
