"""A TLS client at a plain listener, on any port: told apart from other services that refuse a client."""

from pathlib import Path

from dissector.capture_session import Capture
from tests.cases import cases
from tests.findings.wire import Wire, pcap_of

HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(194)


def tls(port: int, number: int = 1, *, by_client: bool = False, answer: bytes = b"", host: str = "10.0.0.9") -> Wire:
    wire = Wire(number, server=(host, port))
    wire.sent(1, HELLO)
    if answer:
        wire.received(2, answer)
    wire.close(3, by_client=by_client)
    return wire


def plain(port: int, number: int = 50, host: str = "10.0.0.9") -> Wire:
    wire = Wire(number, server=(host, port))
    wire.exchange(1, "ApiVersions", 3, {}, {"api_keys": [{"api_key": 3, "max_version": 9}]})
    return wire


def shown(folder: Path, *wires: Wire) -> list[str]:
    """The codes of the findings of rows that are no exchange."""
    with Capture([pcap_of(folder, *wires)]) as capture:
        list(capture.read())
        return [each.code for one in capture.exchanges() if one.row.kind != "exchange" for each in one.findings]


@cases("port", [9092, 9192, 19092, 30123])
def test_a_capture_of_nothing_else_has_it_on_any_port(port: int, tmp_path: Path) -> None:
    assert shown(tmp_path, tls(port)) == ["tls-on-plain-port"]


def test_it_is_told_beside_good_connections_to_the_same_listener(tmp_path: Path) -> None:
    assert shown(tmp_path, plain(19092), tls(19092), tls(19092, 2)) == ["tls-on-plain-port"] * 2


@cases("port", [9094, 19093, 39092])
def test_another_listener_of_a_brokers_host_is_known_by_its_port(port: int, tmp_path: Path) -> None:
    assert shown(tmp_path, plain(9093), tls(port)) == ["tls-on-plain-port"]


@cases(("port", "host"), [(8080, "10.0.0.9"), (19092, "10.0.0.77")])
def test_another_server_beside_kafka_is_not_kafkas(port: int, host: str, tmp_path: Path) -> None:
    assert not shown(tmp_path, plain(19092), tls(port, host=host))


@cases("port", [443, 8443, 993])
def test_ports_of_other_protocols_are_not_kafkas(port: int, tmp_path: Path) -> None:
    assert not shown(tmp_path, tls(port))


def test_a_client_that_leaves_and_a_server_that_answers_are_not_refused(tmp_path: Path) -> None:
    assert not shown(tmp_path, tls(19092, by_client=True))
    assert not shown(tmp_path, tls(19092, answer=HELLO))


@cases("port", [9092, 9093, 30123])
def test_a_plain_client_at_a_tls_listener_is_told_on_any_port(port: int, tmp_path: Path) -> None:
    wire = Wire(server=("10.0.0.9", port))
    wire.request(1, "ApiVersions", 3, {"client_software_name": "made", "client_software_version": "1"})
    wire.received(2, bytes.fromhex("15030300020250"))
    wire.close(3)
    assert "plain-on-tls-port" in shown(tmp_path, wire)


FASTCGI = bytes.fromhex("0101000100080000 0001000000000000 0104000100090000 0f03") + b"QUERY_STRING"


@cases("port", [9000, 9092])
def test_fastcgi_is_not_kafka(port: int, tmp_path: Path) -> None:
    wire = Wire(server=("10.0.0.9", port))
    wire.sent(1, FASTCGI)
    wire.received(2, bytes.fromhex("0106000100100000") + bytes(16))
    with Capture([pcap_of(tmp_path, wire)]) as capture:
        list(capture.read())
        assert capture.connections.protocols == {"FastCGI": 1}
        assert {each.row.kind for each in capture.exchanges()} <= {"unparsed"}


def test_a_first_frame_of_16_megabytes_without_a_client_id_is_not_kafka_on_another_port(tmp_path: Path) -> None:
    head = bytes.fromhex("01020304 0008 0000 00000001 0000")
    wire = Wire(server=("10.0.0.9", 9000))
    wire.sent(1, head + bytes(40))
    with Capture([pcap_of(tmp_path, wire)]) as capture:
        list(capture.read())
        assert not len(capture)
