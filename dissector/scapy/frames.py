"""Frames out of bytes, and what one TCP connection has said: enough to decode responses.

Invariant: what is kept of a connection is bounded.
"""

from typing import Final, NamedTuple

from dissector.api.messages import decode_request, decode_response
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.embedded.context import EMPTY_CONTEXT
from dissector.protocol.message_layout import PREFIX, RESPONSE_ID, SASL_TOKEN, key_and_version
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api_name

LARGEST: Final = 100 << 20
"""Bytes of a frame: socket.request.max.bytes of brokers."""
LEAST: Final = 4
"""Bytes of the smallest message: a correlation id."""
MOST_PENDING: Final = 10_000
"""Requests of a connection that wait for their response; those with acks=0 never get one."""


class DecodedFrame(NamedTuple):
    """A whole frame, the name of its API and its version; None for what is not known."""

    message: ExchangeMessage
    api: str | None
    version: int | None


class ConnectionFrames:
    """The requests of a connection that wait for their response, and whether it is logging in with raw tokens."""

    def __init__(self) -> None:
        self._pending: dict[int, tuple[int, int]] = {}
        self._has_tokens = False

    @property
    def least(self) -> int:
        """Bytes of the smallest frame that may come: a token of a login may be empty."""
        return 0 if self._has_tokens else LEAST

    def request(self, frame: bytes) -> DecodedFrame:
        """Decode a request, and remember it."""
        message = decode_request(frame)
        key, version = key_and_version(frame)
        if self._has_tokens:
            if message.layout.body is None or message.decoded.findings:
                return _token(frame)
            self._has_tokens = False
        self._has_tokens = (key, version) == (ApiKey.SASL_HANDSHAKE, 0)
        correlation_id = message.header.get("correlation_id")
        if isinstance(correlation_id, int):
            self.expect(correlation_id, key, version)
        return DecodedFrame(message, api_name(key), version)

    def expect(self, correlation_id: int, api_key: int, version: int) -> None:
        """Expect the response to a request."""
        self._pending[correlation_id] = api_key, version
        if len(self._pending) > MOST_PENDING:
            del self._pending[next(iter(self._pending))]

    def response(self, frame: bytes) -> DecodedFrame:
        """Decode a response: that to the request with its correlation id; without one it is inferred."""
        correlation_id = int.from_bytes(frame[RESPONSE_ID], "big", signed=True)
        key, version = self._pending.pop(correlation_id, (None, None))
        if key is None and self._has_tokens:
            return _token(frame)
        message = decode_response(frame, api_key=key, api_version=version)
        if key is not None:
            return DecodedFrame(message, api_name(key), version)
        body = message.layout.body
        return DecodedFrame(
            message, body and body.removesuffix("Response"), message.layout.body_version if body else None
        )


def frame_size(data: bytes, least: int = LEAST) -> int | None:
    """Return the size of the frame that data begins with, size prefix included; None if it begins with none."""
    if len(data) < PREFIX:
        return None
    size = int.from_bytes(data[:PREFIX], "big")
    return size + PREFIX if least <= size <= LARGEST else None


def _token(frame: bytes) -> DecodedFrame:
    """Return a raw token of a login, masked (KIP-43)."""
    size = len(frame)
    message = ExchangeMessage.of_frame(0, size, frame, size, SASL_TOKEN, EMPTY_CONTEXT, show_secrets=False)
    return DecodedFrame(message, "SASL token", None)
