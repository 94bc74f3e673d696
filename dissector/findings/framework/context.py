"""The interface through which detectors query the capture."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from dissector.capture.injection_notes import InjectionNote
from dissector.core.arrays import Bool, Int64
from dissector.core.finding import Finding
from dissector.findings.framework.advertised_brokers import Brokers
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.protocol.message import Values
from dissector.transport.deliveries import Delivery


class FindingContext(Protocol):
    """Information about a capture, besides its rows, that detectors may query."""

    def client(self, connection: int) -> str:
        """Return the client of a connection: its address without the port, which changes with each connection."""

    def routes(self, connections: Int64) -> Int64:
        """Return numbers, `(n,)`, that are equal where `client` and `server` are."""

    @property
    def is_part(self) -> bool:
        """Whether this is a capture partition: between two rows others may have rows of the same client."""

    def client_id(self, row: int) -> str:
        """Return the client id of the request of a row; empty for none."""

    def injections(self, rows: ExaminedRows) -> Iterator[tuple[int, InjectionNote]]:
        """Return the rows with which a proxy interfered, and how."""

    def software(self, connection: int) -> str:
        """Return the name of the client's software, if its ApiVersions request on the connection has it; else empty."""

    def request(self, row: int) -> Values:
        """Return the body of the request of a row; empty if there is none, or it can't be read."""

    def request_numbers(self, rows: Int64, name: str) -> list[object]:
        """Return what the bodies of the requests of rows have by a name that stands alone and is a number's; None where
        `request` has none. They are read together."""

    def response(self, row: int) -> Values:
        """The same of the response. What may be secret is masked in both."""

    def brokers(self, rows: Int64) -> list[Brokers]:
        """Return the brokers in the responses to the Metadata requests of these rows, ascending."""

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

    def look_at(self, connections: Int64) -> None:
        """Read the rows of these connections together, for `rows_of` in this step."""

    def request_faults(self, row: int) -> list[Finding]:
        """Return why a broker can't read the request of a row: it does not fit its layout, or has a tag outside its
        versions. Paths begin in the request; content that may be secret is not in them."""

    def surely_fit(self, rows: Int64) -> Bool:
        """Return which requests of rows have surely no such faults, `(n,)`."""

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

    def delivery(self, connection: int, *, of_client: bool) -> Delivery | None:
        """Return what TCP delivered of one end of a connection; None where that is not known."""

    def stuck(self) -> Int64:
        """Return connections of which an end sent bytes again and again that were not acknowledged."""

    def was_held(self, connection: int, time_ns: int, *, of_client: bool) -> bool:
        """Return whether one end held the bytes that it sent at a time until a delayed acknowledgement."""

    def had_no_room(self, connection: int, begin_ns: int, end_ns: int, *, of_client: bool) -> bool:
        """Return whether one end closed its window in this time."""

    def first_sequence_numbers(self, connection: int) -> tuple[int, int]:
        """Return TCP's sequence numbers with which client and broker begin, -1 where one sent nothing."""

    def may_be_copies(self, connections: Int64, apart_ns: int) -> Bool:
        """Return which connections may begin with the same sequence numbers as others within this time, or begin as
        others do that may: of a capture partition, which does not have all connections, all."""

    def began_ns(self, connection: int) -> int:
        """Return the time of the first packet of a connection."""

    @property
    def first_pending_packet(self) -> int:
        """The packet of the first row that may still change; `NEVER` if there is none."""

    def topic(self, named: Values) -> str:
        """Return the name of the topic that a structure names, or its id if the name is unknown."""
