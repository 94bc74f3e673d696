"""Responses whose requests are gone: what rows, findings and JSON say of them, and what they leave alone."""

import json
import struct
from collections import Counter
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from dissector.exchange.model import Exchange
from dissector.exchange.to_json import json_line
from tests.conftest import PCAPS
from tests.index.inferred_rows import FEW, FIRST_PORT, conversations, rewritten
from tests.traffic import Turn, capture_of, conversation, request, response

pytestmark = pytest.mark.slow


@pytest.mark.long
def test_what_is_inferred_is_labelled_everywhere(tmp_path: Path) -> None:
    by_confidence: Counter[str] = Counter()
    for exchanges in conversations(FEW):
        kept = {each.row.number for each in exchanges[::2]}
        with Capture([rewritten(tmp_path, exchanges, kept)], show_secrets=True) as capture:
            for each in capture.exchanges():
                codes = {finding.code for finding in each.findings}
                if each.request is not None:
                    assert not codes & {"orphan", "inferred"}
                    continue
                line = json.loads(json_line(each))
                assert each.response is not None
                assert "orphan" in codes
                assert line["api_key"] is None
                claims = each.row.api != "?"
                assert claims == each.row.info.startswith("by inference, ") == (line["response"]["body"] != {})
                assert claims == (each.row.version is not None) == (each.response.tree.find("body") is not None)
                assert "inferred" in codes or not claims
                assert line["api"] == (each.row.api if claims else None)
                by_confidence[each.row.info.split(":")[0]] += 1
    assert {"by inference, sure", "by inference, a guess"} <= by_confidence.keys()


@pytest.mark.long
def test_exchanges_that_have_their_request_do_not_change(tmp_path: Path) -> None:
    for exchanges in conversations(FEW):
        kept = {each.row.number for each in exchanges[::2]}
        with Capture([rewritten(tmp_path, exchanges, kept)], show_secrets=True) as capture:
            paired = [each for each in capture.exchanges() if each.request is not None and each.response is not None]
        expected = [content_of(each) for each in exchanges if each.row.number in kept]
        assert sorted(content_of(each) for each in paired) == sorted(expected)


def content_of(exchange: Exchange) -> tuple[str, int | None, bytes, str, str]:
    """What an exchange is shown as, but for names that other exchanges taught."""
    assert exchange.request is not None
    assert exchange.response is not None
    sent, returned = exchange.request, exchange.response
    shapes, bodies = (sent.layout, returned.layout), (sent.body, returned.body)
    return exchange.row.api, exchange.row.version, sent.data, repr(shapes), repr(bodies)


def test_a_verdict_does_not_depend_on_what_was_looked_at_before(tmp_path: Path) -> None:
    path = rewritten(tmp_path, conversations(FEW)[1], set())
    tables = []
    for step in (1, -1):
        with Capture([path]) as capture:
            for _ in capture.read():
                pass
            rows = {number: capture.exchange(number).row for number in range(len(capture))[::step]}
        tables.append([(rows[number].api, rows[number].version, rows[number].info) for number in sorted(rows)])
    assert tables[0] == tables[1]


def test_a_broker_offers_the_same_to_all_its_clients(tmp_path: Path) -> None:
    # Heartbeat v1-3 and LeaveGroup v1-2 have equal layouts; to another client, the broker offers no Heartbeat.
    versions = struct.pack(">hi", 0, 2) + struct.pack(">hhh", 13, 0, 2) + struct.pack(">hhh", 18, 0, 0)
    sent = [Turn(True, request(1, api_key=18, version=0, body=b"")), Turn(False, response(1, versions))]
    lone = [Turn(True, request(1)), Turn(False, response(1)), Turn(False, response(9, struct.pack(">ih", 100, 25)))]
    packets = conversation(sent) + conversation(lone, client=("10.0.0.1", 40_002))
    with Capture([capture_of(tmp_path, packets)]) as capture:
        rows = [each.row for each in capture.exchanges()]
    assert [(row.api, row.version) for row in rows] == [("ApiVersions", 0), ("Metadata", 0), ("LeaveGroup?", 2)]


def test_the_secrets_of_lone_responses_are_masked(tmp_path: Path) -> None:
    # A frame whose API is not known can't be masked: here inference protects too.
    path = str(PCAPS / "java-sasl-scram-sha-512.pcapng")
    with Capture([path], show_secrets=True) as open_one, Capture([path]) as masked_one:
        plain = [each for each in open_one.exchanges() if each.request and each.response]
        hidden = {each.row.number for each in masked_one.exchanges() if each.response and each.response.masked}
    with Capture([rewritten(tmp_path, plain, set())]) as capture:
        shown = {
            (int(each.row.client.rpartition(":")[2]) - FIRST_PORT, each.response.data)
            for each in capture.exchanges()
            if each.response is not None
        }
    secrets = {(e.row.connection, e.response.data) for e in plain if e.row.number in hidden and e.response is not None}
    assert secrets
    assert not secrets & shown
