"""Slow: against what the connection itself is used to, and against the wait that was asked for.

Of each connection and API a histogram is kept, an eighth of an octave a step: what most of its exchanges took is known
without keeping any of them.
"""

from itertools import pairwise
from typing import ClassVar, Final

import numpy as np

from dissector.analysis.findings.explanation import Explanation
from dissector.analysis.findings.finder import Around, BodyFinder, RowFinder
from dissector.analysis.findings.found import Case, Found
from dissector.analysis.findings.recurring import MILLISECOND, Recent
from dissector.analysis.findings.rows import Rows
from dissector.analysis.findings.seen import Seen
from dissector.findings import Severity
from dissector.session.lookup import api_name
from dissector.session.table import Ints
from dissector.text import duration

WAITING: Final = frozenset((1, 11, 14, 52, 53, 54, 62, 68, 76, 78, 80, 82, 88))
"""APIs that may be answered late on purpose: Fetch, JoinGroup, SyncGroup, the quorum's votes, heartbeats of brokers and
of members, share fetches and raft's changes of voters."""
LEAST_NS: Final = 50 * MILLISECOND
"""What is faster is never called slow."""
TIMES: Final = 10
"""So many times the median is slow."""
LEAST_SEEN: Final = 30
"""Exchanges of a connection and an API before anything is said of them."""
SELDOM: Final = 20
"""At most one in so many is slow: where more are, that is what the connection is like."""
STEPS: Final = 8
"""Of an octave."""
BUCKETS: Final = 44 * STEPS
LATE_NS: Final = 200 * MILLISECOND
"""Behind the wait that a Fetch asked for."""

SLOW: Final = Explanation(
    "slow",
    "A slow answer",
    Severity.WARNING,
    "The answer took far longer than is usual for this API on this connection: ten times the median, and longer than "
    "nineteen in twenty; or a Fetch came back long after the wait that it asked for.",
    "The broker's disk or its replicas were slow (acks=all waits for them), a quota held the answer back, request "
    "threads or the network thread were busy, or a request in front of it on the same connection took long.",
    "Look at what else the connection had in flight, at throttle_time_ms in the answer, and at the broker's own "
    "request times (RequestQueue, Local, Remote, ResponseQueue). max.in.flight.requests.per.connection says how many "
    "wait behind a slow one; request.timeout.ms when the client gives up.",
)


class Slow(RowFinder):
    """Against the connection's own distribution."""

    explanation: ClassVar = SLOW

    def __init__(self, found: Found, around: Around) -> None:
        super().__init__(found, around)
        self._counts: Recent[tuple[int, int], Ints] = Recent(_no_counts, most=4_096)
        self._stalls: Recent[tuple[int, int], _Stall] = Recent(_Stall)

    def take(self, rows: Rows) -> None:
        """Count all, then look at those that may be slow."""
        answered = rows.answered
        answered = answered.where(~np.isin(answered.api_key, list(WAITING)))
        if not len(answered.row):
            return
        order = np.lexsort((answered.row, answered.api_key, answered.connection))
        answered = answered.where(order)
        latency = np.maximum(answered.answered_ns - answered.asked_ns, 1)
        bucket = _bucket(latency)
        group = answered.connection << 16 | answered.api_key
        edges = [0, *(np.flatnonzero(np.diff(group)) + 1).tolist(), len(group)]
        late = np.logical_or.reduceat(latency >= LEAST_NS, edges[:-1]).tolist()
        for (low, high), some in zip(pairwise(edges), late, strict=True):
            key = (int(answered.connection[low]), int(answered.api_key[low]))
            counts = self._counts.of(key)
            counts += np.bincount(bucket[low:high], minlength=BUCKETS)
            if not some:
                continue
            slow = self._slow(counts, bucket[low:high]) & (latency[low:high] >= LEAST_NS)
            for at in (low + np.flatnonzero(slow)).tolist():
                self._tell(key, int(answered.row[at]), int(answered.asked_ns[at]), int(latency[at]), counts)

    def _slow(self, counts: Ints, bucket: Ints) -> Ints:
        """Which are slow, by their buckets."""
        seen = int(counts.sum())
        if seen < LEAST_SEEN:
            return np.zeros(len(bucket), np.bool_)
        up_to = np.cumsum(counts)
        far = bucket >= _median(up_to) + round(STEPS * np.log2(TIMES))
        seldom = (seen - np.concatenate([[0], up_to])[bucket]) * SELDOM <= seen
        slow: Ints = far & seldom
        return slow

    def _tell(self, key: tuple[int, int], row: int, asked_ns: int, latency: int, counts: Ints) -> None:
        """What was asked while a slow one was on its way is slow for the same reason."""
        stall = self._stalls.of(key)
        if asked_ns < stall.until and stall.case is not None:
            stall.count += 1
            stall.until = max(stall.until, asked_ns + latency)
            stall.case.retell(f"{stall.words}; {stall.count:,} more waited behind it")
            return
        usual = 2 ** (_median(np.cumsum(counts)) / STEPS)
        usually = f"{api_name(key[1])} takes {duration(round(usual))} on this connection (median)"
        stall.words = f"took {duration(latency)}, where {usually}"
        stall.case, stall.count, stall.until = self.tell(row, stall.words, "response"), 0, asked_ns + latency


def _no_counts() -> Ints:
    return np.zeros(BUCKETS, np.int64)


class _Stall:
    """A time in which a connection was slow."""

    case: Case | None = None
    words = ""
    count = 0
    until = 0


class LateFetch(BodyFinder):
    """Against the wait that a Fetch asked for."""

    explanation: ClassVar = SLOW
    apis: ClassVar = frozenset((1, 78))
    quiet_ns: ClassVar = 10_000 * MILLISECOND

    def look(self, seen: Seen) -> None:
        """A broker answers when it has `min_bytes`, and at the latest after `max_wait_ms`."""
        wait = seen.request.get("max_wait_ms")
        if not seen.answered_ns or not isinstance(wait, int):
            return
        latency = seen.answered_ns - seen.asked_ns
        if latency > max(0, wait) * MILLISECOND * 3 // 2 + LATE_NS:
            words = f"took {duration(latency)}, and asked to wait {wait} ms at most"
            self.again(seen.connection, seen.row, seen.asked_ns, words, "request.body.max_wait_ms", "such answers")


def _bucket(latency: Ints) -> Ints:
    return np.minimum((np.log2(latency) * STEPS).astype(np.int64), BUCKETS - 1)


def _median(up_to: Ints) -> int:
    """The bucket with the median."""
    return int(np.searchsorted(up_to, (up_to[-1] + 1) // 2))
