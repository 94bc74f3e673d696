"""The names of connections in tables: the capture and packet with which they begin, as ``8f3c…:17``."""

from dissector.capture_session import Capture
from dissector.pipeline.origins import Origins


class ConnectionNames:
    """Names by number, and which connections are new."""

    def __init__(self, capture: Capture, origins: Origins) -> None:
        self._capture = capture
        self._origins = origins
        self._names: dict[int, str] = {}
        self._new: list[int] = []

    def of(self, connection: int) -> str:
        """Return the name of a connection."""
        name = self._names.get(connection)
        if name is None:
            place = self._origins.of(self._capture.connections.first_packet(connection))
            name = self._names[connection] = f"{place.origin.capture}:{place.packet}"
            self._new.append(connection)
        return name

    def take_new(self) -> list[int]:
        """Take the connections that were named since the last call."""
        new, self._new = self._new, []
        return new
