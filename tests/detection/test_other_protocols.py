"""Other protocols are counted by name, cost little, and are never read as Kafka."""

import http.server
import random
import socket
import ssl
import struct
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dissector.capture_session import Capture
from dissector.core import limits
from dissector.detection.other_protocols import OtherProtocol, recognize
from dissector.exchange.model import ExchangeRow
from tests.cases import cases
from tests.traffic import (
    SYN,
    Packet,
    Turn,
    capture_of,
    conversation,
    exchanges,
    request,
    response,
    seeds,
)

KAFKAS, ELSEWHERE = ("10.0.0.2", 9092), ("10.0.0.2", 5555)


def seen(path: str, **options: object) -> tuple[list[ExchangeRow], dict[str, int]]:
    """The rows of a capture, and what its connections speak."""
    with Capture([path], **options) as capture:
        return [exchange.row for exchange in capture.exchanges()], capture.connections.protocols


def http_turns() -> list[Turn]:
    """What a real HTTP server and a client on loopback say."""
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    threading.Thread(target=server.handle_request).start()
    options = b"GET /topics HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.create_connection(server.server_address[:2]) as client:
        client.sendall(options)
        answer = b"".join(iter(lambda: client.recv(4096), b""))
    server.server_close()
    assert answer.startswith(b"HTTP/1.")
    return [Turn(True, options), Turn(False, answer)]


def tls_turns() -> list[Turn]:
    """A real handshake, with ciphers that need no certificate, and some data."""
    contexts = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    contexts[0].check_hostname = False
    contexts[0].verify_mode = ssl.CERT_NONE
    wires = [(ssl.MemoryBIO(), ssl.MemoryBIO()) for _ in contexts]
    for context in contexts:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("AECDH-AES256-SHA:@SECLEVEL=0")
    ends = [c.wrap_bio(*wires[n], server_side=n == 1) for n, c in enumerate(contexts)]
    turns: list[Turn] = []

    def pass_on(side: int) -> None:
        data = wires[side][1].read()
        if data:
            turns.append(Turn(side == 0, data))
            wires[1 - side][0].write(data)

    for n in range(6):
        with suppress(ssl.SSLWantReadError):
            ends[n % 2].do_handshake()
        pass_on(n % 2)
    for n in range(8):
        ends[n % 2].write(request(n))
        pass_on(n % 2)
        assert ends[1 - n % 2].read() == request(n)
    return turns


@pytest.mark.parametrize("handshake", [True, False])
def test_an_http_server_has_a_row_on_kafkas_port_and_is_only_counted_elsewhere(tmp_path: Path, handshake: bool) -> None:
    turns = http_turns()
    rows, protocols = seen(capture_of(tmp_path, conversation(turns, handshake=handshake)))
    assert protocols == {"HTTP": 1}
    [row] = rows
    assert row.info.startswith("HTTP on Kafka's port, not Kafka: ")
    assert (row.request_size, row.response_size) == (len(turns[0].data), len(turns[1].data))
    assert seen(capture_of(tmp_path, conversation(turns, handshake=handshake, server=ELSEWHERE))) == ([], {"HTTP": 1})


@cases("first", [0, 2, 5])
def test_a_tls_broker_is_recognized_also_from_the_middle(tmp_path: Path, first: int) -> None:
    turns = tls_turns()[first:]
    rows, protocols = seen(capture_of(tmp_path, conversation(turns, handshake=not first)))
    assert protocols == {"TLS": 1}
    known = "" if first else " 1.2, TLS_ECDH_anon_WITH_AES_256_CBC_SHA, about 4 exchanges"
    assert [(row.kind, row.info) for row in rows] == [("tls", f"encrypted: TLS{known}")]
    rows, protocols = seen(capture_of(tmp_path, conversation(turns, handshake=not first, server=ELSEWHERE)))
    assert (rows, protocols) == ([], {"TLS": 1})


@cases(
    ("protocol", "from_client", "head"),
    [
        (OtherProtocol.HTTP2, True, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        (OtherProtocol.SSH, True, b"SSH-2.0-OpenSSH_9.2p1\r\n"),
        (OtherProtocol.ZOOKEEPER, True, struct.pack(">iiqiqi", 44, 0, 7, 30000, 0, 16) + bytes(16)),
        (OtherProtocol.ZOOKEEPER, True, b"ruok"),
        (OtherProtocol.POSTGRESQL, True, struct.pack(">ihh", 38, 3, 0) + b"user\0kafka\0database\0registry\0\0"),
        (OtherProtocol.POSTGRESQL, True, struct.pack(">ii", 8, 80877103)),
        (OtherProtocol.MYSQL, False, b"\x4a\0\0\0\x0a8.0.36\0" + bytes(60)),
        (OtherProtocol.MONGODB, True, struct.pack("<iiii", 40, 1, 0, 2013) + bytes(24)),
        (OtherProtocol.REDIS, True, b"*1\r\n$4\r\nPING\r\n"),
        (OtherProtocol.AMQP, True, b"AMQP\0\0\x09\x01"),
        (OtherProtocol.MQTT, True, b"\x10\x10\0\x04MQTT\x04\x02\0\x3c\0\x04test"),
        (OtherProtocol.SMTP_OR_FTP, False, b"220 mail.example ESMTP\r\n"),
        (OtherProtocol.SMB, True, b"\0\0\0\x54\xfeSMB" + bytes(80)),
        (OtherProtocol.PROXY, True, b"PROXY TCP4 10.0.0.5 10.0.0.9 40001 9092\r\n" + bytes(80)),
        (OtherProtocol.PROXY, True, b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes(80)),
    ],
)
def test_protocols_are_known_by_their_first_bytes(
    tmp_path: Path, protocol: OtherProtocol, from_client: bool, head: bytes
) -> None:
    assert recognize(head) is protocol
    packets = conversation([Turn(from_client, head), Turn(not from_client, b"whatever it says")])
    rows, protocols = seen(capture_of(tmp_path, packets))
    assert protocols == {protocol.label: 1}
    assert [row.info.partition(":")[0] for row in rows] == [f"{protocol.label} on Kafka's port, not Kafka"]


def zookeeper(first: int, count: int) -> list[Turn]:
    """Requests and replies of a ZooKeeper session in progress: frames with size prefixes and ids, as Kafka's."""
    turns = []
    for xid in range(first, first + count):
        path = b"/brokers/ids/%d" % (xid % 3)
        turns.append(
            Turn(True, struct.pack(">iii", 13 + len(path), xid, 4) + struct.pack(">i", len(path)) + path + b"\0")
        )
        turns.append(Turn(False, struct.pack(">iiqii", 16 + 4 + 20, xid, 0x1_0000_0000 + xid, 0, 20) + bytes(20)))
    return turns


@cases("sides", [{True, False}, {True}, {False}])
@cases("first", [1, 300, 70_000])
def test_zookeeper_in_progress_is_not_kafka(tmp_path: Path, sides: set[bool], first: int) -> None:
    packets = [
        p for p in conversation(zookeeper(first, 30), handshake=False, server=ELSEWHERE) if p.from_client in sides
    ]
    assert seen(capture_of(tmp_path, packets)) == ([], {"unknown": 1})


@cases("sides", [{True, False}, {True}, {False}])
@cases("server", [KAFKAS, ELSEWHERE])
def test_kafka_in_progress_is_found_on_any_port_in_either_side(
    tmp_path: Path, sides: set[bool], server: tuple[str, int]
) -> None:
    packets = conversation(exchanges(8, size=40), handshake=False, server=server)
    rows, protocols = seen(capture_of(tmp_path, [p for p in packets if p.from_client in sides]))
    assert protocols == {"Kafka": 1}
    assert [(row.correlation_id, row.server) for row in rows] == [(n, f"{server[0]}:{server[1]}") for n in range(8)]
    assert {row.request_size is not None for row in rows} == {True in sides}
    assert {row.response_size is not None for row in rows} == {False in sides}


def test_a_port_scan_is_no_rows(tmp_path: Path) -> None:
    packets = [Packet(True, 1, b"", SYN, server=("10.0.0.2", port)) for port in range(8000, 10_000)]
    assert seen(capture_of(tmp_path, packets)) == ([], {"without data": 2000})


@pytest.mark.parametrize("server", [KAFKAS, ELSEWHERE])
def test_small_integers_in_one_segment_are_no_responses(tmp_path: Path, server: tuple[str, int]) -> None:
    """Three that read as responses, up to the segment's end, are chance; a segment each they are not."""
    words = (8, 3, 0, 8, 5, 0, 8, 9, 0)
    packets = conversation([Turn(False, struct.pack(">9i", *words))], handshake=False, server=server)
    rows, protocols = seen(capture_of(tmp_path, packets))
    assert protocols == {"unknown": 1}
    assert [row for row in rows if row.kind == "exchange"] == []
    packets = conversation([Turn(False, struct.pack(">9i", *words))], segment=12, handshake=False, server=server)
    rows, protocols = seen(capture_of(tmp_path, packets))
    assert protocols == {"Kafka": 1}
    assert [row.correlation_id for row in rows] == [3, 5, 9]


@pytest.mark.slow
@given(chance=seeds, handshake=st.booleans())
@example(chance=random.Random(34292112), handshake=False)
@example(chance=random.Random(3144), handshake=True)
def test_noise_is_never_kafka(tmp_path: Path, chance: random.Random, handshake: bool) -> None:
    """Random bytes, and the zeros and small numbers that binary protocols are full of."""
    packets: list[Packet] = []
    for n in range(10):
        small = [bytes(3) + bytes([chance.randrange(64)]) for _ in range(chance.randrange(200))]
        turns = [
            Turn(
                not turn or chance.random() < 0.5,
                chance.choice([chance.randbytes(chance.randrange(900)), b"".join(small)]),
            )
            for turn in range(10)
        ]
        server = ("10.0.0.2", chance.choice([9092, 5555]))
        packets += conversation(turns, handshake=handshake, client=("10.0.0.3", 1000 + n), server=server, segment=300)
    rows, _ = seen(capture_of(tmp_path, packets))
    assert [row for row in rows if row.kind == "exchange"] == []


def test_non_kafka_connections_have_rows_up_to_a_limit_and_are_counted_past_it(tmp_path: Path) -> None:
    packets = [
        p for n in range(9) for p in conversation([Turn(True, b"GET / HTTP/1.1\r\n\r\n")], client=("10.0.0.3", n + 1))
    ]
    with Capture([capture_of(tmp_path, packets)], limits.Limits(non_kafka_connections=4)) as capture:
        assert len(list(capture.exchanges())) == 4
        [problem] = capture.problems
        assert problem.message == "5 connections not shown, as they are not Kafka: HTTP 5"
        assert capture.connections.protocols == {"HTTP": 9}


def test_a_given_port_is_kafkas_whatever_its_content(tmp_path: Path) -> None:
    """Its bytes are rows of unparsed bytes, and frames among them are read."""
    turns = [Turn(True, b"GET / HTTP/1.1\r\n\r\n"), Turn(True, request(1)), Turn(False, response(1))]
    path = capture_of(tmp_path, conversation(turns, server=ELSEWHERE))
    assert seen(path) == ([], {"HTTP": 1})
    rows, protocols = seen(path, ports=frozenset({5555}))
    assert [(row.kind, row.correlation_id) for row in rows] == [("unparsed", None), ("exchange", 1)]
    assert protocols == {"Kafka": 1}


def test_a_lone_response_is_found_on_a_given_port(tmp_path: Path) -> None:
    packets = conversation([Turn(False, response(7))], server=ELSEWHERE, handshake=False)
    path = capture_of(tmp_path, packets)
    assert seen(path) == ([], {"unknown": 1})
    rows, _ = seen(path, ports=frozenset({5555}))
    assert [(row.kind, row.correlation_id) for row in rows] == [("exchange", 7)]


def test_tls_is_recognized_even_on_a_given_port(tmp_path: Path) -> None:
    path = capture_of(tmp_path, conversation(tls_turns(), server=ELSEWHERE))
    rows, protocols = seen(path, ports=frozenset({5555}))
    assert ([row.kind for row in rows], protocols) == (["tls"], {"TLS": 1})


def test_traffic_between_two_ports_of_kafkas_is_recognized_by_content(tmp_path: Path) -> None:
    client = ("10.0.0.1", 9092)
    for sides in ({True, False}, {False}):
        packets = conversation(exchanges(6), client=client, handshake=False)
        rows, _ = seen(capture_of(tmp_path, [p for p in packets if p.from_client in sides]))
        assert {(row.client, row.server) for row in rows} == {("10.0.0.1:9092", "10.0.0.2:9092")}
        assert [row.correlation_id for row in rows] == list(range(6))
