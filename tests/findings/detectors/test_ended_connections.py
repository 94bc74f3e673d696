"""Closes that are not for the request on them: a login that expired, a wait, a request that was left out."""

from pathlib import Path

from tests.cases import cases
from tests.findings.detectors.test_closed_connections import METADATA, SASL, codes, found, opened
from tests.findings.wire import Wire


def logged_in(lifetime_ms: int) -> Wire:
    """A connection with a login at 12 ms that lasts so long."""
    wire = opened()
    wire.exchange(10, "SaslHandshake", 1, {"mechanism": "OAUTHBEARER"}, SASL)
    wire.exchange(11, "SaslAuthenticate", 1, {"auth_bytes": b"n,,"}, {"session_lifetime_ms": lifetime_ms})
    return wire


@cases(
    ("at", "lifetime_ms", "code"),
    [
        (60_012, 60_000, "session-expired"),
        (60_011.9, 60_000, "closed-in-flight"),
        (60_012, 0, "closed-in-flight"),
        (7_000, 1, "session-expired"),
    ],
)
def test_a_login_that_expired_is_why(at: float, lifetime_ms: int, code: str, tmp_path: Path) -> None:
    wire = logged_in(lifetime_ms)
    wire.exchange(100, "Metadata", 4, METADATA)
    wire.request(at, "Produce", 8, {"acks": -1})
    wire.close(at + 1)
    [(_, finding)] = found(tmp_path, wire)
    assert finding.code == code
    assert ("connections.max.reauth.ms" in finding.message) == (code == "session-expired")


def test_a_login_that_was_renewed_did_not_expire(tmp_path: Path) -> None:
    wire = logged_in(60_000)
    wire.exchange(50_000, "SaslHandshake", 1, {"mechanism": "OAUTHBEARER"}, SASL)
    wire.exchange(50_010, "SaslAuthenticate", 1, {"auth_bytes": b"n,,"}, {"session_lifetime_ms": 60_000})
    wire.request(60_100, "Produce", 8, {"acks": -1})
    wire.close(60_101)
    assert codes(tmp_path, wire) == ["closed-in-flight"]


def test_clients_that_lose_each_connection_to_their_login_are_one_finding(tmp_path: Path) -> None:
    wires = []
    for n in range(3):
        wire = Wire(n, at=70_000 * n)
        wire.exchange(70_000 * n + 1, "SaslHandshake", 1, {"mechanism": "OAUTHBEARER"}, SASL)
        wire.exchange(70_000 * n + 2, "SaslAuthenticate", 1, {"auth_bytes": b"n"}, {"session_lifetime_ms": 60_000})
        name = ("Produce", "Fetch", "Metadata")[n]
        wire.request(70_000 * n + 60_100, name, 4, {"acks": -1} if name == "Produce" else {})
        wire.close(70_000 * n + 60_101)
        wires.append(wire)
    [(_, finding)] = found(tmp_path, *wires)
    assert finding.message.endswith("; 3 connections within 140.000 s")


def joining(closed: float, *, by_client: bool = False) -> Wire:
    wire = opened()
    wire.request(100, "JoinGroup", 0, {"group_id": "g", "session_timeout_ms": 1_740_000, "protocol_type": "consumer"})
    wire.close(closed, by_client=by_client)
    return wire


@cases(
    ("closed", "code", "words"),
    [
        (600_100, "closed-while-waiting", "was closed as idle while JoinGroup v0 had waited for 600.000 s"),
        (630_099, "closed-while-waiting", "the default of connections.max.idle.ms"),
        (631_000, "closed-while-waiting", "it may have been closed as idle"),
        (30_100, "closed-while-waiting", "or the broker was stopped"),
        (30_099, "closed-in-flight", "29.999 s later"),
    ],
)
def test_a_request_that_waits_does_not_keep_its_connection(
    closed: float, code: str, words: str, tmp_path: Path
) -> None:
    [(_, finding)] = found(tmp_path, joining(closed))
    assert finding.code == code
    assert words in finding.message


def test_a_client_that_stops_while_it_waits_is_nothing(tmp_path: Path) -> None:
    assert not codes(tmp_path, joining(600_100, by_client=True))


def test_what_is_said_beside_a_request_that_waits_keeps_the_connection(tmp_path: Path) -> None:
    wire = opened()
    wire.request(100, "JoinGroup", 0, {"group_id": "g", "protocol_type": "consumer"})
    wire.request(590_000, "Metadata", 4, METADATA)
    wire.close(600_100)
    assert set(codes(tmp_path, wire)) == {"closed-in-flight"}


def left_out(name: str, *, gap: bool = False) -> Wire:
    wire = Wire(client_id="aiokafka-0.2.0")
    wire.request(1, name, 0, {"topics": []} if name == "Metadata" else {})
    if gap:
        wire.packets.pop()
    wire.exchange(2, "Metadata", 0, {"topics": []})
    wire.close(5, by_client=True)
    return wire


def test_a_request_that_the_broker_leaves_out(tmp_path: Path) -> None:
    [(row, finding)] = found(tmp_path, left_out("ApiVersions"))
    assert (row, finding.code) == (0, "left-out")
    assert finding.message.endswith("never answers ApiVersions (set api_version to the broker's release, or use an "
                                    "older client)")  # fmt: skip
    [(_, finding)] = found(tmp_path, left_out("Metadata"))
    assert finding.message.endswith("brokers answer in order, so the server or a proxy dropped it")


def test_nothing_is_left_out_of_a_connection_that_was_not_captured_whole(tmp_path: Path) -> None:
    assert "left-out" not in codes(tmp_path, left_out("Metadata", gap=True))
    wire = opened()
    wire.exchange(10, "SaslHandshake", 1, {"mechanism": "PLAIN"}, SASL)
    wire.packets.pop()
    wire.exchange(20, "Metadata", 4, METADATA)
    wire.close(25, by_client=True)
    assert {"left-out", "closed-in-flight"}.isdisjoint(codes(tmp_path, wire)), "the response may be what is missing"


def test_a_fetch_that_waits_behind_others_is_not_left_out(tmp_path: Path) -> None:
    wire = opened()
    wire.exchange(10, "Metadata", 4, METADATA)
    wire.request(20, "Fetch", 4)
    wire.close(25, by_client=True)
    assert not codes(tmp_path, wire)
