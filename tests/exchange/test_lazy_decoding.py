"""Bodies are decoded when something of them is asked for."""

from pathlib import Path
from typing import Any

import pytest

from dissector.analysis.conformance import check
from dissector.capture_session import Capture
from dissector.exchange import model
from dissector.findings.framework.decoded_exchange import request_body, response_body
from dissector.protocol import message
from dissector.protocol.message import Decoded, Traced, read
from dissector.protocol.message_layout import MessageLayout, request_layout
from tests.conftest import PCAPS
from tests.traffic import Turn, capture_of, conversation, request, response


def test_a_response_is_decoded_for_its_body_its_findings_or_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[str | None] = []

    def watched(data: bytes, layout: MessageLayout, end: int | None = None) -> Decoded:
        decoded.append(layout.header)
        return read(data, layout, end)

    with Capture([str(PCAPS / "java.pcapng")], show_secrets=True) as capture:  # nothing is read to mask it
        for _ in capture.read():
            pass
        monkeypatch.setattr(model, "read", watched)
        exchanges = [each for each in capture.exchanges() if each.response is not None]
        assert all(each.fields.api for each in exchanges)
        assert "ResponseHeader" not in decoded
        for ask in (lambda each: each.response.body, lambda each: each.findings, lambda each: each.row):
            [exchange, *exchanges] = exchanges
            decoded.clear()
            ask(exchange)
            assert decoded.count("ResponseHeader") == 1


def test_a_message_that_cannot_be_read_is_traced_once_by_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules are asked in turn whether they want it; only one says why it can't be read."""
    traced: list[bytes] = []
    trace = message.trace

    def watched(data: bytes, *args: Any, **settings: Any) -> Traced:
        traced.append(data)
        return trace(data, *args, **settings)

    monkeypatch.setattr(message, "trace", watched)
    bodies = {n: bytes([n]) * 30 for n in range(100, 120)}
    turns = [Turn(True, request(n, api_key=3, version=9, body=body)) for n, body in bodies.items()]
    turns += [Turn(False, response(n, body)) for n, body in bodies.items()]
    with Capture([capture_of(tmp_path, conversation(turns))]) as capture:
        list(capture.read())
        result = check([("", capture)])
    assert sum(result.broken.values()) == len(turns)
    assert set(traced) == {turn.data for turn in turns}
    assert len(traced) <= len(turns) + 1  # the first request also for what it says of its connection


def test_the_body_of_a_message_that_cannot_be_read_is_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only why it is so, which is dear, says what is left of it."""
    damaged = request(1, api_key=3, version=9, body=b"\x63" * 30)
    decoded = read(damaged, request_layout(3, 9, damaged))
    whole = request(1, api_key=3, version=9, body=b"\x00\x01\x00\x00\x00\x00")
    surplus = whole + b"\x07"
    monkeypatch.setattr(message, "trace", None)
    assert decoded.fitting_body == request_body(3, 9, damaged, len(damaged)) == {}
    assert read(whole, request_layout(3, 9, whole)).fitting_body["topics"] == []
    assert read(surplus, request_layout(3, 9, surplus)).fitting_body == {}
    assert response_body(3, 9, response(1, b"\x63" * 9), 17) == ({}, [])
