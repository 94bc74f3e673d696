"""Which part of a latency was long, and what made it so: the broker, the network, or an end that did not read.

The network is named where retransmissions took at least half of the part, a receiver where its window was closed
meanwhile. What is left of a wait is the broker's; a long transfer without either has no cause here.
"""

from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.text import duration
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.examined_rows import ExaminedRows

BROKER: Final = "the broker"
NETWORK: Final = "the network"
RECEIVER: Final = "the receiver"
UNKNOWN: Final = ""
_SENDING, _WAIT, _RECEIVING = range(3)
_WORDS: Final = ("to send the request", "until the broker answered", "to receive the response")
_READERS: Final = ("broker", "", "client")


class SlowPart(NamedTuple):
    """The longest part of a latency."""

    cause: str
    words: str
    """Behind those about the latency; begin with a semicolon."""


class SlowParts:
    """The longest part of the latency of some rows that have both sides: their columns are made together, when the
    first of them is asked for, and words for those that are asked for."""

    def __init__(self, context: FindingContext, rows: ExaminedRows, places: Int64) -> None:
        """`places` are those of the rows among `rows`."""
        self._context = context
        self._rows = rows
        self._places = places

    def of(self, place: int) -> SlowPart:
        """Return that of a row, by its place among all."""
        return _slow_part(self._context, *(int(column[self._numbers[place]]) for column in self._columns))

    @cached_property
    def _numbers(self) -> Int64:
        numbers = np.full(len(self._rows.row), -1, np.int64)
        numbers[self._places] = np.arange(len(self._places))
        return numbers

    @cached_property
    def _columns(self) -> tuple[Int64, ...]:
        """Connection, which part is the longest, how long it took, how much of that went to losses, when it began."""
        rows, context = self._rows.where(self._places), self._context
        lost = np.zeros((3, len(rows.row)), np.int64)
        if context.has_retransmissions:
            again, waited = context.delays(rows.request)
            again[rows.request_ns + again > rows.response_ns] = 0  # the response was there: it had not been lost
            lost[_SENDING] = np.maximum(again, waited)
            again, waited = context.delays(rows.response)
            lost[_WAIT] = np.maximum(lost[_SENDING], waited)
            lost[_RECEIVING] = np.maximum(again, waited)
        parts = np.stack((rows.request_transfer_ns, rows.wait_ns, rows.response_transfer_ns))
        longest = parts.argmax(axis=0)
        at = np.arange(len(longest))
        begins = np.stack((rows.request_ns, rows.request_ns, rows.response_ns))[longest, at]
        return rows.connection, longest, parts[longest, at], lost[longest, at], begins


def _slow_part(context: FindingContext, connection: int, longest: int, took: int, lost: int, begin_ns: int) -> SlowPart:
    words = f"; {duration(took)} of it {_WORDS[longest]}"
    reader = _READERS[longest]
    end_ns = begin_ns + took
    if reader and context.had_no_room(connection, begin_ns, end_ns, of_client=reader == "client"):
        return SlowPart(RECEIVER, f"{words}, as the {reader} did not read: its receive window was closed")
    if 2 * lost >= took:
        return SlowPart(NETWORK, f"{words}, as the network lost segments: they were sent again")
    return SlowPart(BROKER if longest == _WAIT else UNKNOWN, words)
