"""Every exchange and every value against the broker's own request log, which knows nothing of this program."""

import json
import struct
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from dissector.capture_session import Capture
from dissector.exchange.model import Exchange
from dissector.protocol.misplaced_tags import misplaced_tags
from tests.conftest import CAPTURES, ENCRYPTED
from tools.lab.logged_bodies import scalars

pytestmark = pytest.mark.slow

LEAST_EXCHANGES = 2500
LEAST_APIS = 84
MOST_UNREAD = 1
"""Requests that a client left behind as it closed: librdkafka does so. Answers of a capture that the broker logged but
could not send, or not to the end: a client may close with a request in flight."""
LARGEST_REQUEST = 100 << 20
"""`socket.request.max.bytes` of the lab's brokers, which is the default."""
MOST_WAITING = 2
"""Requests a capture that waited when the node that they were sent to stopped, in recordings that go on till then."""


def exchanges_of(capture: Capture) -> dict[tuple[str, int], list[Exchange]]:
    found = defaultdict(list)
    for exchange in capture.exchanges():
        if exchange.row.kind == "exchange":
            row = exchange.row
            found[f"{row.server}-{row.client}", row.correlation_id or 0].append(exchange)
    return found


def offered() -> dict[int, range]:
    """The versions of each API that the lab's broker offers to one of the clients."""
    with Capture([str(CAPTURES[0].with_name("java.pcapng"))]) as capture:
        answers = (e.response for e in capture.exchanges() if e.row.api == "ApiVersions" and e.response is not None)
        keys: Any = next(answers).body["api_keys"]
        return {key["api_key"]: range(key["min_version"], key["max_version"] + 1) for key in keys}


def refused(exchange: Exchange, versions: dict[int, range]) -> bool:
    """The broker closes the connection on a version that it has not, on too large a size, and on a tag outside its
    versions, and logs nothing."""
    if exchange.response is not None:
        return False
    if exchange.request is not None and any(misplaced_tags(exchange.request.layout, exchange.request.body)):
        return True
    too_large = (exchange.row.request_size or 0) > LARGEST_REQUEST
    return too_large or exchange.row.version not in versions.get(exchange.api_key or 0, ())


def waiting(exchange: Exchange) -> bool:
    """Sent to a node that stopped: it answers nobody then, and logs nothing."""
    return exchange.response is None and [finding.code for finding in exchange.findings] == ["unanswered"]


def logins(exchanges: list[Exchange]) -> Counter[str]:
    """What logins were made of: never in the request log, but counted by the broker's authenticator.

    It counts no SaslAuthenticate; what comes of these without a SaslHandshake, it would not have answered.
    """
    names = {"ApiVersions": "API_VERSIONS", "SaslHandshake": "SASL_HANDSHAKE"}
    of_logins = any(exchange.row.api == "SaslHandshake" for exchange in exchanges)
    counted = (e for e in exchanges if not (of_logins and e.row.api == "SaslAuthenticate" and e.response is not None))
    return Counter(names.get(e.row.api, str(e.row)) for e in counted)


def take_envelope(ours: dict[tuple[str, int], list[Exchange]], truth: dict[str, Any], where: str) -> None:
    """The controller logs what was in an Envelope, not the Envelope: known by the head of the request inside."""
    head = struct.pack(">hhi", truth["api_key"], truth["version"], truth["correlation_id"])
    for (connection, _), exchanges in ours.items():
        for n, exchange in enumerate(exchanges):
            is_envelope = connection == truth["connection"] and exchange.row.api == "Envelope"
            if is_envelope and exchange.request is not None and exchange.request.body["request_data"][:8] == head:
                del exchanges[n]
                return
    raise AssertionError(f"{where}: no Envelope has it")


def agreed(path: Path, versions: dict[int, range]) -> tuple[Counter[str], int]:
    """Exchanges by API, and scalars, that one capture and its log agree on. All of them, or it fails."""
    apis: Counter[str] = Counter()
    count = 0
    unread: list[str] = []
    with Capture([str(path)], show_secrets=True) as capture:
        ours = exchanges_of(capture)
        for line in path.with_suffix(".broker.ndjson").read_text().splitlines():
            truth = json.loads(line)
            where = f"{path.name} {truth['connection']} #{truth['correlation_id']} {truth['api']}"
            if truth.get("forwarded"):
                take_envelope(ours, truth, where)
                continue
            candidates = ours[truth["connection"], truth["correlation_id"]]
            assert candidates, f"{where}: not found"
            exchange = candidates.pop(0)
            row = exchange.row
            assert (exchange.api_key, row.version) == (truth["api_key"], truth["version"]), where
            assert row.client_id == truth["client_id"], where
            count += scalars(exchange.request, truth["request"], where)
            if truth["request"].get("acks") == 0:
                # The broker logs what it would have answered; nothing crosses the wire.
                assert exchange.response is None
                assert [finding.code for finding in exchange.findings] == ["no-response-expected"], where
            elif exchange.response is None or any(finding.code == "cut-short" for finding in exchange.findings):
                unread.append(where)
            else:
                count += scalars(exchange.response, truth["response"], where)
            apis[truth["api"]] += 1
        over = [exchange for left in ours.values() for exchange in left if not refused(exchange, versions)]
        provenance = json.loads(path.with_suffix(".provenance.json").read_text())
        if "until" in provenance:
            excused = [exchange for exchange in over if waiting(exchange)][:MOST_WAITING]
            over = [exchange for exchange in over if exchange not in excused]
        if path in ENCRYPTED:
            unanswered = [exchange for exchange in over if exchange.response is None][:MOST_UNREAD]
            over = [exchange for exchange in over if exchange not in unanswered]
        unknown = f"{path.name}: the broker knows nothing of {over[0].row if over else over}"
        assert logins(over) == provenance.get("logins", {}), unknown
    assert len(unread) <= MOST_UNREAD, unread
    return apis, count


def test_every_exchange_that_the_broker_logged_is_found_with_the_same_values(capsys: Any) -> None:
    apis: Counter[str] = Counter()
    count = 0
    versions = offered()
    for path in (*CAPTURES, *ENCRYPTED):
        found, scalars_found = agreed(path, versions)
        apis += found
        count += scalars_found
    with capsys.disabled():
        print(f"\ntruth: {apis.total():,} exchanges, {len(apis)} APIs, {count:,} values equal to the broker's log")
    assert apis.total() >= LEAST_EXCHANGES
    assert len(apis) >= LEAST_APIS
