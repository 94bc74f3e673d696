"""`pcaps/mistakes`: real clients with wrong settings at a real broker. Each is named, with the setting to change."""

from pathlib import Path

import pytest

from dissector.capture_session import Capture
from dissector.core.finding import Finding, Severity
from tests.cases import cases
from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS
from tests.traffic import ACK, FIN, RST, SYN, Packet, Turn, capture_of, conversation, request, response

MISTAKES = PCAPS / "mistakes"
TLS_PORT = 9096


def findings(path: Path, *ports: int) -> list[Finding]:
    """All findings of a capture: of its rows, of several rows, and of the capture itself."""
    with Capture([str(path)], ports=frozenset(ports)) as capture:
        for _ in capture.read():
            pass
        for _ in capture.findings.examine():
            pass
        return [*capture.problems, *(finding for exchange in capture.exchanges() for finding in exchange.findings)]


@pytest.mark.long
@cases(
    ("name", "code", "setting"),
    [
        ("java-tls-to-plain", "tls-on-plain-port", "security.protocol=PLAINTEXT"),
        ("librdkafka-tls-to-plain", "tls-on-plain-port", "security.protocol=PLAINTEXT"),
        ("java-plain-to-tls", "plain-on-tls-port", "security.protocol=SSL"),
        ("librdkafka-plain-to-tls", "plain-on-tls-port", "security.protocol=SSL"),
        ("java-untrusted", "tls-alert", "certificate_unknown: it does not trust the broker's certificate; set ssl.tru"),
        ("librdkafka-untrusted", "tls-alert", "unknown_ca: it does not trust the broker's certificate; set ssl.trust"),
        ("curl", "unparsed", "HTTP on Kafka's port"),
        ("java-without-login", "login-required", "security.protocol=SASL_PLAINTEXT"),
        ("librdkafka-without-login", "login-required", "security.protocol=SASL_PLAINTEXT"),
    ],
)
def test_a_mistake_is_named_with_the_setting_to_change(name: str, code: str, setting: str) -> None:
    found = findings(MISTAKES / f"{name}.pcapng", *([TLS_PORT] if name.endswith("untrusted") else []))
    assert [finding for finding in found if finding.code == code and setting in finding.message]
    assert "closed-in-flight" not in {finding.code for finding in found}


_TLS_ON_PLAIN = (
    "TLS on a plaintext listener: set security.protocol=PLAINTEXT (SASL_PLAINTEXT with a login), or use an SSL listener"
)
_PLAIN_ON_TLS = (
    "plain Kafka on a TLS listener (alert internal_error): set security.protocol=SSL (SASL_SSL with a login), "
    "or use a PLAINTEXT listener"
)
FIVE_TROUBLES = {
    "librdkafka-nothing-listens": "6 connections to 127.0.0.1:9099 were refused: nothing listens there; correct "
    "bootstrap.servers, or start the broker",
    "java-controller": "this is a controller's listener, which has no Metadata: set bootstrap.servers to a broker's "
    "listener",
    "java-tls-to-plain": _TLS_ON_PLAIN,
    "librdkafka-tls-to-plain": _TLS_ON_PLAIN,
    "java-plain-to-tls": _PLAIN_ON_TLS,
    "librdkafka-plain-to-tls": _PLAIN_ON_TLS,
    "librdkafka-refused-login": "SASL_AUTHENTICATION_FAILED: The login was refused: correct user and password "
    "(sasl.jaas.config, or sasl.username and sasl.password), or the token.",
    "librdkafka-old-version": "the broker closed the connection on Produce v1, which Kafka 4 no longer has (it has v3 "
    "and up), and which a broker that is too old does not have yet: if it is new, upgrade the client, or remove "
    "the setting that fixes its versions (broker.version.fallback in librdkafka, api_version in kafka-python, "
    "Config.Version in sarama); if it is old, upgrade it, or set its release in the client (broker.version.fallback "
    "in librdkafka, api_version in kafka-python, Config.Version in sarama); 3 connections within 898.7 ms",
    "java-advertised": "2 connections to 127.0.0.1:9099 were refused: the broker advertises this address, which "
    "clients must reach: correct advertised.listeners",
}
"""The wrong port, TLS on one side alone, a refused login, a version that is not supported, an advertised address that
can't be reached: by recording, the line that says what to change."""


@pytest.mark.long
@cases("name", FIVE_TROUBLES)
def test_each_of_the_five_troubles_is_one_line_that_says_what_to_change(name: str) -> None:
    path = MISTAKES / f"{name}.pcapng"
    line = FIVE_TROUBLES[name]
    found = findings(path)
    assert {each.message for each in found if each.message in FIVE_TROUBLES.values()} == {line}
    assert {each.message for each in found if each.severity is Severity.ERROR} <= {line}
    done = kdissect("show", str(path))
    assert line in (done.stdout + done.stderr).decode(), "where it is seen first"


@pytest.mark.parametrize("name", ["librdkafka", "java", "java-sasl-plain", "kraft-quorum", "java-0.10.2"])
def test_a_plain_recording_has_none_of_the_five_troubles(name: str) -> None:
    found = findings(PCAPS / f"{name}.pcapng")
    codes = {"unreachable", "controller-listener", "version-removed", "tls-on-plain-port", "plain-on-tls-port"}
    assert not [each for each in found if each.code in codes or each.message in FIVE_TROUBLES.values()]


def test_a_response_in_http_is_no_brokers(tmp_path: Path) -> None:
    turns = [Turn(True, request(1)), Turn(False, b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")]
    [found] = [each for each in findings(Path(capture_of(tmp_path, conversation(turns)))) if each.code != "unanswered"]
    assert (found.code, found.message.partition(":")[0]) == ("not-a-broker", "the server responds in HTTP")
    assert "bootstrap.servers" in found.message


@pytest.mark.parametrize("packets_a_batch", [1, 1000])
def test_an_alert_is_found_however_the_capture_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packets_a_batch: int
) -> None:
    hello = bytes.fromhex("1603010010") + bytes(16)
    turns = [Turn(True, hello), Turn(False, hello), Turn(True, bytes.fromhex("15030300020230"))]
    path = capture_of(tmp_path, conversation(turns))
    monkeypatch.setattr("dissector.capture.pcap.BATCH_PACKETS", packets_a_batch)
    [found] = findings(Path(path))
    assert "unknown_ca" in found.message


def with_other_protocols(folder: Path) -> str:
    """Two connections of Kafka, and four that are not."""
    hello = bytes.fromhex("1603010010") + bytes(16)
    talks = [(9092, [Turn(True, request(1)), Turn(False, response(1))])] * 2
    talks += [(9093, [Turn(True, hello), Turn(False, hello)])] * 3
    talks += [(8080, [Turn(True, b"GET / HTTP/1.1\r\n\r\n"), Turn(False, b"HTTP/1.1 200 OK\r\n\r\n")])]
    made = [
        conversation(turns, client=("10.0.0.1", 5000 + n), server=("10.0.0.2", port))
        for n, (port, turns) in enumerate(talks)
    ]
    return capture_of(folder, [packet for packets in made for packet in packets])


NOT_SHOWN = "4 connections not shown, as they are not Kafka: HTTP 1, TLS 3"


def test_connections_of_other_protocols_are_counted(tmp_path: Path) -> None:
    """One definition for all faces: lines on stderr, the notice of the screen, the problems of tables."""
    path, line = with_other_protocols(tmp_path), NOT_SHOWN
    for command in ("show", "stats"):
        assert f"kdissect: {line}\n" in kdissect(command, path).stderr.decode()
    assert [each.message for each in findings(Path(path)) if each.code == "non-kafka-connections"] == [line]


def test_servers_that_were_not_reached_are_named_if_they_are_kafkas(tmp_path: Path) -> None:
    packets = conversation([Turn(True, request(1)), Turn(False, response(1))])
    for server, is_refused in ((("10.0.0.8", 9092), True), (("10.0.0.8", 443), True), (("10.0.0.9", 9092), False)):
        packets.append(Packet(True, 7, b"", SYN, server=server))
        packets += [Packet(False, 0, b"", RST | ACK, 8, server=server)] * is_refused
    found = [each.message for each in findings(Path(capture_of(tmp_path, packets))) if each.code == "unreachable"]
    assert [words.partition(":9092 ")[0] for words in found] == ["1 connection to 10.0.0.8", "1 connection to 10.0.0.9"]
    assert ["refused" in words for words in found] == [True, False]


def test_a_capture_of_what_clients_send_has_no_unreachable_servers(tmp_path: Path) -> None:
    sent = [
        packet for packet in conversation([Turn(True, request(1))]) if packet.from_client and not packet.flags & FIN
    ]
    assert len(sent) > 1
    assert not [each for each in findings(Path(capture_of(tmp_path, sent))) if each.code == "unreachable"]


@pytest.mark.parametrize(
    ("name", "code", "setting"),
    [
        ("librdkafka-nothing-listens", "unreachable", "bootstrap.servers"),
        ("java-advertised", "advertised-unreachable", "advertised.listeners"),
    ],
)
def test_an_address_where_nothing_listens_is_named(name: str, code: str, setting: str) -> None:
    [found] = [each for each in findings(MISTAKES / f"{name}.pcapng") if each.code == code]
    assert setting in found.message


def test_a_refused_login_without_a_response_is_named() -> None:
    [found] = [each for each in findings(PCAPS / "plain-socket-sasl-v0.pcapng") if each.code == "login-refused"]
    assert "correct user and password" in found.message


@cases(("by_client", "responds"), [(False, False), (True, False), (False, True)])
def test_a_close_on_api_versions_is_named_if_the_broker_closed(tmp_path: Path, by_client: bool, responds: bool) -> None:
    body = b"\x06tests\x021\0"
    turns = [Turn(True, request(1, api_key=18, version=3, body=b"\0" + body))]
    packets = conversation(turns + [Turn(False, response(1, bytes(11)))] * responds)
    last = packets[-1]
    at = last.seq + len(last.payload) if last.from_client == by_client else last.ack
    packets.append(Packet(by_client, at, b"", FIN | ACK))
    found = {each.code for each in findings(Path(capture_of(tmp_path, packets)))}
    assert ("closed-at-api-versions" in found) == (not by_client and not responds)
    assert "closed-in-flight" not in found
