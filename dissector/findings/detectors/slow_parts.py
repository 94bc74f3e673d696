"""Which part of a latency was long, and what made it so: the broker, the network, or an end that did not read.

The network is named where retransmissions took at least half of the part, a receiver where its window was closed
meanwhile. What is left of a wait is the broker's; a long transfer without either has no cause here.
"""

from typing import Final, NamedTuple

import numpy as np

from dissector.core.columns import tuples
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


class LongestPart(NamedTuple):
    """The same as measured: its cause is looked for where the latency is too long."""

    connection: int
    part: int
    took_ns: int
    lost_ns: int
    """How much of it went to losses."""
    begin_ns: int


def longest_parts(context: FindingContext, rows: ExaminedRows) -> list[LongestPart]:
    """Return the longest part of the latency of each row; they have both sides."""
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
    columns = rows.connection, longest, parts[longest, at], lost[longest, at], begins
    return [LongestPart(*each) for each in tuples(*columns)]


def slow_part(context: FindingContext, longest: LongestPart) -> SlowPart:
    """Return what made it so long."""
    connection, part, took, lost, begin_ns = longest
    words = f"; {duration(took)} of it {_WORDS[part]}"
    reader = _READERS[part]
    end_ns = begin_ns + took
    if reader and context.had_no_room(connection, begin_ns, end_ns, of_client=reader == "client"):
        return SlowPart(RECEIVER, f"{words}, as the {reader} did not read: its receive window was closed")
    if 2 * lost >= took:
        return SlowPart(NETWORK, f"{words}, as the network lost segments: they were sent again")
    return SlowPart(BROKER if part == _WAIT else UNKNOWN, words)
