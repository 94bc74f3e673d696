"""What TCP got through and what it did not: bytes that wait for an acknowledgement, and how often they were sent again;
tails that waited for a delayed acknowledgement; receivers that had no room; the sequence numbers that connections begin
with.

Computed natively (`deliveries.c`); a connection keeps some 220 bytes, and events are bounded.

  * A direction waits from its first byte that is not acknowledged. Copies less than a millisecond apart were captured
    twice and are no retransmissions; keep-alives and probes of a closed window are none either.
  * A tail was held back if it follows an acknowledgement of all that was sent before within a round trip, and that
    acknowledgement, without data, was 30 ms late or more: Nagle's algorithm (RFC 1122, 4.2.3.4) waits for it, and its
    sender delays it (4.2.3.2).

Invariant, a property test: any cutting of the capture into batches gives the same.
"""

import ctypes
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dissector.core.arrays import Int64
from dissector.core.batches import SegmentBatch
from dissector.core.columns import Column, is_in, unique
from dissector.core.kernel import kernel_function, structure_fields
from dissector.core.limits import Limits

NOTHING: Final = -1
LEAST_RANDOM: Final = 1 << 16
"""The least initial sequence number that is taken for a random one: made-up packets have small ones, all the same."""
STUCK_RETRIES: Final = 3
"""Retransmissions without an acknowledgement that are more than a loss."""


def kernel_state(
    segments: SegmentBatch,
    names: Iterable[str],
    by_direction: Mapping[str, Column],
    by_connection: Mapping[str, Column],
) -> tuple[int, dict[str, NDArray[np.generic]]]:
    """Grow the state to the connections of segments, of which there is one at least. Return how many directions there
    are, and by name the columns of the segments and the state: the native pass has only their addresses, so that they
    have to be kept until it returns."""
    directions = (int(segments.direction.max()) | 1) + 1
    for column in by_direction.values():
        column.grow(directions)
    for column in by_connection.values():
        column.grow(directions // 2)
    columns = {name: np.ascontiguousarray(getattr(segments, name)) for name in names}
    return directions, columns | {name: each.values for name, each in (*by_direction.items(), *by_connection.items())}


class EventKind(IntEnum):
    """What happened in a direction, for the native pass, too."""

    HELD_TAIL = 0
    """The sender held bytes back until a delayed acknowledgement."""
    ZERO_WINDOW = 1
    """The sender of the segment, as receiver of the other direction, had no room."""


class Delivery(NamedTuple):
    """What one end of a connection sent, at the end of what was read so far."""

    waiting_ns: int
    """The time since when its oldest byte without an acknowledgement waits; 0 if all was acknowledged."""
    idle_ns: int
    """For how long the connection had been idle when these bytes were sent."""
    retries: int
    """How often they were sent again."""
    retry_ns: int
    """When they were last sent again."""
    retry_size: int
    """Bytes of the segment that was last sent again."""
    largest_acked: int
    """Bytes of the largest segment that may have been acknowledged."""
    heard: int
    """Segments of the other end since then."""
    is_closed: bool
    """Whether the window of the other end is closed."""
    is_acked: bool
    """Whether it sent something, and the other end acknowledged all of it."""


class EqualStarts(NamedTuple):
    """Connections that begin with the same sequence numbers as others, `(n,)`."""

    connections: Int64
    """Ascending."""
    numbers: Int64
    """Equal for those that begin alike."""


COMPARED: Final = 1 << 14
"""Connections with which new ones are compared: copies of a connection begin at the same time."""
_NONE: Final = np.zeros(0, np.int64)


class Deliveries:
    """Those of all connections of a capture."""

    def __init__(self, limits: Limits) -> None:
        self._most = limits.retransmissions
        self._by_direction = {
            "first_seq": Column(np.int64, NOTHING), "sent": Column(np.int64, NOTHING),
            "acked": Column(np.int64, NOTHING), "sent_ns": Column(np.int64), "waiting_ns": Column(np.int64),
            "idle_ns": Column(np.int64), "retry_seq": Column(np.int64, NOTHING), "retry_ns": Column(np.int64),
            "free_ns": Column(np.int64), "retries": Column(np.int32), "retry_size": Column(np.int32),
            "heard": Column(np.int32), "largest": Column(np.int32), "largest_acked": Column(np.int32),
            "is_closed": Column(np.int8),
        }  # fmt: skip
        self._by_connection = {"last_ns": Column(np.int64), "trip_ns": Column(np.int64)}
        self._events = Column(np.int64), Column(np.int64)
        """Direction and kind, and time."""
        self._equal_starts: tuple[int, EqualStarts] = (0, EqualStarts(_NONE, _NONE))
        """How many directions were compared, and those that begin with equal numbers."""
        self._sorted: tuple[int, Int64, Int64] = (-1, np.zeros(0, np.int64), np.zeros(0, np.int64))

    def feed(self, segments: SegmentBatch) -> None:
        """Take segments, in capture order."""
        if not len(segments):
            return
        directions, state = kernel_state(segments, _OF_SEGMENTS, self._by_direction, self._by_connection)
        events = np.empty((2 * len(segments), 2), np.int64)
        addresses = {name: values.ctypes.data for name, values in state.items()}
        call = _KernelDeliveries(rows=len(segments), directions=directions, events=events.ctypes.data, **addresses)
        _deliveries()(ctypes.byref(call))
        room = max(0, self._most - len(self._events[0]))
        for column, values in zip(self._events, events[: min(call.count, room)].T, strict=True):
            column.extend(values)

    def of(self, direction: int) -> Delivery | None:
        """What a direction delivered; None where no segment of its connection was fed."""
        if direction >= len(self._by_direction["sent"]):
            return None
        state = {name: int(column.values[direction]) for name, column in self._by_direction.items()}
        return Delivery(
            state["waiting_ns"], state["idle_ns"], state["retries"], state["retry_ns"], state["retry_size"],
            state["largest_acked"], state["heard"], bool(state["is_closed"]),
            state["sent"] != NOTHING and state["acked"] != NOTHING and not state["waiting_ns"],
        )  # fmt: skip

    def first_sequence_numbers(self, connection: int) -> tuple[int, int]:
        """Those with which both sides of a connection begin in the capture; `NOTHING` for a side that sent nothing."""
        values = self._by_direction["first_seq"].values[2 * connection : 2 * connection + 2]
        return (int(values[0]), int(values[1])) if len(values) == 2 else (NOTHING, NOTHING)

    def equal_starts(self) -> EqualStarts:
        """The connections that begin with the same sequence numbers as another: the same object until there are more
        connections. New ones are compared with each other and with the `COMPARED` before them."""
        values = self._by_direction["first_seq"].values
        compared, found = self._equal_starts
        if compared != len(values):
            first = max(0, compared // 2 - COMPARED)
            both = np.sort(values[2 * first :].reshape(-1, 2), axis=1)
            random = np.flatnonzero(both[:, 0] >= LEAST_RANDOM)
            numbers = both[random, 0] << 32 | both[random, 1]
            order = np.argsort(numbers, kind="stable")
            is_same = np.diff(numbers[order]) == 0
            is_equal = np.zeros(len(random), np.bool_)
            is_equal[order[1:][is_same]] = is_equal[order[:-1][is_same]] = True
            is_new = is_equal & ~is_in(first + random, found.connections)
            connections = np.concatenate([found.connections, first + random[is_new]])
            order = np.argsort(connections)
            found = EqualStarts(connections[order], np.concatenate([found.numbers, numbers[is_new]])[order])
            self._equal_starts = len(values), found
        return found

    def has_event(self, kind: EventKind, direction: int, begin_ns: int, end_ns: int) -> bool:
        """Whether something happened in a direction in this time, both ends included."""
        keys, times = self._by_key()
        key = direction << 1 | kind
        low, high = np.searchsorted(keys, [key, key + 1])
        at = low + int(np.searchsorted(times[low:high], begin_ns))
        return bool(at < high and times[at] <= end_ns)

    def stuck(self) -> Int64:
        """Connections of which an end sent what waits `STUCK_RETRIES` times again, and has no closed window before it,
        ascending, `(n,)`."""
        retries, waiting_ns, is_closed = (
            self._by_direction[name].values for name in ("retries", "waiting_ns", "is_closed")
        )
        directions = np.flatnonzero((retries >= STUCK_RETRIES) & (waiting_ns != 0) & (is_closed == 0))
        return unique(directions >> 1)

    def _by_key(self) -> tuple[Int64, Int64]:
        """The events, by direction, kind and time."""
        count = len(self._events[0])
        if self._sorted[0] != count:
            keys, times = (column.values for column in self._events)
            order = np.lexsort((times, keys))
            self._sorted = count, keys[order], times[order]
        return self._sorted[1:]


_OF_SEGMENTS: Final = ("time_ns", "direction", "seq", "ack", "flags", "size", "missing", "window")


DELIVERIES: Final = """
int64_t rows;
const int64_t *time_ns, *direction;
const uint32_t *seq, *ack;
const uint8_t *flags;
const int64_t *size, *missing, *window;
int64_t directions;
int64_t *first_seq, *sent, *acked, *sent_ns, *waiting_ns, *idle_ns, *retry_seq, *retry_ns, *free_ns; /* by direction */
int32_t *retries, *retry_size, *heard, *largest, *largest_acked;
int8_t *is_closed;
int64_t *last_ns, *trip_ns; /* by connection */
int64_t *events; /* of each a direction and a kind, and a time */
int64_t count;
"""
"""Segments, and what is known of their deliveries: `KernelDeliveries` of kernel.h."""
_deliveries = kernel_function("deliveries", "P")


class _KernelDeliveries(ctypes.Structure):
    """As `DELIVERIES`."""

    _fields_ = structure_fields(DELIVERIES)
