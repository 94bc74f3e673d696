"""The interface through which detectors query the capture."""

from collections.abc import Mapping
from typing import Protocol

from dissector.core.arrays import Int64
from dissector.core.finding import Finding
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.protocol.message import Values


class FindingContext(Protocol):
    """Information about a capture, besides its rows, that detectors may query."""

    def client(self, connection: int) -> str:
        """Return the client of a connection: its address without the port, which changes with each connection."""

    def offered(self, connection: int) -> Mapping[int, tuple[int, int]]:
        """Return the versions that the broker of a connection advertised, there or on others, by API key."""

    def is_offered(self, connection: int, key: int, version: int) -> bool:
        """Return whether the broker accepts a version of an API; True if it did not advertise any."""

    def closed(self, connection: int) -> tuple[int, bool]:
        """Return when a connection was closed, or `NEVER`, and whether the client closed it first."""

    def server(self, connection: int) -> str:
        """Return the server of a connection, as `host:port`."""

    def rows_of(self, connection: int) -> ExaminedRows:
        """Return all rows of a connection so far, in the order of its streams."""

    def request_faults(self, row: int) -> list[Finding]:
        """Return why a broker can't read the request of a row: it does not fit its layout, or has a tag outside its
        versions. Paths begin in the request; content that may be secret is not in them."""

    def last_row(self, connection: int) -> int:
        """Return the row with which a connection ends so far; -1 if it has none."""

    def is_server_foreign(self, connection: int) -> bool:
        """Return whether the server of a connection responds in another protocol than Kafka's."""

    def first_packet(self, connection: int) -> int:
        """Return the number of its first packet, which identifies the connection in the capture."""

    def captured(self, frame: int) -> int:
        """Return how many bytes of a frame the capture has."""

    @property
    def has_retransmissions(self) -> bool:
        """Whether TCP retransmitted any bytes or delivered them out of order."""

    def delays(self, frames: Int64) -> tuple[Int64, Int64]:
        """Return two delays of each frame in nanoseconds, 0 if there is none: from its beginning until its last byte
        was retransmitted; and how long a byte of it waited for earlier ones."""

    @property
    def first_pending_packet(self) -> int:
        """The packet of the first row that may still change; `NEVER` if there is none."""

    def topic(self, named: Values) -> str:
        """Return the name of the topic that a structure names, or its id if the name is unknown."""
