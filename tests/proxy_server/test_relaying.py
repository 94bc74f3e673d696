"""What passes through a proxy: the same bytes, in both directions, whatever they are and however they are cut."""

import asyncio
import contextlib
import random
import socket
import struct
import threading
import time
from pathlib import Path
from typing import cast

import pytest

from dissector.core.text import endpoint_name
from dissector.proxy_server.relay import COPIED_BYTES, READ_BYTES, ConnectionSide, ReadBuffer, Relay
from tests.frames import request, response
from tests.probe.servers import mock_cluster, serving
from tests.proxy_server.proxies import is_closed, proxy


def read_all(connection: socket.socket) -> bytes:
    parts = []
    while part := connection.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def send_in_pieces(connection: socket.socket, data: bytes, chance: random.Random) -> None:
    at = 0
    while at < len(data):
        step = chance.choice((1, 3, 11, 200, 5_000, 70_000))
        connection.sendall(data[at : at + step])
        at += step


def frames(chance: random.Random, count: int) -> tuple[bytes, bytes]:
    """Requests and responses of APIs that are not rewritten, unknown ones too, of all sizes."""
    asked, answered = [], []
    for number in range(count):
        key, version = chance.choice(((12, 4), (11, 5), (999, 3), (32_000, 0), (0, 9), (8, 8), (3, 99)))
        body = chance.randbytes(chance.choice((0, 1, 9, 300, 80_000)))
        acks = b"\0\0" + chance.choice((b"\0\0", b"\xff\xff")) if key == 0 else b""
        asked.append(request(number, api_key=key, version=version, body=acks + body))
        if acks != bytes(4):
            answered.append(response(number, chance.randbytes(chance.choice((0, 5, 200, 90_000)))))
    return b"".join(asked), b"".join(answered)


@pytest.mark.parametrize("seed", range(4))
def test_streams_are_the_same_on_both_sides(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    asked, answered = frames(chance, 60)
    came: list[bytes] = []

    def broker(connection: socket.socket) -> None:
        sending = threading.Thread(target=send_in_pieces, args=(connection, answered, random.Random(seed + 1)))
        sending.start()
        came.append(read_all(connection))
        sending.join()

    with serving(broker) as address, proxy(tmp_path, address) as between:
        with socket.create_connection(between.address, 10) as client:
            client.settimeout(20)
            sending = threading.Thread(target=send_in_pieces, args=(client, asked, chance))
            sending.start()
            sending.join()
            client.shutdown(socket.SHUT_WR)
            assert read_all(client) == answered
        assert between.streams() == [(asked, answered)]
        assert came == [asked]


def test_what_was_recorded_names_the_broker_and_the_client(tmp_path: Path) -> None:
    def broker(connection: socket.socket) -> None:
        connection.recv(999)
        connection.sendall(response(5))

    with serving(broker) as address, proxy(tmp_path, address) as between:
        with socket.create_connection(between.address, 10) as client:
            name = endpoint_name(*client.getsockname())
            client.sendall(request(5, api_key=12, version=0))
            assert client.recv(999) == response(5)
        with between.capture() as capture:
            [row] = capture.at(range(1))
            assert (row.row.client, row.row.server, row.row.latency_ns is not None) == (name, address, True)
        assert between.path.stat().st_mode & 0o777 == 0o600


def test_a_reset_passes(tmp_path: Path) -> None:
    def broker(connection: socket.socket) -> None:
        connection.recv(999)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with (
        serving(broker) as address,
        proxy(tmp_path, address) as between,
        socket.create_connection(between.address, 10) as client,
    ):
        client.sendall(request(1))
        with pytest.raises(ConnectionResetError):
            client.recv(999)


def test_a_broker_that_is_not_there_closes_the_client(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        with proxy(tmp_path, address) as between:
            for _ in range(3):
                with (
                    contextlib.suppress(ConnectionResetError),  # it may come before `connect` returns
                    socket.create_connection(between.address, 10) as client,
                ):
                    client.settimeout(10)
                    assert is_closed(client)
            time.sleep(0.1)
            assert [words for words in between.said() if "refused" in words] == [f"{address}: connection refused"]


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "speaks TLS"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "speaks HTTP"),
        (b"\xff\xff\xff\xfe\x00\x00\x00\x00\x00\x00", "does not speak Kafka"),
    ],
)
def test_a_client_of_another_protocol_is_closed_with_one_line(tmp_path: Path, first: bytes, words: str) -> None:
    with (
        serving(lambda connection: len(read_all(connection))) as address,
        proxy(tmp_path, address) as between,
    ):
        for _ in range(2):
            with socket.create_connection(between.address, 10) as client:
                client.settimeout(10)
                client.sendall(first)
                assert is_closed(client)
        between.stop()
        assert len([each for each in between.said() if words in each]) == 1


def test_clients_of_a_cluster_never_learn_where_its_brokers_are(tmp_path: Path) -> None:
    from confluent_kafka import Producer

    with mock_cluster(3) as brokers, proxy(tmp_path, brokers[0]) as between:
        producer = Producer({"bootstrap.servers": between.bootstrap, "log_level": 0})
        for number in range(30):
            producer.produce("orders", f"order {number}", partition=number % 4)
        assert producer.flush(30) == 0
        told = {f"{broker.host}:{broker.port}" for broker in producer.list_topics(timeout=10).brokers.values()}
        assert told == {address for address, _ in between.recording.listening}
        assert {broker for _, broker in between.recording.listening} == set(brokers)
        del producer
        with between.capture() as capture:
            found = {each.row.server for each in capture.at(range(len(capture)))}
            assert found <= set(brokers)
            assert len(found) > 1


class _Keeping(asyncio.Transport):
    """A transport that sends nothing, and keeps what it was given as it is: as asyncio's do since Python 3.12."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[bytes | bytearray | memoryview] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.kept.append(data)

    def get_write_buffer_size(self) -> int:
        return sum(map(len, self.kept))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def is_closing(self) -> bool:
        return False


class _Passing:
    """A relay that sends all that comes to the other side."""

    def __init__(self) -> None:
        self.buffer = ReadBuffer()
        self.is_decided = False
        self.sides = [ConnectionSide(cast(Relay, self), is_client=False) for _ in range(2)]

    def other(self, side: ConnectionSide) -> ConnectionSide:
        return self.sides[side is self.sides[0]]

    def received(self, side: ConnectionSide, data: bytes | memoryview) -> None:
        self.other(side).send(data)


@pytest.mark.parametrize("size", [1, COPIED_BYTES, COPIED_BYTES + 1, READ_BYTES])
def test_what_waits_to_be_sent_is_not_overwritten_by_what_comes_next(size: int) -> None:
    relay, transport = _Passing(), _Keeping()
    side, other = relay.sides
    other.connection_made(transport)
    sent = [bytes((number,)) * size for number in range(4)]
    for data in sent:
        buffer = side.get_buffer(-1)
        buffer[:size] = data
        side.buffer_updated(size)
    assert [bytes(each) for each in transport.kept] == sent
