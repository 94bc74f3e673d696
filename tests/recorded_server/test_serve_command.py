"""`kdissect serve` as users run it: real clients, hostile ones, what it says."""

import socket
import struct
import time
from pathlib import Path

import pytest

import dissector
from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS
from tests.probe.servers import frame
from tests.proxy_server.proxies import proxy
from tests.recorded_server.served import ask_on, serve_command
from tests.traffic import Turn, capture_of, conversation, request, response

pytestmark = pytest.mark.slow


@pytest.mark.long
def test_librdkafka_consumes_what_a_java_client_did() -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka", reason="NOT TESTED: librdkafka can't be imported")
    with serve_command(PCAPS / "java.pcapng", "--text", "--no-wait") as server:
        settings = {"bootstrap.servers": server.bootstrap, "group.id": "mine", "auto.offset.reset": "earliest"}
        consumer = confluent_kafka.Consumer(settings)
        consumer.subscribe(["java-orders"])
        found = [each for each in consumer.consume(100, timeout=20) if each.error() is None]
        consumer.close()
        assert len({(each.partition(), each.offset()) for each in found}) == 100
        assert server.end() == 0
    assert any("Fetch" in row and "<- row" in row for row in server.rows)
    assert "answered" in server.said[-1]


@pytest.mark.long
def test_kafka_python_produces_to_a_recording_of_another_client() -> None:
    kafka = pytest.importorskip("kafka", reason="NOT TESTED: kafka-python can't be imported")
    with dissector.serve(PCAPS / "java.pcapng") as server:
        producer = kafka.KafkaProducer(bootstrap_servers=server.bootstrap)
        assert producer.send("java-orders", b"x", partition=1).get(15).partition == 1
        producer.close()
        assert server.unanswered == []


HOSTILE = {
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01", "speaks TLS"),
    "HTTP": (b"GET / HTTP/1.1\r\n\r\n", "speaks HTTP"),
    "garbage": (b"\xff\xff\xff\xff\x1b]0;x\x07", "does not speak Kafka"),
    "half a frame": (struct.pack(">i", 1000) + b"abc", "ended inside a frame of 1,000 bytes"),
    "half a size": (b"\0\0", "ended inside a size prefix"),
    "no request": (struct.pack(">i", 3) + b"abc", "a request of 3 bytes"),
    "an unknown API": (request(1, api_key=999), "no version that this release knows"),
    "a body that ends too soon": (request(1, api_key=3, version=12, body=b"\x7f"), "a request that can't be read"),
}


@pytest.mark.long
def test_hostile_clients_get_a_closed_connection_and_one_plain_line() -> None:
    with serve_command(PCAPS / "java.pcapng") as server:
        for sent, _ in HOSTILE.values():
            with socket.create_connection(server.address, 10) as client:
                client.sendall(sent)
                client.shutdown(socket.SHUT_WR)
                assert client.recv(9) == b""
        with socket.create_connection(server.address, 10) as client:
            assert ask_on(client, "ApiVersions", 0, {}).body["api_keys"], "others are still answered"
        assert server.end() == 0
    for sent, words in HOSTILE.values():
        [line] = {each for each in server.said if words in each and not each.startswith("kdissect:   ")}
        assert line.isprintable(), sent
    assert not any("Traceback" in line for line in server.said)


def test_a_capture_without_an_exchange_is_one_plain_line(tmp_path: Path) -> None:
    done = kdissect("serve", capture_of(tmp_path, conversation([Turn(False, response(8))])))
    assert done.returncode == 2
    assert done.stderr.endswith(b"contains no complete Kafka exchange: nothing can be answered\n")


def test_long_polls_wait_as_recorded_unless_told_otherwise() -> None:
    recorded = PCAPS / "kafka-python.pcapng"
    partitions = [{"partition": 0, "fetch_offset": 10**6, "partition_max_bytes": 9}]
    asked = {"replica_id": -1, "max_wait_ms": 300, "min_bytes": 1, "max_bytes": 9,
             "topics": [{"topic": "kafka-python-orders", "partitions": partitions}]}  # fmt: skip
    with dissector.serve(recorded) as server, socket.create_connection(server.address, 10) as client:
        begin = time.monotonic()
        assert ask_on(client, "Fetch", 4, asked).body["responses"]
        assert time.monotonic() - begin >= 0.29, "a client that asks to wait for news does not turn in circles"


def test_a_login_without_a_password_file_and_raw_tokens() -> None:
    """A recording with SaslHandshake v0: what follows are raw tokens."""
    with (
        dissector.serve(PCAPS / "kafka-python-as-0.10-sasl.pcapng") as server,
        socket.create_connection(server.address, 10) as client,
    ):
        shaken = ask_on(client, "SaslHandshake", 0, {"mechanism": "PLAIN"}).body
        assert shaken["error_code"] == 0
        client.sendall(b"\0\0\0\x06\0a\0pwd")
        assert frame(client) == b""
        assert ask_on(client, "ApiVersions", 0, {}).body["api_keys"]


def test_a_new_client_speaks_to_an_old_broker_as_it_would() -> None:
    """A recording whose broker offers Produce up to version 5, as that of Kafka 1.1 does."""
    confluent_kafka = pytest.importorskip("confluent_kafka", reason="NOT TESTED: librdkafka can't be imported")
    frames = []
    with dissector.open(PCAPS / "java.pcapng") as capture:
        for each in capture.exchanges():
            response = each.response.data
            if each.api == "ApiVersions":
                body = dict(each.response.body)
                body["api_keys"] = [
                    {**row, "max_version": 5} if row["api_key"] == 0 else row for row in body["api_keys"]
                ]
                response = dissector.encode_response(
                    "ApiVersions", each.api_version, body, correlation_id=each.correlation_id
                )
            frames.append((each.request.data, response))
    done: list[object] = []
    with dissector.serve(frames) as server:
        producer = confluent_kafka.Producer({"bootstrap.servers": server.bootstrap, "message.timeout.ms": 15_000})
        producer.produce("java-orders", b"tea", partition=0, on_delivery=lambda error, _: done.append(error))
        producer.flush(20)
        produced = {int.from_bytes(each[6:8], "big") for each in server.requests if each[4:6] == b"\0\0"}
    assert done == [None]
    assert produced == {5}


@pytest.mark.long
def test_retries_are_tested_without_a_broker(tmp_path: Path) -> None:
    """The recipe: a recording behind a proxy with a fault."""
    confluent_kafka = pytest.importorskip("confluent_kafka", reason="NOT TESTED: librdkafka can't be imported")
    done: list[object] = []
    rule = ("", "api == Produce: error NOT_LEADER_OR_FOLLOWER, first 3")
    with dissector.serve(PCAPS / "java.pcapng") as server, proxy(tmp_path, server.bootstrap, faults=(rule,)) as between:
        producer = confluent_kafka.Producer({"bootstrap.servers": between.bootstrap, "message.timeout.ms": 15_000})
        producer.produce("java-orders", b"tea", partition=0, on_delivery=lambda error, _: done.append(error))
        producer.flush(20)
        with between.capture() as capture:
            errors = [each for each in capture.exchanges("api == Produce") if "NOT_LEADER" in each.row.info]
    assert done == [None]
    assert len(errors) == 3
