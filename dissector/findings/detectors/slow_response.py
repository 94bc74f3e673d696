"""Slow: against what the connection itself is used to, and against the wait that was asked for.

Of each connection and API a histogram is kept, an eighth of an octave a step: what most of its exchanges took is known
without keeping any of them.
"""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import ClassVar, Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.finding import Severity
from dissector.core.text import duration
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.open_findings import FindingSink, OpenFinding
from dissector.findings.framework.recurrence import MILLISECOND, BoundedStates
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api_name

WAITING: Final = frozenset((
    ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.END_QUORUM_EPOCH, ApiKey.BROKER_REGISTRATION, ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_FETCH, ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER,
    ApiKey.UPDATE_RAFT_VOTER, ApiKey.STREAMS_GROUP_HEARTBEAT,
))  # fmt: skip
"""APIs whose response may wait on purpose: for records, for other members, or until a quorum has committed.

BrokerHeartbeat is not one of them: a controller responds at once, and fences a broker whose heartbeats are slow."""
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
FAR: Final = round(STEPS * math.log2(TIMES))
"""Buckets from the median to what is slow."""
SLOW: Final = Explanation(
    "slow",
    "Slow response",
    Severity.WARNING,
    "The answer took far longer than this API did on this connection until then: ten times the median, and longer than "
    "nineteen in twenty; or a Fetch came back long after the wait that it asked for.",
    "The broker's disk or its replicas were slow (acks=all waits for them), a quota held the answer back, request "
    "threads or the network thread were busy, or a request in front of it on the same connection took long.",
    "Look at what else the connection had in flight, at throttle_time_ms in the answer, and at the broker's own "
    "request times (RequestQueue, Local, Remote, ResponseQueue). max.in.flight.requests.per.connection says how many "
    "wait behind a slow one; request.timeout.ms when the client gives up.",
)


class Slow(ConnectionDetector):
    """Against the connection's own distribution."""

    explanation: ClassVar = SLOW

    def __init__(self, found: FindingSink, context: FindingContext) -> None:
        super().__init__(found, context)
        self._usual: BoundedStates[tuple[int, int], _UsualLatency] = BoundedStates(_UsualLatency)

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Count all, and look at those that may be slow."""
        which = np.flatnonzero(rows.has_both & ~np.isin(rows.api_key, list(WAITING)))
        if not len(which):
            return
        group = rows.connection[which] << 16 | (rows.api_key[which] & 0xFFFF)
        order = np.argsort(group, kind="stable")
        which, group = which[order], group[order]
        row, request_ns = rows.row[which], rows.request_ns[which]
        latency = np.maximum(rows.response_ns[which] - request_ns, 1)
        bucket = _bucket(latency)
        edges = [0, *(np.flatnonzero(np.diff(group)) + 1).tolist(), len(group)]
        late = np.logical_or.reduceat(latency >= LEAST_NS, edges[:-1]).tolist()
        for (low, high), some in zip(pairwise(edges), late, strict=True):
            key = (int(rows.connection[which[low]]), int(rows.api_key[which[low]]))
            usual = self._usual.of(key)
            if not some and not usual.held:
                usual.count(bucket[low:high])
                continue
            times = _ExchangeTimes(*(each[low:high] for each in (row, request_ns, latency, bucket)))
            for slow in usual.slow(times):
                self._tell(key, usual, slow)

    @property
    def revisable_rows(self) -> Int64:
        """Early ones, until it is known what is usual."""
        return np.array([late.row for usual in self._usual.values() for late in usual.held], np.int64)

    def _tell(self, key: tuple[int, int], usual: "_UsualLatency", late: "_LateExchange") -> None:
        """What was asked while a slow one was on its way is slow for the same reason."""
        if late.request_ns < usual.until and usual.finding is not None:
            usual.waited += 1
            usual.until = max(usual.until, late.request_ns + late.latency)
            usual.finding.update(f"{usual.words}; {usual.waited:,} more waited behind it")
            return
        usually = f"{api_name(key[1])} takes {duration(usual.median)} on this connection (median)"
        usual.words = f"took {duration(late.latency)}, where {usually}"
        usual.finding, usual.waited = self.report(late.row, usual.words, "response"), 0
        usual.until = late.request_ns + late.latency


class _LateExchange(NamedTuple):
    row: int
    request_ns: int
    latency: int
    bucket: int


class _ExchangeTimes(NamedTuple):
    """Exchanges of an API on a connection, one after the other: columns of `_LateExchange`."""

    row: Int64
    request_ns: Int64
    latency: Int64
    bucket: Int64

    def part(self, low: int, high: int) -> "_ExchangeTimes":
        """Those from `low` to before `high`."""
        return _ExchangeTimes(*(column[low:high] for column in self))

    def late(self, at: int) -> _LateExchange:
        """One of them."""
        return _LateExchange(*(int(column[at]) for column in self))


class _UsualLatency:
    """What is known of an API on a connection: how long its exchanges took, and a time in which it was slow."""

    __slots__ = ("_counts", "finding", "held", "seen", "until", "waited", "words")

    def __init__(self) -> None:
        self._counts = np.zeros(BUCKETS, np.int64)
        self.seen = 0
        self.held: list[_LateExchange] = []
        """Late ones that came before enough was known."""
        self.finding: OpenFinding | None = None
        self.words = ""
        self.waited = 0
        self.until = 0

    def count(self, bucket: Int64) -> None:
        """So many more."""
        self._counts += np.bincount(bucket, minlength=BUCKETS)
        self.seen += len(bucket)

    def slow(self, times: _ExchangeTimes) -> Iterator[_LateExchange]:
        """Those that are slow by what is usual when they come; the first ones, by what is usual when they are enough.
        The next is asked for when something was done about the one before it."""
        early = min(len(times.row), max(0, LEAST_SEEN - self.seen))
        if early:
            first = times.part(0, early)
            self.held += [first.late(at) for at in np.flatnonzero(first.latency >= LEAST_NS).tolist()]
            self.count(first.bucket)
            if self.seen == LEAST_SEEN:
                held, self.held = self.held, []
                yield from (late for late in held if self._is_slow(late.bucket))
        while early < len(times.row):
            some = times.part(early, early + self.seen)  # the fewer, the better can they be told at once
            early += len(some.row)
            yield from self._among(some)

    def _among(self, times: _ExchangeTimes) -> Iterator[_LateExchange]:
        counted = 0
        for at in np.flatnonzero((times.latency >= LEAST_NS) & self._may_be_slow(times.bucket)).tolist():
            self.count(times.bucket[counted : at + 1])
            counted = at + 1
            if self._is_slow(int(times.bucket[at])):
                yield times.late(at)
        self.count(times.bucket[counted:])

    def _may_be_slow(self, bucket: Int64) -> Bool:
        """Which of the next ones can't be ruled out: of those that come with them, all may be quicker."""
        seen = self.seen + 1 + np.arange(len(bucket))
        up_to = np.cumsum(self._counts)
        as_long = self.seen - up_to + self._counts
        quicker = (up_to + np.cumsum(np.bincount(bucket, minlength=BUCKETS)))[np.maximum(bucket - FAR, 0)]
        may: Bool = ((as_long[bucket] + 1) * SELDOM <= seen) & (2 * quicker >= seen)
        return may

    def _is_slow(self, bucket: int) -> bool:
        """Whether that is far from the median, and seldom."""
        as_long = int(self._counts[bucket:].sum())
        return as_long * SELDOM <= self.seen and bucket >= self._middle + FAR

    @property
    def _middle(self) -> int:
        """The bucket with the median."""
        return int(np.searchsorted(np.cumsum(self._counts), (self.seen + 1) // 2))

    @property
    def median(self) -> int:
        """Nanoseconds."""
        return round(2 ** (self._middle / STEPS))


def _bucket(latency: Int64) -> Int64:
    return np.minimum((np.log2(latency) * STEPS).astype(np.int64), BUCKETS - 1)
