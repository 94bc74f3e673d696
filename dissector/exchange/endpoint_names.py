"""Which end of a connection is the client, and both ends as text."""

from functools import lru_cache
from typing import Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import NEVER
from dissector.core.text import endpoint_name
from dissector.detection.connections import Connections
from dissector.detection.kafka_detector import NO_CLIENT, KafkaDetector

CACHE_SIZE: Final = 1 << 14
"""Connections whose ends are kept as text."""


class EndpointNames:
    """Client and server of each connection of the index."""

    def __init__(self, connections: Connections, detector: KafkaDetector) -> None:
        self._connections = connections
        self._detector = detector
        self.of = lru_cache(maxsize=CACHE_SIZE)(self._of)
        """The client's end and the server's, as `host:port`, kept until `clear`."""

    def clear(self) -> None:
        """Forget the ends, as more of the capture may show who is the client."""
        self.of.cache_clear()

    def server(self, connection: int) -> str:
        """The server's end, as `host:port`."""
        return self.of(connection)[1]

    def servers(self, connections: Int64) -> tuple[list[str], Int64]:
        """The different servers of connections, as `host:port`, and for every connection which of them is its own."""
        sides = np.array([1 - self.client_side(each) for each in connections.tolist()], np.int64)
        ends, which = self._connections.ends(connections, sides)
        return [endpoint_name(*each) for each in ends], which

    def client_side(self, connection: int) -> int:
        """The side of the client, 0 or 1; 0 where nothing shows who it is."""
        side = self._detector.client(connection)
        if side == NO_CLIENT:
            kafka = self._detector.kafka_side(connection)
            return 0 if kafka is None else 1 - kafka
        return side

    def closed(self, connection: int) -> tuple[int, bool] | None:
        """When it was closed, and whether the client closed it first; None where that was not captured."""
        time_ns, side = self._connections.closed(connection)
        return None if time_ns == NEVER else (time_ns, side == self.client_side(connection))

    def _of(self, connection: int) -> tuple[str, str]:
        ends = [endpoint_name(*each) for each in self._connections.endpoints(connection)]
        side = self.client_side(connection)
        return ends[side], ends[1 - side]
