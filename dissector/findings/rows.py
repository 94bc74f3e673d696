"""Rows of the index as columns: what finders see that need no body."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dissector.index.exchange_table import NO_FRAME, Flag, Ints, RowKind

Mask = npt.NDArray[np.bool_]


class Rows(NamedTuple):
    """Rows of the index, ascending, beside what the frame table has of their frames: zeros where there is no frame."""

    row: Ints
    kind: Ints
    connection: Ints
    packet: Ints
    """The number of the packet with which a row begins: they go up."""
    api_key: Ints
    version: Ints
    correlation_id: Ints
    client_id: Ints
    flags: Ints
    request: Ints
    response: Ints
    asked_ns: Ints
    answered_ns: Ints
    asked_packet: Ints
    answered_packet: Ints
    """The number of the packet with the response's first byte."""
    asked_start: Ints
    """Stream offset of the request."""
    answered_start: Ints
    asked_at: Ints
    """Address of the request, where it is in one piece; else a negative number."""
    answered_at: Ints
    asked_size: Ints
    answered_size: Ints

    def where(self, which: Mask | Ints | slice) -> "Rows":
        """Some of them."""
        return Rows(*(column[which] for column in self))

    @property
    def is_exchange(self) -> Mask:
        """Which are exchanges."""
        found: Mask = self.kind == RowKind.EXCHANGE
        return found

    @property
    def is_answered(self) -> Mask:
        """Which are exchanges with both sides."""
        found: Mask = self.is_exchange & (self.request != NO_FRAME) & (self.response != NO_FRAME)
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
