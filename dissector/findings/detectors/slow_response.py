"""Responses that are slow: compared with the others of their API and connection, or, to a Fetch, with `max_wait_ms`.

A histogram is kept for each connection and API, with steps of an eighth of an octave: the median latency is known
without keeping exchanges.
"""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import ClassVar, Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.columns import tuples
from dissector.core.finding import Severity
from dissector.core.text import duration
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.decoded_exchange import DecodedExchange
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.fetched_partitions import FetchedPartitions
from dissector.findings.framework.open_findings import FindingSink, OpenFinding
from dissector.findings.framework.recurrence import MILLISECOND, BoundedStates
from dissector.protocol.schema.api_groups import WAITING
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api_name

LEAST_NS: Final = 50 * MILLISECOND
"""A faster response is never slow."""
TIMES: Final = 10
"""A response is slow from this many times the median."""
LEAST_SEEN: Final = 30
"""Exchanges of a connection and an API before any of them is reported."""
SELDOM: Final = 20
"""At most one in this many is slow: if more are, that is normal for the connection."""
STEPS: Final = 8
"""Buckets of an octave."""
BUCKETS: Final = 44 * STEPS
FAR: Final = round(STEPS * math.log2(TIMES))
"""Buckets from the median to a slow response."""
SLOW: Final = Explanation(
    "slow",
    "Slow response",
    Severity.WARNING,
    "The response took far longer than this API usually does on this connection: ten times the median, and longer "
    "than 95 % of the others. Or the response to a Fetch came long after max_wait_ms.",
    "The broker's disk or its replicas were slow (acks=all waits for them), a quota delayed the response, request "
    "threads or the network thread were busy, or an earlier request on the same connection took long.",
    "Look at what else the connection had in flight, at throttle_time_ms in the response, and at the broker's request "
    "metrics (RequestQueue, Local, Remote, ResponseQueue). max.in.flight.requests.per.connection limits how many "
    "requests wait behind a slow one, and request.timeout.ms sets when the client gives up.",
)


class Slow(ConnectionDetector):
    """Finds responses that are slow by the distribution of their connection and API."""

    explanation: ClassVar = SLOW

    def __init__(self, found: FindingSink, context: FindingContext) -> None:
        super().__init__(found, context)
        self._usual: BoundedStates[tuple[int, int], _UsualLatency] = BoundedStates(_UsualLatency)

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Count all, and examine those that may be slow."""
        which = np.flatnonzero(rows.has_both & ~np.isin(rows.api_key, list(WAITING)))
        if not len(which):
            return
        group = rows.connection[which] << 16 | (rows.api_key[which] & 0xFFFF)
        order = np.argsort(group, kind="stable")
        which, group = which[order], group[order]
        row, request_ns = rows.row[which], rows.request_ns[which]
        latency = np.maximum(rows.response_ns[which] - request_ns, 1)
        times = _ExchangeTimes(row, request_ns, latency, _bucket(latency))
        edges = [0, *(np.flatnonzero(np.diff(group)) + 1).tolist(), len(group)]
        late = np.flatnonzero(latency >= LEAST_NS)
        late_edges = np.searchsorted(late, edges).tolist()
        firsts = which[edges[:-1]]
        keys = tuples(rows.connection[firsts], rows.api_key[firsts])
        buckets = times.bucket.tolist()
        for (low, high), (first, stop), key in zip(pairwise(edges), pairwise(late_edges), keys, strict=True):
            usual = self._usual.of(key)
            if (first < stop or usual.early) and usual.seen + high - low >= LEAST_SEEN:
                for slow in usual.slow(times.part(low, high)):
                    self._report_slow(key, usual, slow)
                continue
            if first < stop:
                usual.early += times.chosen(late[first:stop])
            usual.count(buckets[low:high])

    @property
    def revisable_rows(self) -> Int64:
        """Late exchanges from before the usual latency is known."""
        return np.array([late.row for usual in self._usual.values() for late in usual.early], np.int64)

    def _report_slow(self, key: tuple[int, int], usual: "_UsualLatency", late: "_LateExchange") -> None:
        """Report a slow response. Requests that were sent while it was in flight are slow for the same reason."""
        if late.request_ns < usual.until and usual.finding is not None:
            usual.waited += 1
            usual.until = max(usual.until, late.request_ns + late.latency)
            usual.finding.update(f"{usual.words}; {usual.waited:,} more waited behind it")
            return
        usually = f"{api_name(key[1])} takes {duration(usual.median)} on this connection (median)"
        usual.words = f"took {duration(late.latency)}; {usually}"
        usual.finding, usual.waited = self.report(late.row, usual.words, "response"), 0
        usual.until = late.request_ns + late.latency


class _LateExchange(NamedTuple):
    row: int
    request_ns: int
    latency: int
    bucket: int


class _ExchangeTimes(NamedTuple):
    """Successive exchanges of an API on a connection, as columns of `_LateExchange`."""

    row: Int64
    request_ns: Int64
    latency: Int64
    bucket: Int64

    def part(self, low: int, high: int) -> "_ExchangeTimes":
        """Return those from `low` to before `high`."""
        return _ExchangeTimes(*(column[low:high] for column in self))

    def chosen(self, at: Int64) -> list[_LateExchange]:
        """Return those at these positions."""
        return list(map(_LateExchange, *(column[at].tolist() for column in self)))


class _UsualLatency:
    """Latencies of an API on a connection, and the newest period in which it was slow."""

    __slots__ = ("_few", "_histogram", "early", "finding", "seen", "until", "waited", "words")

    def __init__(self) -> None:
        self._few: list[int] = []
        """The buckets of the first exchanges, until there is a histogram: most connections are too short for one."""
        self._histogram: Int64 | None = None
        self.seen = 0
        self.early: list[_LateExchange] = []
        """Late exchanges among the first `LEAST_SEEN`."""
        self.finding: OpenFinding | None = None
        self.words = ""
        self.waited = 0
        self.until = 0

    def count(self, bucket: Int64 | list[int]) -> None:
        """Count exchanges by their buckets."""
        self.seen += len(bucket)
        if self.seen <= LEAST_SEEN and self._histogram is None:
            self._few += bucket if isinstance(bucket, list) else bucket.tolist()
        else:
            counts = self._counts
            counts += np.bincount(bucket, minlength=BUCKETS)

    @property
    def _counts(self) -> Int64:
        """How many exchanges each bucket has."""
        if self._histogram is None:
            self._histogram = np.bincount(np.array(self._few, np.int64), minlength=BUCKETS)
            self._few = []
        return self._histogram

    def slow(self, times: _ExchangeTimes) -> Iterator[_LateExchange]:
        """Count exchanges, at least as many as `LEAST_SEEN` lacks, and yield the slow ones, each judged by those before
        it, and the first ones by the first `LEAST_SEEN`. The caller reports each before it takes the next."""
        start = max(0, LEAST_SEEN - self.seen)
        if start:
            first = times.part(0, start)
            early, self.early = self.early, []
            self.count(first.bucket)
            least = self._middle + FAR
            late = np.flatnonzero((first.latency >= LEAST_NS) & (first.bucket >= least))
            yield from (each for each in early + first.chosen(late) if self._is_slow(each.bucket))
        while start < len(times.row):
            some = times.part(start, start + self.seen)  # few at a time: `_may_be_slow` is sharper then
            start += len(some.row)
            yield from self._among(some)

    def _among(self, times: _ExchangeTimes) -> Iterator[_LateExchange]:
        counted = 0
        for at in np.flatnonzero((times.latency >= LEAST_NS) & self._may_be_slow(times.bucket)).tolist():
            self.count(times.bucket[counted : at + 1])
            counted = at + 1
            if self._is_slow(int(times.bucket[at])):
                yield from times.chosen(np.array([at]))
        self.count(times.bucket[counted:])

    def _may_be_slow(self, bucket: Int64) -> Bool:
        """Return which of these may be slow, in the best case that all others of them are quicker."""
        seen = self.seen + 1 + np.arange(len(bucket))
        up_to = np.cumsum(self._counts)
        as_long = self.seen - up_to + self._counts
        quicker = (up_to + np.cumsum(np.bincount(bucket, minlength=BUCKETS)))[np.maximum(bucket - FAR, 0)]
        may: Bool = ((as_long[bucket] + 1) * SELDOM <= seen) & (2 * quicker >= seen)
        return may

    def _is_slow(self, bucket: int) -> bool:
        """Return whether a latency is far from the median, and rare."""
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


LATE_NS: Final = 200 * MILLISECOND
"""Delay past the wait that a Fetch allows."""


class LateFetch(ConnectionDetector):
    """Finds responses that are later than their Fetch allows."""

    explanation: ClassVar = SLOW
    apis: ClassVar = frozenset((ApiKey.FETCH, ApiKey.SHARE_FETCH))
    quiet_ns: ClassVar = 10_000 * MILLISECOND

    examines_fetches: ClassVar = True

    def __init__(self, found: FindingSink, context: FindingContext) -> None:
        super().__init__(found, context)
        self._may_be_late = np.zeros(0, np.int64)
        """The rows with a Fetch that came last, without those that surely are in time."""

    def examine_fetches(self, fetched: FetchedPartitions) -> None:
        """Look for those that may be late."""
        exchanges, wait = fetched.exchanges, fetched.max_wait_ms
        latency = exchanges.response_ns - exchanges.request_ns
        allowed = np.maximum(np.where(wait.is_there, wait.values, 0), 0) * MILLISECOND * 3 // 2 + LATE_NS
        self._may_be_late = exchanges.row[latency > allowed]

    def needed(self, rows: ExaminedRows, _is_clean: Bool) -> Bool:
        """Only those that may be late."""
        is_late = rows.response_ns - rows.request_ns > LATE_NS
        needed: Bool = is_late & ((rows.api_key != ApiKey.FETCH) | np.isin(rows.row, self._may_be_late))
        return needed

    def examine_exchange(self, exchange: DecodedExchange) -> None:
        """Compare the latency with `max_wait_ms`: a broker responds once it has `min_bytes`, or after that time."""
        latency = exchange.response_ns - exchange.request_ns
        if not exchange.response_ns or latency <= LATE_NS:
            return
        wait = exchange.request.get("max_wait_ms")
        if isinstance(wait, int) and latency > max(0, wait) * MILLISECOND * 3 // 2 + LATE_NS:
            words = f"took {duration(latency)}, although max_wait_ms is {wait:,}"
            self.report_repeated(
                exchange.connection,
                exchange.row,
                exchange.request_ns,
                words,
                "request.body.max_wait_ms",
                "such responses",
            )
