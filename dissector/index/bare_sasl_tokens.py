"""Logins of before Kafka 1.0: after SaslHandshake version 0 both sides send bare tokens (KIP-43).

A token is a frame without a header. They last from the handshake to the client's next frame that reads as a request.
What a server sends in that time and no request waits for is a token too.

Invariant: connections without such a handshake cost nothing but the look for one.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.index.message_headers import RequestHeaders
from dissector.protocol.schema.api_keys import ApiKey

_FOREVER: Final = 1 << 62
Look = Callable[[int], bool]


class BareTokens:
    """When each connection speaks in tokens, as packet numbers."""

    def __init__(self) -> None:
        self._since: dict[int, list[list[int]]] = {}
        """Per connection: from the packet of a handshake to that of the next request."""

    def end(self, connections: Int64) -> None:
        """Forget connections that have ended."""
        for connection in connections.tolist() if self._since else ():
            self._since.pop(connection, None)

    def of_client(self, connection: Int64, packet: Int64, heads: RequestHeaders, is_request: Look) -> Bool:
        """Which of a batch's client frames, in order of time, are tokens. `is_request(n)` looks at frame `n`."""
        handshakes = (heads.api_key == ApiKey.SASL_HANDSHAKE) & (heads.version == 0)
        tokens = np.zeros(len(connection), np.bool_)
        if not handshakes.any() and not self._since:
            return tokens
        concerned = np.isin(connection, [*self._since, *connection[handshakes].tolist()])
        for n in np.flatnonzero(concerned).tolist():
            spells = self._since.setdefault(int(connection[n]), [])
            speaking = bool(spells) and spells[-1][1] == _FOREVER
            if speaking and not is_request(n):
                tokens[n] = True
                continue
            if speaking:
                spells[-1][1] = int(packet[n])
            if handshakes[n]:
                spells.append([int(packet[n]), _FOREVER])
        return tokens

    def of_server(self, connection: Int64, packet: Int64) -> Bool:
        """Which of the server's frames that no request waits for are tokens."""
        if not self._since:
            return np.zeros(len(connection), np.bool_)
        return np.array([
            any(first <= at < last for first, last in self._since.get(each, ()))
            for each, at in zip(connection.tolist(), packet.tolist(), strict=True)
        ], np.bool_)  # fmt: skip
