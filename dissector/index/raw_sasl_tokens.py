"""Raw SASL tokens: logins from before Kafka 1.0, where both sides send tokens after SaslHandshake version 0 (KIP-43).

A token is a frame without a header. Tokens last from the handshake to the client's next frame that is a valid request.
A server's frame in that time that belongs to no request is a token too.

Invariant: connections without such a handshake cost only the check for one.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.index.message_headers import RequestHeaders
from dissector.protocol.schema.api_keys import ApiKey

_FOREVER: Final = 1 << 62
IsRequest = Callable[[int], bool]


class RawSaslTokens:
    """The spans of packets in which each connection sends raw SASL tokens."""

    def __init__(self) -> None:
        self._since: dict[int, list[list[int]]] = {}
        """By connection: from the packet of a handshake to that of the next request."""

    def end(self, connections: Int64) -> None:
        """Forget connections that have ended."""
        for connection in connections.tolist() if self._since else ():
            self._since.pop(connection, None)

    def of_client(self, connection: Int64, packet: Int64, headers: RequestHeaders, is_request: IsRequest) -> Bool:
        """Return which client frames of a batch, in the order of time, are tokens. `is_request(n)` reads frame `n`."""
        handshakes = (headers.api_key == ApiKey.SASL_HANDSHAKE) & (headers.version == 0)
        tokens = np.zeros(len(connection), np.bool_)
        if not handshakes.any() and not self._since:
            return tokens
        affected = np.isin(connection, [*self._since, *connection[handshakes].tolist()])
        for n in np.flatnonzero(affected).tolist():
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

    def of_server(self, connection: Int64, packet: Int64) -> Bool:
        """Return which of the server's frames that belong to no request are tokens."""
        if not self._since:
            return np.zeros(len(connection), np.bool_)
        return np.array([
            any(first <= at < last for first, last in self._since.get(each, ()))
            for each, at in zip(connection.tolist(), packet.tolist(), strict=True)
        ], np.bool_)  # fmt: skip
