"""Rows of the index as columns: what finders see that need no body."""

from typing import NamedTuple

from dissector.core.arrays import Bool, Int64
from dissector.index.exchange_table import NO_FRAME, Flag, RowKind


class Rows(NamedTuple):
    """Rows of the index, ascending, beside what the frame table has of their frames: zeros where there is no frame."""

    row: Int64
    kind: Int64
    connection: Int64
    packet: Int64
    """The number of the packet with which a row begins: they go up."""
    api_key: Int64
    version: Int64
    correlation_id: Int64
    client_id: Int64
    flags: Int64
    request: Int64
    response: Int64
    asked_ns: Int64
    answered_ns: Int64
    asked_packet: Int64
    answered_packet: Int64
    """The number of the packet with the response's first byte."""
    asked_start: Int64
    """Stream offset of the request."""
    answered_start: Int64
    asked_at: Int64
    """Address of the request, where it is in one piece; else a negative number."""
    answered_at: Int64
    asked_size: Int64
    answered_size: Int64

    def where(self, which: Bool | Int64 | slice) -> "Rows":
        """Some of them."""
        return Rows(*(column[which] for column in self))

    @property
    def is_exchange(self) -> Bool:
        """Which are exchanges."""
        found: Bool = self.kind == RowKind.EXCHANGE
        return found

    @property
    def is_answered(self) -> Bool:
        """Which are exchanges with both sides."""
        found: Bool = self.is_exchange & (self.request != NO_FRAME) & (self.response != NO_FRAME)
        return found

    @property
    def asked(self) -> "Rows":
        """Those that are exchanges with a request."""
        return self.where(self.is_exchange & (self.request != NO_FRAME))

    @property
    def answered(self) -> "Rows":
        """Those of exchanges with both sides."""
        return self.where(self.is_answered)

    @property
    def unanswered(self) -> "Rows":
        """Requests without the response that they should have."""
        waits = self.is_exchange & (self.response == NO_FRAME)
        return self.where(waits & (self.flags & Flag.NO_RESPONSE_EXPECTED == 0))
