"""What TCP did on each connection: round-trip times, bytes and packets each way, windows, bytes lost.

Computed natively (`tcp_facts.c`); a connection keeps some 200 bytes.

  * The handshake's round trip is from the SYN to the opener's first ACK: Wireshark's "initial RTT". It is known
    where the capture began before the connection.
  * The round trip of an acknowledgement is from data to a segment without data that acknowledges exactly its end, if
    nothing of the connection came between them. So neither the time a server takes, nor a loss, is in it.
  * Zero windows and full windows are Wireshark's. A full window is data that ends exactly where the receiver's window
    does, so that the sender has to wait: it counts from the receiver's last acknowledgement. Full windows are known
    where both SYNs were captured, as only they have the windows' scales.

Invariant, a property test: any cutting of the capture into batches gives the same facts.
"""

import ctypes
from typing import Final, NamedTuple

import numpy as np

from dissector.core.batches import RunBatch, RunKind, SegmentBatch
from dissector.core.columns import Column
from dissector.core.kernel import kernel_function, structure_fields
from dissector.transport.deliveries import kernel_state
from dissector.transport.retransmissions import Retransmissions

NOTHING: Final = -1
UNKNOWN_SCALE: Final = -2
"""Of an end whose SYN was not seen."""


class DirectionFacts(NamedTuple):
    """What one end sent."""

    packets: int
    bytes: int
    """Of payload, those that came again included."""
    retransmitted: int
    """Bytes that came again."""
    lost: int
    """Bytes that were sent and are not in the capture."""
    zero_windows: int
    """Segments that said that nothing more may be sent."""
    full_windows: int
    """Segments that ended where the other end's window does: nothing more may be sent for now."""


class TcpFacts(NamedTuple):
    """What TCP did on a connection; times in nanoseconds, None where the capture does not show them."""

    handshake_ns: int | None
    ack_ns: int | None
    """The mean round trip of acknowledgements."""
    least_ack_ns: int | None
    sides: tuple[DirectionFacts, DirectionFacts]


class TcpFactsTable:
    """The facts of all connections of a capture."""

    def __init__(self, retransmissions: Retransmissions) -> None:
        self._retransmissions = retransmissions
        self._lost = Column(np.int64)
        self._by_direction = {
            "packets": Column(np.int64), "bytes": Column(np.int64), "zero_windows": Column(np.int32),
            "full_windows": Column(np.int32),
            "scales": Column(np.int8, UNKNOWN_SCALE),  # of the windows that an end announces
            "limits": Column(np.int64, NOTHING),  # the sequence number up to which an end lets the other one send
        }  # fmt: skip
        self._by_connection = {
            "opener": Column(np.int8, NOTHING),  # the side that sent the SYN
            "syn_ns": Column(np.int64), "handshake_ns": Column(np.int64),
            "acks": Column(np.int32), "ack_ns": Column(np.int64),
            "least_ack_ns": Column(np.int64, np.iinfo(np.int64).max),
            # Of the last segment: if it carried data, the sequence number behind it, and its side above 32 bits; its
            # time.
            "end": Column(np.int64, NOTHING), "end_ns": Column(np.int64),
        }  # fmt: skip

    def feed(self, segments: SegmentBatch) -> None:
        """Take segments, in capture order."""
        if not len(segments):
            return
        directions, state = kernel_state(segments, _OF_SEGMENTS, self._by_direction, self._by_connection)
        addresses = {name: values.ctypes.data for name, values in state.items()}
        _tcp_facts()(ctypes.byref(_KernelTcpFacts(rows=len(segments), directions=directions, **addresses)))

    def add_gaps(self, runs: RunBatch) -> None:
        """Count the bytes that the capture does not have."""
        lost = runs.kind == RunKind.LOST
        if lost.any():
            self._lost.grow((int(runs.direction[lost].max()) | 1) + 1)
            np.add.at(self._lost.values, runs.direction[lost], runs.size[lost])

    def last_time_ns(self, connection: int) -> int:
        """The time of the last segment of a connection; 0 where none was fed, which comes behind the connection itself
        while a capture is read."""
        return self._by_connection["end_ns"].item(connection)

    def of(self, connection: int) -> TcpFacts | None:
        """The facts of a connection; None where no segment of it was fed."""
        if connection >= len(self._by_connection["acks"]):
            return None
        facts = {name: int(column.values[connection]) for name, column in self._by_connection.items()}
        one, other = (self._direction(at) for at in (2 * connection, 2 * connection + 1))
        return TcpFacts(
            facts["handshake_ns"] or None,
            facts["ack_ns"] // facts["acks"] if facts["acks"] else None,
            facts["least_ack_ns"] if facts["acks"] else None,
            (one, other),
        )

    def _direction(self, at: int) -> DirectionFacts:
        facts = {name: int(column.values[at]) for name, column in self._by_direction.items()}
        lost = int(self._lost.values[at]) if at < len(self._lost) else 0
        return DirectionFacts(
            facts["packets"], facts["bytes"], self._retransmissions.repeated_bytes(at), lost, facts["zero_windows"],
            facts["full_windows"],
        )  # fmt: skip


_OF_SEGMENTS: Final = ("time_ns", "direction", "seq", "ack", "flags", "size", "missing", "window", "scale")


TCP_FACTS: Final = """
int64_t rows;
const int64_t *time_ns, *direction;
const uint32_t *seq, *ack;
const uint8_t *flags;
const int64_t *size, *missing, *window, *scale;
int64_t directions;
int64_t *packets, *bytes; /* by direction */
int32_t *zero_windows, *full_windows;
int8_t *scales;
int64_t *limits;
int8_t *opener; /* by connection */
int64_t *syn_ns, *handshake_ns;
int32_t *acks;
int64_t *ack_ns, *least_ack_ns, *end, *end_ns;
"""
"""Segments, and what is known of their connections: `KernelTcpFacts` of kernel.h."""
_tcp_facts = kernel_function("tcp_facts", "P")


class _KernelTcpFacts(ctypes.Structure):
    """As `TCP_FACTS`."""

    _fields_ = structure_fields(TCP_FACTS)
