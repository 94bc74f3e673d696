"""What the detection, and what decodes after it, needs of the connections of a capture."""

from typing import Protocol

from dissector.core.arrays import Int64


class Connections(Protocol):
    """The connections of a capture. `transport.ConnectionTable` implements it."""

    def __len__(self) -> int:
        """How many connections there are."""

    def endpoints(self, connection: int) -> tuple[tuple[str, int], tuple[str, int]]:
        """Address and port of side 0 and side 1."""

    def ports(self, connection: int) -> tuple[int, int]:
        """The port of side 0 and of side 1."""

    def ends(self, connections: Int64, sides: Int64) -> tuple[list[tuple[str, int]], Int64]:
        """Address and port of each different end that is one side of connections; and for every connection which of
        them is its own."""

    def routes(self, connections: Int64, clients: Int64) -> Int64:
        """The number of each connection's client address and server end, those of equal ones from 0."""

    def syn_side(self, connection: int) -> int:
        """The side that opened the connection, -1 where the capture did not see it."""

    def syn_sides(self, connections: Int64) -> Int64:
        """The same for many, `(n,)`."""

    def first_packet(self, connection: int) -> int:
        """The number of its first packet."""

    def first_packets(self, connections: Int64) -> Int64:
        """The same for many, `(n,)`."""

    def first_time_ns(self, connection: int) -> int:
        """The time of its first packet."""

    def first_times_ns(self, connections: Int64) -> Int64:
        """The same for many, `(n,)`."""

    def closed(self, connection: int) -> tuple[int, int]:
        """The time of its first FIN or RST, `NEVER` where none was captured; and the side that sent it."""

    def open(self) -> Int64:
        """Connections of which more may come, ascending."""

    def ended(self, connection: int) -> tuple[int, int]:
        """Which of the flags FIN and RST side 0 and side 1 have sent; 0 where none."""
