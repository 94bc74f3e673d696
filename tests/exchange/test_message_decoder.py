"""Messages with secrets that come again are masked as at the first time."""

import pytest

from dissector.capture_session import Capture
from dissector.exchange import message_decoder
from dissector.exchange.message_decoder import ReadOnce
from dissector.exchange.to_json import json_line
from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.masking import MaskedFrame, mask_secrets
from dissector.protocol.message import read
from dissector.protocol.message_layout import MessageLayout, request_layout, response_layout
from tests.conftest import PCAPS


def shown(name: str) -> list[bytes]:
    """What is shown of each row of a recording; each row is decoded twice, in both orders."""
    with Capture([str(PCAPS / f"{name}.pcapng")]) as capture:
        for _ in capture.read():
            pass
        rows = range(len(capture))
        found = [json_line(exchange) for exchange in capture.at(rows)]
        again = [json_line(next(iter(capture.at(range(row, row + 1))))) for row in reversed(rows)]
        assert again[::-1] == found
        return found


@pytest.mark.parametrize("name", ["java-sasl-plain", "java-sasl-scram-sha-512", "plain-socket-sasl-v0"])
def test_a_message_that_came_before_is_shown_as_a_new_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = shown(name)
    monkeypatch.setattr(message_decoder, "LONGEST_KEPT", -1)
    assert shown(name) == found
    monkeypatch.setattr(message_decoder, "LONGEST_KEPT", 512)
    monkeypatch.setattr(message_decoder, "MOST_KEPT", 1)
    assert shown(name) == found


def test_the_same_bytes_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[bytes] = []

    def counting(data: bytes, size: int, layout: MessageLayout, end: int, context: DecodingContext) -> MaskedFrame:
        if len(data) <= message_decoder.LONGEST_KEPT:
            searched.append(data)
        return mask_secrets(data, size, layout, end, context)

    monkeypatch.setattr("dissector.exchange.model.mask_secrets", counting)
    with Capture([str(PCAPS / "java-sasl-plain.pcapng")]) as capture:
        for _ in capture.read():
            pass
        list(capture.at(range(len(capture))))
        once = len(searched)
        list(capture.at(range(len(capture))))
    assert once
    assert len(searched) == once


def test_what_is_read_once_is_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_decoder, "MOST_READ_ONCE", 2_000)  # some messages come again after they were forgotten
    read_once = ReadOnce()
    with Capture([str(PCAPS / "librdkafka-pipelined.pcapng")]) as capture:
        for _ in capture.read():
            pass
        for exchange in capture.exchanges():
            for message in filter(None, (exchange.request, exchange.response)):
                for stop in (message.whole, 9):
                    wanted = read(message.data, message.layout, stop)
                    assert read_once(message.data, message.layout, stop) == wanted


def test_messages_that_differ_in_the_correlation_id_are_read_once() -> None:
    read_once = ReadOnce()
    heartbeats = [bytes((0, 0, 0, 24, 0, 12, 0, 0, *identity, 0, 0)) + b"\0\1g\0\0\0\1\0\1m"
                  for identity in ((0, 0, 0, 7), (255, 255, 255, 255))]  # fmt: skip
    first, second = (read_once(each, request_layout(12, 0), len(each)) for each in heartbeats)
    assert first.body
    assert first.body is second.body
    assert [each.header["correlation_id"] for each in (first, second)] == [7, -1]
    answers = [b"\0\0\0\6\0\0\0" + bytes((identity, 0, 0)) for identity in (1, 2)]
    first, second = (read_once(each, response_layout(12, 0, each), len(each)) for each in answers)
    assert first.body is second.body
    assert [each.header["correlation_id"] for each in (first, second)] == [1, 2]
