"""Clients that get into trouble, one function a finding: `python -m tools.lab.clients.troubles SERVERS NAME`.

librdkafka where a setting of its brings the trouble about; our own encoder over a plain socket where no client would.
"""

import ctypes
import socket
import struct
import sys
import time
from contextlib import suppress
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

import dissector
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.loader import api_named

Values = dict[str, Any]
PRODUCE, FETCH, METADATA, JOIN_GROUP, FIND_COORDINATOR = 11, 12, 12, 9, 3
CREATE_TOPICS, INIT_PRODUCER_ID, QUOTAS = 4, 4, 1
WORDS = b"saucer cup spoon kettle "
SECONDS = 20
TOO_LARGE = 110 << 20
"""Bytes: `socket.request.max.bytes` is 100 MiB."""
SO_ATTACH_FILTER, SO_DETACH_FILTER = 26, 27
DROP_ALL = struct.pack("HBBI", 6, 0, 0, 0)
"""A program of the kernel's packet filter: return 0, take no byte of a packet."""


class Client:
    """One connection; responses are read on request, with any errors."""

    def __init__(self, servers: str, client_id: str = "trouble", *, asks: bool = True) -> None:
        """Without `asks` the client does not ask for versions."""
        host, port = servers.split(":")
        self._socket = socket.create_connection((host, int(port)), SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client_id = client_id
        self._sent = 0
        if asks:
            self.ask("ApiVersions", 3, {"client_software_name": "kdissect", "client_software_version": "1.0"})

    def send(self, name: str, version: int, body: Values) -> None:
        """A request, and no look at the answer."""
        self._sent += 1
        data = dissector.encode_request(name, version, body, correlation_id=self._sent, client_id=self._client_id)
        self._socket.sendall(data)

    def ask(self, name: str, version: int, body: Values) -> Values:
        """A request, and its answer's body."""
        self.send(name, version, body)
        api = api_named(name)
        assert api is not None
        return dissector.decode_response(self._frame(), api_key=api.key, api_version=version).body

    def close(self) -> None:
        self._socket.close()

    def _frame(self) -> bytes:
        prefix = self._exactly(4)
        return prefix + self._exactly(int.from_bytes(prefix, "big"))

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                raise EOFError("the broker closed the connection")
            data += piece
        return data


def topic(servers: str, name: str) -> None:
    """A topic with one partition, when it has a leader."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(SECONDS)
    time.sleep(0.5)


def sent(name: str, count: int, producer: tuple[int, int, int] = (-1, -1, -1), codec: int = 0) -> Values:
    """The body of a Produce request with one batch; `producer` is its id, epoch and sequence number."""
    records = [{"offset": n, "timestamp": 1_795_000_000_000, "value": b"cup"} for n in range(count)]
    head = dict(zip(("producer_id", "producer_epoch", "base_sequence"), producer, strict=True))
    partition = {"index": 0, "records": {"batches": [{"attributes": codec, "records": records, **head}]}}
    return {"acks": -1, "timeout_ms": 5000, "topic_data": [{"name": name, "partition_data": [partition]}]}


def tiny_batches(servers: str) -> None:
    topic(servers, "tiny")
    producer = Producer({"bootstrap.servers": servers, "client.id": "flushes-each", "linger.ms": 0})
    for n in range(60):
        producer.produce("tiny", b"cup %d" % n)
        producer.flush(SECONDS)


def uncompressed_batches(servers: str) -> None:
    topic(servers, "plain")
    settings = {"bootstrap.servers": servers, "client.id": "plain", "linger.ms": 20, "batch.size": 12_000}
    producer = Producer(settings)
    for n in range(40):
        producer.produce("plain", WORDS * 40 + b"%d" % n)
    producer.flush(SECONDS)


def throttled(servers: str) -> None:
    """A quota of 1,000 bytes a second for the client id, and ten times as much sent at once."""
    client = Client(servers)
    entity = [{"entity_type": "client-id", "entity_name": "greedy"}]
    quota = {"entity": entity, "ops": [{"key": "producer_byte_rate", "value": 1000.0, "remove": False}]}
    client.ask("AlterClientQuotas", QUOTAS, {"entries": [quota], "validate_only": False})
    topic(servers, "rationed")
    producer = Producer({"bootstrap.servers": servers, "client.id": "greedy", "linger.ms": 5})
    for n in range(4):
        producer.produce("rationed", WORDS * 200 + b"%d" % n)
        producer.flush(SECONDS)
    client.close()


def error_storm(servers: str) -> None:
    """A producer that never looks whether its topic is still there."""
    client = Client(servers)
    for _ in range(12):
        client.ask("Produce", PRODUCE, sent("gone", 1))
        time.sleep(0.05)
    client.close()


def metadata_storm(servers: str) -> None:
    client = AdminClient({"bootstrap.servers": servers, "client.id": "asks", "allow.auto.create.topics": False})
    for _ in range(40):
        with suppress(KafkaException):
            client.list_topics("missing", SECONDS)


def rebalance_loop(servers: str) -> None:
    """Consumers that come and go, while one stays."""
    topic(servers, "restless")
    settings = {"bootstrap.servers": servers, "group.id": "restless-readers", "auto.offset.reset": "earliest"}
    for n in range(5):
        consumer = Consumer({**settings, "client.id": f"restarts-{n}"})
        consumer.subscribe(["restless"])
        while not consumer.assignment():
            consumer.poll(0.1)
        consumer.close()


def fetch_session_error(servers: str) -> None:
    """A session that the broker never had."""
    topic(servers, "forgetful")
    client = Client(servers)
    body = {"max_wait_ms": 100, "min_bytes": 0, "max_bytes": 1000, "session_id": 4711, "session_epoch": 3, "topics": []}
    client.ask("Fetch", FETCH, body)
    client.close()


def producer_of(client: Client) -> tuple[int, int]:
    """A producer's id and epoch, once the broker can give one."""
    body = {"transactional_id": None, "transaction_timeout_ms": 60_000}
    while (given := client.ask("InitProducerId", INIT_PRODUCER_ID, body))["error_code"]:
        time.sleep(0.1)
    return given["producer_id"], given["producer_epoch"]


def sequence_gap(servers: str) -> None:
    """Numbers 0, then 5."""
    topic(servers, "counted")
    client = Client(servers)
    who = producer_of(client)
    client.ask("Produce", PRODUCE, sent("counted", 2, (*who, 0)))
    client.ask("Produce", PRODUCE, sent("counted", 1, (*who, 5)))
    client.close()


def retried_batch(servers: str) -> None:
    """The same batch twice: the broker keeps one."""
    topic(servers, "doubled")
    client = Client(servers)
    who = producer_of(client)
    for _ in range(2):
        client.ask("Produce", PRODUCE, sent("doubled", 2, (*who, 0)))
    client.close()


def consumer_lag(servers: str) -> None:
    """A consumer that reads the same place, while a producer goes on."""
    topic(servers, "growing")
    producer, consumer = Client(servers, "quick"), Client(servers, "slow")
    wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}
    body = {
        "max_wait_ms": 100, "min_bytes": 1, "max_bytes": 1, "session_id": 0, "session_epoch": -1,
        "topics": [{"topic": "growing", "partitions": [wanted]}],
    }  # fmt: skip
    for _ in range(7):
        producer.ask("Produce", PRODUCE, sent("growing", 400, codec=1))
        wanted["fetch_offset"] += 100
        consumer.ask("Fetch", FETCH, body)
        time.sleep(0.5)
    producer.close()
    consumer.close()


def slow(servers: str) -> None:
    """Topics that are only checked, and then one that is made, with very many partitions."""
    client = Client(servers)
    for n in range(40):
        client.ask("CreateTopics", CREATE_TOPICS, created(f"checked-{n}", 1, validate_only=True))
    client.ask("CreateTopics", CREATE_TOPICS, created("broad", 4000, validate_only=False))
    client.close()


def created(name: str, partitions: int, *, validate_only: bool) -> Values:
    wanted = {"name": name, "num_partitions": partitions, "replication_factor": 1}
    return {"topics": [wanted], "timeout_ms": 20_000, "validate_only": validate_only}


def version_not_offered(servers: str) -> None:
    """A version that Kafka 4 took out."""
    client = Client(servers)
    client.send("OffsetFetch", 0, {"group_id": "nobody", "topics": []})
    with suppress(EOFError, ConnectionError):
        client._frame()
    client.close()


def oversized_request(servers: str) -> None:
    """The size prefix of a request beyond `socket.request.max.bytes`, and its beginning."""
    client = Client(servers)
    data = dissector.encode_request("Produce", PRODUCE, sent("large", 400), correlation_id=2, client_id="trouble")
    client._socket.sendall(TOO_LARGE.to_bytes(4, "big") + data[4:])
    with suppress(EOFError, ConnectionError):
        client._frame()
    client.close()


def closed_in_flight(servers: str) -> None:
    """A client that is gone, without a word of farewell, while topics with many partitions are made."""
    client = Client(servers)
    client.send("CreateTopics", CREATE_TOPICS, created("abandoned", 1000, validate_only=False))
    time.sleep(0.02)
    client._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # RST in place of FIN
    client.close()


def duplicate_correlation_id(servers: str) -> None:
    """Three requests at once, two of them with one id: the broker answers them all."""
    client = Client(servers)
    for number in (2, 3, 3):
        client._sent = number - 1
        client.send("Metadata", METADATA, {"topics": [], "allow_auto_topic_creation": False})
    for _ in range(3):
        client._frame()
    client.close()


def everyday_error_again(servers: str) -> None:
    """A member that never takes the id that it is given."""
    client = Client(servers)
    protocols = [{"name": "range", "metadata": b""}]
    body = {"group_id": "forgetful", "session_timeout_ms": 6000, "rebalance_timeout_ms": 6000, "member_id": "",
            "protocol_type": "consumer", "protocols": protocols}  # fmt: skip
    while client.ask("FindCoordinator", FIND_COORDINATOR, {"key_type": 0, "key": "forgetful"})["error_code"]:
        time.sleep(2)
    while client.ask("JoinGroup", JOIN_GROUP, body)["error_code"] != ErrorCode.MEMBER_ID_REQUIRED:
        time.sleep(0.5)  # the coordinator loads
    client.ask("JoinGroup", JOIN_GROUP, body)
    client.close()


def near_loss(servers: str) -> None:
    """An answer that the client's kernel drops for a tenth of a second: TCP sends it again."""
    topic(servers, "lossy")
    client = Client(servers)
    client.ask("Produce", PRODUCE, sent("lossy", 100))
    wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 100_000}
    body = {
        "max_wait_ms": 100, "min_bytes": 0, "max_bytes": 100_000, "session_id": 0, "session_epoch": -1,
        "topics": [{"topic": "lossy", "partitions": [wanted]}],
    }  # fmt: skip
    for _ in range(2):
        client.ask("Fetch", FETCH, body)
    nothing = ctypes.create_string_buffer(DROP_ALL)
    client._socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", 1, ctypes.addressof(nothing)))
    client.send("Fetch", FETCH, body)
    time.sleep(0.1)
    client._socket.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
    client._frame()
    client.ask("Fetch", FETCH, body)
    client.close()


def unreadable_request(servers: str) -> None:
    """A tagged field one version too early: Fetch has it from version 17 on."""
    client = Client(servers)
    tag = {"tag": 0, "data": bytes(16).hex()}
    topics = [{"topic_id": "AQIDBAUGBwgJCgsMDQ4PEA", "partitions": [{"partition": 0, "unknown_tagged_fields": [tag]}]}]
    client.send("Fetch", 16, {"session_epoch": -1, "topics": topics})
    with suppress(EOFError, ConnectionError):
        client._frame()
    client.close()


def suspect_version(servers: str) -> None:
    """A version that the broker does not have yet, of a client that does not ask."""
    client = Client(servers, asks=False)
    client.ask("FindCoordinator", FIND_COORDINATOR, {"key_type": 0, "key": "nobody"})
    data = dissector.encode_request("Metadata", METADATA, {"topics": []}, correlation_id=2, client_id="trouble")
    client._socket.sendall(data[:6] + (99).to_bytes(2, "big") + data[8:])
    with suppress(EOFError, ConnectionError):
        client._frame()
    client.close()


def stuck_fetch(servers: str) -> None:
    """A consumer that does not get past a batch."""
    topic(servers, "stuck")
    client = Client(servers)
    client.ask("Produce", PRODUCE, sent("stuck", 10))
    wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 100_000}
    body = {
        "max_wait_ms": 100, "min_bytes": 0, "max_bytes": 100_000, "session_id": 0, "session_epoch": -1,
        "topics": [{"topic": "stuck", "partitions": [wanted]}],
    }  # fmt: skip
    for _ in range(6):
        client.ask("Fetch", FETCH, body)
    client.close()


TROUBLES = (
    tiny_batches, uncompressed_batches, throttled, error_storm, metadata_storm, rebalance_loop, fetch_session_error,
    sequence_gap, retried_batch, consumer_lag, slow, version_not_offered,
    oversized_request, closed_in_flight, duplicate_correlation_id, everyday_error_again, near_loss,
    unreadable_request, suspect_version, stuck_fetch,
)  # fmt: skip

if __name__ == "__main__":
    {trouble.__name__: trouble for trouble in TROUBLES}[sys.argv[2]](sys.argv[1])
