"""Raw SASL tokens: logins from before Kafka 1.0, where both sides send tokens after SaslHandshake version 0 (KIP-43).

A token is a frame without a header. Tokens last from the handshake to the client's next frame that is a valid request.
A server's frame that belongs to no request is a token too if it comes in that time, or if it follows the response to
the handshake in its stream: packets of a capture may be out of order.

Invariant: connections without such a handshake cost only the check for one.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.columns import is_in
from dissector.index.message_headers import RequestHeaders
from dissector.protocol.schema.api_keys import ApiKey

_FOREVER: Final = 1 << 62
IsRequest = Callable[[int], bool]
Responses = Callable[[int], tuple[Int64, Bool]]


class RawSaslTokens:
    """The spans of packets in which each connection sends raw SASL tokens."""

    def __init__(self) -> None:
        self._since: dict[int, list[list[int]]] = {}
        """By connection: from the packet of a handshake to that of the next request."""

    def end(self, connections: Int64) -> None:
        """Forget connections that have ended."""
        known = np.array([*self._since], np.int64)
        for connection in known[is_in(known, connections)].tolist():
            del self._since[connection]

    def of_client(
        self, connection: Int64, packet: Int64, start: Int64, headers: RequestHeaders, is_request: IsRequest
    ) -> Bool:
        """Return which client frames of a batch are tokens. `start` is the place of each in its stream; `is_request(n)`
        reads frame `n`."""
        handshakes = (headers.api_key == ApiKey.SASL_HANDSHAKE) & (headers.version == 0)
        tokens = np.zeros(len(connection), np.bool_)
        if not handshakes.any() and not self._since:
            return tokens
        affected = is_in(connection, np.array([*self._since, *connection[handshakes].tolist()], np.int64))
        for n in np.flatnonzero(affected)[np.argsort(start[affected], kind="stable")].tolist():
            spans = self._since.setdefault(int(connection[n]), [])
            in_span = bool(spans) and spans[-1][1] == _FOREVER
            if in_span and not is_request(n):
                tokens[n] = True
                continue
            if in_span:
                spans[-1][1] = int(packet[n])
            if handshakes[n]:
                spans.append([int(packet[n]), _FOREVER])
        return tokens

    def of_server(self, connection: Int64, packet: Int64, start: Int64, responses: Responses) -> Bool:
        """Return which of the server's frames that belong to no request are tokens. `responses(c)` returns the places
        in the stream of the responses of a connection, and which of them respond to a handshake."""
        tokens = np.zeros(len(connection), np.bool_)
        for n in np.flatnonzero(is_in(connection, np.array([*self._since], np.int64))).tolist() if self._since else ():
            spans = self._since[int(connection[n])]
            tokens[n] = any(first <= packet[n] < last for first, last in spans) or _follows_handshake(
                int(start[n]), *responses(int(connection[n]))
            )
        return tokens


def _follows_handshake(start: int, starts: Int64, are_handshakes: Bool) -> bool:
    before = np.flatnonzero(starts < start)
    return bool(len(before)) and bool(are_handshakes[before[np.argmax(starts[before])]])
