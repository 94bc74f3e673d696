"""What detectors may ask about the capture."""

from collections.abc import Mapping
from typing import Protocol

from dissector.core.arrays import Int64
from dissector.protocol.message import Values


class FindingContext(Protocol):
    """A capture, as detectors see it beside its rows."""

    def client(self, connection: int) -> str:
        """The client of a connection: client id and address, without the port, which changes with each connection."""

    def offered(self, connection: int) -> Mapping[int, tuple[int, int]]:
        """The versions that the broker of a connection advertised, there or on others, by API key."""

    def is_offered(self, connection: int, key: int, version: int) -> bool:
        """Whether the broker accepts that version of an API, as far as it advertised any."""

    def closed(self, connection: int) -> tuple[int, bool]:
        """When a connection was closed, `NEVER` if it was not; and whether the client closed it first."""

    def first_packet(self, connection: int) -> int:
        """The number of its first packet, which identifies the connection in the capture."""

    def captured(self, frame: int) -> int:
        """How many bytes of a frame the capture has."""

    @property
    def has_retransmissions(self) -> bool:
        """Whether TCP sent any bytes again or delivered them late."""

    def delays(self, frames: Int64) -> tuple[Int64, Int64]:
        """How long after its beginning the last byte of each frame was sent again, and how long a byte of it waited for
        others, in nanoseconds; 0 for neither, and where there is no frame."""

    @property
    def first_pending_packet(self) -> int:
        """The packet of the first row to which something may be added; `NEVER` if there is none."""

    def topic(self, named: Values) -> str:
        """The name of the topic that a structure names, or its id if the name is not known."""
