"""The time of a capture that grows, as its packets tell it: what holes of streams wait for.

The clock moves with the latest time seen, in ticks of a part of the wait. Of each tick it knows the first packet, so
that "it came longer ago than the wait" is a comparison of packet numbers.

Invariants:
  * the clock never goes back, and how packets are cut into batches makes no difference;
  * a packet is not old before the clock has moved on by the wait, and is at the latest two ticks after that;
  * a wrong time makes packets old too early at most: a step ahead counts as two waits, and where times go back by more
    than the wait, the clock goes on from there. Memory is that of the ticks of one batch.
"""

from typing import Final

import numpy as np

from dissector.core.arrays import Int64

TICKS: Final = 16
"""Parts of the wait."""


class CaptureClock:
    """Says of the packets of a batch, which is fed first, from which packet on none is old."""

    def __init__(self, wait_ns: int) -> None:
        self._tick_ns = max(1, wait_ns // TICKS)
        self._wait_ns = TICKS * self._tick_ns
        self._latest_ns: int | None = None
        self._elapsed_ns = 0
        self._ticks = np.zeros(0, np.int64)
        """Those that packets came in: of this batch, and of the wait before it."""
        self._firsts = np.zeros(0, np.int64)
        """The first packet of each."""

    def feed(self, packet: Int64, time_ns: Int64) -> None:
        """Add packets, by number and time, at least one."""
        recent = int(np.searchsorted(self._ticks, self._elapsed_ns // self._tick_ns - TICKS))
        ticks = self._elapsed(time_ns) // self._tick_ns
        before = self._ticks[-1] if len(self._ticks) else -1
        begins = np.flatnonzero(np.diff(ticks, prepend=before))
        self._ticks = np.concatenate((self._ticks[recent:], ticks[begins]))
        self._firsts = np.concatenate((self._firsts[recent:], packet[begins]))

    def first_recent(self, packet: Int64) -> Int64:
        """Return for packets of the batch fed last the first one that is not old when the capture comes to them."""
        ticks = self._ticks[np.searchsorted(self._firsts, packet, side="right") - 1]
        return self._firsts[np.searchsorted(self._ticks, ticks - TICKS)]

    def _elapsed(self, time_ns: Int64) -> Int64:
        """Return the clock at each packet: nanoseconds since the first one."""
        first = int(time_ns[0]) if self._latest_ns is None else self._latest_ns
        latest = np.maximum.accumulate(np.concatenate((np.array([first]), time_ns)))
        steps = np.diff(latest)
        if int((latest[1:] - time_ns).max()) > self._wait_ns:
            latest, steps = self._set_back(first, time_ns)
        elapsed: Int64 = self._elapsed_ns + np.cumsum(np.clip(steps, 0, 2 * self._wait_ns))
        self._latest_ns, self._elapsed_ns = int(latest[-1]), int(elapsed[-1])
        return elapsed

    def _set_back(self, latest: int, time_ns: Int64) -> tuple[Int64, Int64]:
        """Return the latest times and the steps to them, where times go back by more than the wait."""
        found = []
        for time in time_ns.tolist():
            latest_before, latest = latest, time if time > latest or latest - time > self._wait_ns else latest
            found.append((latest, latest - latest_before))
        columns = np.array(found, np.int64).T
        return columns[0], columns[1]
