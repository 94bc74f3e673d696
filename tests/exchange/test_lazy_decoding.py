"""Bodies are decoded when something of them is asked for."""

import pytest

from dissector.capture_session import Capture
from dissector.exchange import model
from dissector.protocol.message import Decoded, MessageLayout, read
from tests.conftest import PCAPS


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
