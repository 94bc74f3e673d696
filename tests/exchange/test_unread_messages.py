"""A message that can't be read to its end: its row says why and as what else it reads, and so does every face."""

import json
from pathlib import Path

import dissector
from dissector.capture_session import Capture
from dissector.exchange.model import Exchange
from dissector.exchange.to_json import json_line
from tests.cli.test_commands import kdissect
from tests.findings.wire import Wire, pcap_of

OFFERS = {"api_keys": [{"api_key": n, "min_version": 0, "max_version": 9} for n in (0, 1, 3, 18)]}


def header_v1(folder: Path) -> str:
    """A home-made broker that answers ApiVersions with tagged fields in the header."""
    data = dissector.encode_response("ApiVersions", 3, OFFERS, correlation_id=1)
    content = data[4:8] + b"\0" + data[8:]
    wire = Wire()
    wire.request(1, "ApiVersions", 3, {"client_software_name": "made"})
    wire.received(2, len(content).to_bytes(4, "big") + content)
    return pcap_of(folder, wire)


def exchanges(path: str) -> list[Exchange]:
    with Capture([path]) as capture:
        list(capture.read())
        return list(capture.exchanges())


def test_the_row_says_why_and_what_fits(tmp_path: Path) -> None:
    path = header_v1(tmp_path)
    words = (
        "[malformed] response.body.error_code: api_keys: count -1 where null is not allowed, at offset 10; 35 bytes "
        "could not be read · reads exactly as ApiVersions v3 with response header v1 · made"
    )
    [exchange] = exchanges(path)
    assert exchange.row.info == words
    assert words in kdissect("show", path).stdout.decode()
    findings = json.loads(json_line(exchange))["findings"]
    found = {each["code"]: each["path"] for each in findings}
    assert found == {"malformed": "response.body.error_code", "reads-as": "response"}
    assert (
        json.loads(kdissect("show", "-f", "json", path).stdout)["findings"]
        == json.loads(json_line(exchange))["findings"]
    )


def test_surplus_bytes_stand_in_the_row(tmp_path: Path) -> None:
    data = dissector.encode_response("Metadata", 1, {"brokers": [], "topics": []}, correlation_id=1)
    wire = Wire()
    wire.request(1, "Metadata", 1, {"topics": [{"name": "orders"}]})
    wire.received(2, (len(data) - 4 + 9).to_bytes(4, "big") + data[4:] + b"\x77" * 9)
    [exchange] = exchanges(pcap_of(tmp_path, wire))
    assert exchange.row.info.startswith(
        "[trailing-bytes] response.(rest): 9 bytes after the last field, at offset 20 · orders"
    )


def test_the_error_beside_its_message_is_said_where_the_rest_cannot_be_read(tmp_path: Path) -> None:
    body = {"error_code": 58, "error_message": "Invalid SASL mechanism response", "auth_bytes": ""}
    data = dissector.encode_response("SaslAuthenticate", 0, body, correlation_id=1)
    wire = Wire()
    wire.request(1, "SaslAuthenticate", 0, {"auth_bytes": ""})
    wire.received(2, data[:-4] + b"\xff" * 4)
    [exchange] = exchanges(pcap_of(tmp_path, wire))
    assert "SASL_AUTHENTICATION_FAILED" in exchange.row.info
    assert "with null where it has none" in exchange.row.info


def test_an_error_without_a_message_may_be_no_error(tmp_path: Path) -> None:
    """The first bytes of a body in another layout read as any number."""
    wire = Wire()
    wire.request(1, "Heartbeat", 0, {"group_id": "g", "member_id": "m"})
    wire.received(2, (4 + 3).to_bytes(4, "big") + (1).to_bytes(4, "big") + b"\x00\x19\x00")
    [exchange] = exchanges(pcap_of(tmp_path, wire))
    assert "UNKNOWN_MEMBER_ID" not in exchange.row.info


def test_a_size_that_counts_itself_is_said(tmp_path: Path) -> None:
    """The frame seems to lack as many bytes as a prefix has, and ends where the connection does."""
    data = dissector.encode_response("Metadata", 1, {"brokers": [], "topics": []}, correlation_id=1)
    wire = Wire()
    wire.request(1, "Metadata", 1, {"topics": []})
    wire.received(2, len(data).to_bytes(4, "big") + data[4:])
    wire.close(3)
    [exchange] = exchanges(pcap_of(tmp_path, wire))
    assert "reads exactly as Metadata v1 with a size that counts itself" in [each.message for each in exchange.findings]


def test_a_response_that_was_cut_elsewhere_is_not_said_to_count_itself(tmp_path: Path) -> None:
    data = dissector.encode_response("Metadata", 1, {"brokers": [], "topics": []}, correlation_id=1)
    for cut in (3, 4, 5):
        wire = Wire()
        wire.request(1, "Metadata", 1, {"topics": []})
        wire.received(2, data[:-cut])
        wire.close(3)
        [exchange] = exchanges(pcap_of(tmp_path, wire))
        assert "reads-as" not in {each.code for each in exchange.findings}
