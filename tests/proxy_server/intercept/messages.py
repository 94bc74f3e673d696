"""Messages as a proxy holds them."""

from dissector.capture.held_messages import HeldMessage
from dissector.protocol.frame import frame_bytes, request_header
from dissector.protocol.message import Values
from dissector.protocol.message_layout import request_layout, response_layout
from dissector.protocol.schema.loader import api_named
from tests.proxy_server.faults.wires import REQUESTS

Message = tuple[HeldMessage, bytes]


def held(api_key: int, version: int, frame: bytes, *, from_client: bool = True) -> HeldMessage:
    return HeldMessage(1, from_client, api_key, version, 7, "c:1", "b:2", "me", len(frame), 10, 20)


def request(name: str, body: Values | None = None, version: int | None = None, extra: bytes = b"") -> Message:
    """A request, with bytes behind its body that its size counts."""
    found = api_named(name)
    assert found is not None
    usual, usual_body = REQUESTS.get(name, (0, {}))
    version = usual if version is None else version
    layout = request_layout(found.key, version)
    header = request_header(layout, found.key, version, {"correlation_id": 7, "client_id": "me"})
    frame = frame_bytes(layout, header, usual_body if body is None else body)
    frame = (len(frame) - 4 + len(extra)).to_bytes(4, "big") + frame[4:] + extra
    return held(found.key, version, frame), frame


def response(name: str, version: int, body: Values) -> Message:
    found = api_named(name)
    assert found is not None
    frame = frame_bytes(response_layout(found.key, version, b""), {"correlation_id": 7}, body)
    return held(found.key, version, frame, from_client=False), frame
