"""Content compared by masks over a frame's bytes equals that of the decoded frame."""

import random
from pathlib import Path

import pytest

from dissector.analysis.diff.message_templates import MessageContent, MessageTemplates
from dissector.capture_session import Capture
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.message import request_layout, response_layout

Frame = tuple[bool, int, int, ExchangeMessage]
"""Whether it is a request, its API key and version, the message."""


def frames_of(path: Path) -> list[Frame]:
    """Every whole frame of a capture with its request."""
    with Capture([str(path)], show_secrets=True) as capture:
        rows = [each for each in capture.exchanges() if each.fields.kind == "exchange"]
        exchanges = [each for each in rows if each.request is not None]
    return [
        (message is each.request, each.api_key or 0, each.fields.version or 0, message)
        for each in exchanges
        for message in (each.request, each.response)
        if message is not None and len(message.data) == message.size
    ]


def content_of(templates: MessageTemplates, frame: Frame) -> MessageContent:
    is_request, api_key, version, message = frame
    return templates.content(is_request, api_key, version, message.data, lambda: message)


def read_anew(frame: Frame, data: bytes) -> Frame:
    """The same frame with other bytes."""
    is_request, api_key, version, message = frame
    layout = request_layout(api_key, version, data) if is_request else response_layout(api_key, version, data)
    return is_request, api_key, version, ExchangeMessage(0, len(data), data, len(data), layout, message.context)


@pytest.mark.slow
def test_the_leaves_are_those_of_the_frame_itself(bundled: Path) -> None:
    templates = MessageTemplates()
    for frame in frames_of(bundled):
        found, own = content_of(templates, frame), MessageContent(frame[3])
        assert found.leaves == own.leaves
        assert found.error == own.error


@pytest.mark.slow
@pytest.mark.parametrize("client", ["java", "librdkafka", "kafka-python", "aiokafka"])
@pytest.mark.parametrize("seed", range(3))
def test_no_change_of_bytes_is_taken_for_none(client: str, seed: int) -> None:
    chance, templates, unchanged = random.Random(seed), MessageTemplates(), 0
    frames = frames_of(Path(f"pcaps/compare-{client}-1.pcapng"))
    for frame in frames:
        content_of(templates, frame)
        for _ in range(20):
            data = bytearray(frame[3].data)
            data[chance.randrange(8, len(data))] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
            changed = read_anew(frame, bytes(data))
            found = content_of(templates, changed)
            unchanged += found.message is not changed[3]
            assert found.leaves == MessageContent(changed[3]).leaves
            assert found.error == MessageContent(changed[3]).error
    assert unchanged > len(frames)  # many changes are of what no leaf tells
