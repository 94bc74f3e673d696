"""Whatever answers a probe, it ends in time with one plain line and the right exit code."""

import contextlib
import random
import socket
import ssl
import time

import pytest

from dissector.cli.formats import ProbeFormat
from dissector.cli.probe import probe
from dissector.core.addresses import BrokerAddress
from dissector.probe.connection import MAX_RESPONSE_BYTES, BrokerConnection, ProbeError, probed_address
from dissector.protocol.codec.plan import plan
from dissector.protocol.codec.writer import write
from tests.cases import cases
from tests.cli.test_commands import kdissect
from tests.probe.servers import Handler, frame, serving
from tests.protocol.random_messages import make
from tests.tls.sessions import certificate

pytestmark = pytest.mark.slow

OFFER = [{"api_key": 3, "min_version": 0, "max_version": 12}, {"api_key": 18, "min_version": 0, "max_version": 2}]


def answer(connection: socket.socket, request: bytes, name: str, version: int, values: dict[str, object]) -> None:
    """Send a response of header v0."""
    content = request[4:8] + write(name, version, values)
    connection.sendall(len(content).to_bytes(4, "big") + content)


def http(connection: socket.socket) -> None:
    connection.recv(100)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")


def ssh(connection: socket.socket) -> None:
    connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
    connection.recv(100)


def closes(connection: socket.socket) -> None:
    connection.recv(1)


def huge(connection: socket.socket) -> None:
    connection.recv(100)
    connection.sendall((MAX_RESPONSE_BYTES + 1).to_bytes(4, "big") + bytes(60))


def endless(connection: socket.socket) -> None:
    """The beginning of an answer, and then a byte now and then, for ever."""
    connection.recv(100)
    connection.sendall((1_000).to_bytes(4, "big"))
    while True:
        connection.sendall(b"\x00")
        time.sleep(0.05)


def other_id(connection: socket.socket) -> None:
    answer(connection, b"\x00" * 8, "ApiVersionsResponse", 0, {"api_keys": OFFER})


def damaged(connection: socket.socket) -> None:
    request = frame(connection)
    content = request[4:8] + b"\x00\x00\x00\xff\xff\xff"
    connection.sendall(len(content).to_bytes(4, "big") + content)


def sasl(connection: socket.socket) -> None:
    """ApiVersions is answered before authentication; anything else but SaslHandshake closes the connection."""
    request = frame(connection)
    answer(connection, request, "ApiVersionsResponse", 0, {"error_code": 35, "api_keys": OFFER[1:]})
    answer(connection, frame(connection), "ApiVersionsResponse", 2, {"api_keys": OFFER})
    frame(connection)


def never_agrees(connection: socket.socket) -> None:
    while True:
        answer(connection, frame(connection), "ApiVersionsResponse", 0, {"error_code": 35, "api_keys": OFFER[1:]})


def tls_alert(connection: socket.socket) -> None:
    """What Java's TLS says to what is no TLS."""
    frame(connection)
    connection.sendall(bytes.fromhex("15030300020250"))


def refuses(connection: socket.socket) -> None:
    answer(connection, frame(connection), "ApiVersionsResponse", 3, {"error_code": 58, "api_keys": []})


NO_NULL = "api_keys: count -1 where null is not allowed"


@pytest.mark.long
@cases(
    ("server", "code", "words"),
    [
        (http, 1, "answered like a web server (HTTP): not Kafka"),
        (ssh, 1, "answered 'SSH-2.0-OpenSSH_9.6': not Kafka"),
        (closes, 2, "closed the connection instead of answering ApiVersions"),
        (huge, 1, "announces an answer of 8,388,609 bytes: not Kafka"),
        (endless, 2, "no complete answer to ApiVersions within 0.7 s"),
        (lambda connection: time.sleep(2), 2, "no complete answer to ApiVersions within 0.7 s"),
        (other_id, 1, "answered a request that was not sent: not Kafka"),
        (
            damaged,
            1,
            "what answers ApiVersions v5 is damaged: api_keys: count -1 where null is not allowed, at offset 10",
        ),
        (never_agrees, 1, "answers ApiVersions v2 with UNSUPPORTED_VERSION"),
        (tls_alert, 2, "uses TLS: probe a PLAINTEXT listener"),
        (refuses, 1, "answers ApiVersions v5 with SASL_AUTHENTICATION_FAILED"),
    ],
)
def test_a_server_that_is_not_kafka_is_reported_in_one_line(server: Handler, code: int, words: str) -> None:
    """And it ends: of those that say too little, in the time that it was given."""
    longest = "0.7" if "0.7 s" in words else "20"
    with serving(server) as address:
        done = kdissect("probe", address, "--timeout", longest)
    [line] = done.stderr.decode().splitlines()
    assert (done.returncode, line.partition(";")[0]) == (code, f"kdissect: {address}: {words}")
    assert not done.stdout


def test_a_listener_that_wants_authentication_shows_its_offer_and_says_why_no_more() -> None:
    with serving(sasl) as address:
        done = kdissect("probe", address)
    assert done.returncode == 2
    text = done.stdout.decode()
    assert "it does not know v5 (error 35) and names v0-2 (KIP-511)" in text
    assert "Metadata     0-12    0-13  we are newer" in text
    [line] = done.stderr.decode().splitlines()
    assert "closed the connection instead of answering Metadata" in line
    assert "wants authentication (SASL) first" in line


def test_a_tls_port_that_only_closes_is_known_by_a_handshake() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate("rsa").path)

    def tls(connection: socket.socket) -> None:
        with contextlib.suppress(ssl.SSLError):  # OpenSSL says nothing to what is no TLS
            context.wrap_socket(connection, server_side=True).recv(1)

    with serving(tls) as address:
        done = kdissect("probe", address)
    assert done.returncode == 2
    assert done.stderr.decode() == f"kdissect: {address}: uses TLS: probe a PLAINTEXT listener\n"


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    done = kdissect("probe", f"127.0.0.1:{port}")
    assert (done.returncode, done.stderr.decode()) == (2, f"kdissect: 127.0.0.1:{port}: connection refused\n")


@cases(
    ("words", "answer"),
    [
        ([""], "'': not HOST or HOST:PORT"),
        (["broker:"], "broker:: not HOST or HOST:PORT"),
        (["broker:0"], "broker:0: '0' is not a port from 1 to 65535"),
        (["broker:65536"], "broker:65536: '65536' is not a port from 1 to 65535"),
        (["::1:9092"], "::1:9092: write an IPv6 address in brackets, [::1]:9092"),
        (["no-such-host.invalid:9092"], "no-such-host.invalid:9092: unknown host"),
        (["127.0.0.1:9", "--timeout", "nan"], "a time-out of nan s is not between 0 and 600 s"),
        (["127.0.0.1:9", "--timeout", "0"], "a time-out of 0 s is not between 0 and 600 s"),
    ],
)
def test_bad_use_is_one_line(words: list[str], answer: str) -> None:
    done = kdissect("probe", *words)
    assert (done.returncode, done.stderr.decode()) == (2, f"kdissect: {answer}\n")


def test_addresses() -> None:
    assert probed_address("[::1]:9092") == BrokerAddress("::1", 9092)
    assert str(probed_address("[::1]:9092")) == "[::1]:9092"
    assert probed_address("broker-1:19092") == BrokerAddress("broker-1", 19092)
    assert probed_address("PLAINTEXT://broker-1") == BrokerAddress("broker-1", 9092)


def test_an_unanswered_request_is_kept_as_an_exchange() -> None:
    with serving(closes) as address, BrokerConnection(probed_address(address), "me", 2) as connection:
        with pytest.raises(ProbeError):
            connection.ask(18, 0, {})
        [exchange] = connection.exchanges
    assert exchange.response is None
    assert exchange.row.client_id == "me"
    assert [finding.code for finding in exchange.findings] == ["unanswered"]


@cases("seed", range(40))
def test_whatever_a_server_answers_the_report_is_printed(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Bodies that are well formed and senseless: random numbers, hostile names, nulls."""
    chance = random.Random(seed)

    def senseless(connection: socket.socket) -> None:
        request_frame = frame(connection)
        values, _ = make(plan("ApiVersionsResponse", 5), chance)
        offer = [{"api_key": key, "min_version": -5, "max_version": 30_000} for key in (-7, 3, 60, 9_999)]
        random_keys = values["api_keys"]
        assert isinstance(random_keys, list)
        answer(
            connection,
            request_frame,
            "ApiVersionsResponse",
            5,
            {**values, "error_code": 0, "api_keys": random_keys + offer},
        )
        values, _ = make(plan("MetadataResponse", 13), chance)
        content = frame(connection)[4:8] + b"\x00" + write("MetadataResponse", 13, {**values, "error_code": 0})
        connection.sendall(len(content).to_bytes(4, "big") + content)

    with serving(senseless) as address:
        code = probe(address, ProbeFormat.TEXT, 5, "me", topics=True)
    output = capsys.readouterr()
    assert (code, output.err) == (0, "")
    assert "(unknown)" in output.out
    assert "\x1b" not in output.out
