"""Slow: against what the connection itself is used to, and against the wait that was asked for.

Of each connection and API a histogram is kept, an eighth of an octave a step: what most of its exchanges took is known
without keeping any of them.
"""

import math
from bisect import insort
from itertools import pairwise
from typing import ClassVar, Final, NamedTuple

import numpy as np

from dissector.analysis.findings.explanation import Explanation
from dissector.analysis.findings.finder import Around, BodyFinder, RowFinder
from dissector.analysis.findings.found import Case, Telling
from dissector.analysis.findings.recurring import MILLISECOND, Recent
from dissector.analysis.findings.rows import Mask, Rows
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
FAR: Final = round(STEPS * math.log2(TIMES))
"""Buckets from the median to what is slow."""
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

    def __init__(self, found: Telling, around: Around) -> None:
        super().__init__(found, around)
        self._usual: Recent[tuple[int, int], _Usual] = Recent(_Usual)

    def take(self, rows: Rows) -> None:
        """Count all, and look at those that may be slow."""
        answered = rows.answered
        answered = answered.where(~np.isin(answered.api_key, list(WAITING)))
        if not len(answered.row):
            return
        group = answered.connection << 16 | answered.api_key
        order = np.argsort(group, kind="stable")
        answered, group = answered.where(order), group[order]
        latency = np.maximum(answered.answered_ns - answered.asked_ns, 1)
        bucket = _bucket(latency)
        edges = [0, *(np.flatnonzero(np.diff(group)) + 1).tolist(), len(group)]
        late = np.logical_or.reduceat(latency >= LEAST_NS, edges[:-1]).tolist()
        for (low, high), some in zip(pairwise(edges), late, strict=True):
            key = (int(answered.connection[low]), int(answered.api_key[low]))
            usual = self._usual.of(key)
            if not some and not usual.held:
                usual.count(bucket[low:high])
                continue
            while low < high:
                until = min(high, low + max(LEAST_SEEN, usual.seen // 8))  # few beside those that are known
                self._judge(key, usual, answered.where(slice(low, until)), latency[low:until], bucket[low:until])
                low = until

    def _judge(self, key: tuple[int, int], usual: "_Usual", rows: Rows, latency: Ints, bucket: Ints) -> None:
        """Each that is late by what is usual when it comes; those before the thirtieth by what is usual then."""
        counted = 0
        candidates = np.flatnonzero((latency >= LEAST_NS) & usual.may_be_slow(bucket)).tolist()
        thirtieth = LEAST_SEEN - 1 - usual.seen
        if 0 <= thirtieth < len(bucket) and thirtieth not in candidates:
            insort(candidates, thirtieth)
        for at in candidates:
            usual.count(bucket[counted : at + 1])
            counted = at + 1
            held = usual.held
            if latency[at] >= LEAST_NS:
                held.append(_Late(int(rows.row[at]), int(rows.asked_ns[at]), int(latency[at]), int(bucket[at])))
            if usual.seen >= LEAST_SEEN:
                usual.held = []
                for late in held:
                    if usual.is_slow(late.bucket):
                        self._tell(key, usual, late)
        usual.count(bucket[counted:])

    def _tell(self, key: tuple[int, int], usual: "_Usual", late: "_Late") -> None:
        """What was asked while a slow one was on its way is slow for the same reason."""
        if late.asked_ns < usual.until and usual.case is not None:
            usual.waited += 1
            usual.until = max(usual.until, late.asked_ns + late.latency)
            usual.case.retell(f"{usual.words}; {usual.waited:,} more waited behind it")
            return
        usually = f"{api_name(key[1])} takes {duration(usual.median)} on this connection (median)"
        usual.words = f"took {duration(late.latency)}, where {usually}"
        usual.case, usual.waited = self.tell(late.row, usual.words, "response"), 0
        usual.until = late.asked_ns + late.latency


class _Late(NamedTuple):
    row: int
    asked_ns: int
    latency: int
    bucket: int


class _Usual:
    """What is known of an API on a connection: how long its exchanges took, and a time in which it was slow."""

    __slots__ = ("_counts", "case", "held", "seen", "until", "waited", "words")

    def __init__(self) -> None:
        self._counts = np.zeros(BUCKETS, np.int64)
        self.seen = 0
        self.held: list[_Late] = []
        """Late ones that came before enough was known."""
        self.case: Case | None = None
        self.words = ""
        self.waited = 0
        self.until = 0

    def count(self, bucket: Ints) -> None:
        """So many more."""
        self._counts += np.bincount(bucket, minlength=BUCKETS)
        self.seen += len(bucket)

    def may_be_slow(self, bucket: Ints) -> Mask:
        """Which of the next ones are slow, or can't be ruled out by what is known before they come."""
        up_to, total = np.cumsum(self._counts), self.seen + len(bucket)
        as_long = self.seen - up_to + self._counts
        # The median is lowest where all that come are quicker than what was there.
        lowest = (total + 1) // 2 - len(bucket)
        middle = int(np.searchsorted(up_to, lowest)) if self.seen >= LEAST_SEEN and lowest > 0 else 0
        may: Mask = (as_long[bucket] * SELDOM <= max(LEAST_SEEN, total)) & (bucket >= middle + FAR)
        return may

    def is_slow(self, bucket: int) -> bool:
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
