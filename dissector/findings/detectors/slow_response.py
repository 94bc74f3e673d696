"""Responses that are slow: compared with the others of their API and connection, or, to a Fetch, with `max_wait_ms`.
Those of one broker that were slow at the same time are one finding.

A histogram is kept for each connection and API, with steps of an eighth of an octave: the median latency is known
without keeping exchanges. Which part of the latency was long, and what made it so, is in `slow_parts`.
"""

import math
from collections import deque
from collections.abc import Iterator, Set
from itertools import islice, pairwise
from typing import ClassVar, Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.columns import is_in, tuples
from dissector.core.finding import Severity
from dissector.core.text import counted, duration
from dissector.core.times import MILLISECOND
from dissector.findings.detectors.slow_parts import BROKER, LongestPart, longest_parts, slow_part
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.decoded_exchange import DecodedExchange, RowPosition
from dissector.findings.framework.detector import Aggregator
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.extractor import NO_API, Apis, Extractor, ObservationSink, Scope
from dissector.findings.framework.fetched_partitions import FetchedPartitions
from dissector.findings.framework.open_findings import FindingSink, OpenFinding
from dissector.findings.framework.recurrence import BoundedStates
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
    "than 95% of the others. Or the response to a Fetch came long after max_wait_ms. The message says which part of "
    "the latency was long. All responses that were slow at the same time, on any connection to a broker, make one "
    "finding.",
    "If the broker took long: its disk or its replicas were slow (acks=all waits for them), a quota delayed the "
    "response, request threads or the network thread were busy, or an earlier request on the same connection took "
    "long; if several connections waited, the broker may have stalled as a whole (garbage collection, a paused "
    "machine, a full disk). If the network did: TCP sent lost segments again. If a window was closed: the receiver "
    "did not read.",
    "Look at what else the connection had in flight, at throttle_time_ms in the response, and at the broker's request "
    "metrics (RequestQueue, Local, Remote, ResponseQueue). max.in.flight.requests.per.connection limits how many "
    "requests wait behind a slow one, and request.timeout.ms sets when the client gives up.",
)


LATE_NS: Final = 200 * MILLISECOND
"""Delay past the wait that a Fetch allows."""
QUIET_NS: Final = 10_000 * MILLISECOND
"""After so long without a late Fetch of a connection, the next one is a new finding."""
EPISODES: Final = 64
"""The newest slow periods of a broker that are known."""


class SlowResponse(NamedTuple):
    """A slow response, as observed."""

    connection: int
    """The number of its connection's first packet."""
    api_key: int
    request_ns: int
    end_ns: int
    is_broker: bool
    """Whether the broker took most of the time."""
    words: str


class SlowResponses(Extractor):
    """Observes responses that are slow by the distribution of their connection and API, or later than their Fetch
    allows, by broker."""

    apis: ClassVar = frozenset((ApiKey.FETCH, ApiKey.SHARE_FETCH))
    examines_fetches: ClassVar = True

    def __init__(self, context: FindingContext, sink: ObservationSink) -> None:
        super().__init__(context, sink)
        self._usual: BoundedStates[tuple[int, int], _UsualLatency] = BoundedStates(_UsualLatency)
        self._may_be_late = np.zeros(0, np.int64)
        """The rows with a Fetch that came last, without those that surely are in time."""

    def needed_apis(self, rows: ExaminedRows, is_clean: Bool) -> Apis:
        """All rows, if one of these may be slow: what is slow at the same time may be of any API."""
        return None if (rows.has_both & (rows.latency_ns >= LEAST_NS)).any() else NO_API

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Count all, and observe those that are slow."""
        which = np.flatnonzero(rows.has_both & ~np.isin(rows.api_key, list(WAITING)))
        if not len(which):
            return
        group = rows.connection[which] << 16 | (rows.api_key[which] & 0xFFFF)
        order = np.argsort(group, kind="stable")
        which, group = which[order], group[order]
        latency = np.maximum(rows.latency_ns[which], 1)
        late = np.flatnonzero(latency >= LEAST_NS)
        times = _ExchangeTimes(which, latency, _bucket(latency), rows, self.context)
        edges = [0, *(np.flatnonzero(np.diff(group)) + 1).tolist(), len(group)]
        late_edges = np.searchsorted(late, edges).tolist()
        firsts = which[edges[:-1]]
        keys = tuples(rows.connection[firsts], rows.api_key[firsts])
        buckets = times.bucket.tolist()
        early: list[tuple[_UsualLatency, Int64]] = []
        found: list[tuple[int, Scope, RowPosition, SlowResponse]] = []
        for (low, high), (first, stop), key in zip(pairwise(edges), pairwise(late_edges), keys, strict=True):
            usual = self._usual.of(key)
            if (first < stop or usual.early) and usual.seen + high - low >= LEAST_SEEN:
                found += (self._observed(key, usual, slow) for slow in usual.slow(times.part(low, high)))
                continue
            if first < stop:
                early.append((usual, late[first:stop]))
            usual.count(buckets[low:high])
        chosen = iter(times.chosen(np.concatenate([late[:0], *(at for _, at in early)])))
        for usual, at in early:
            usual.early += islice(chosen, len(at))
        for row, scope, position, slow in sorted(found):
            self.observe(scope, row, position, slow)

    def _observed(
        self, key: tuple[int, int], usual: "_UsualLatency", late: "_LateExchange"
    ) -> tuple[int, Scope, RowPosition, SlowResponse]:
        connection, api_key = key
        usually = f"{api_name(api_key)} takes {duration(usual.median)} on this connection (median)"
        part = slow_part(self.context, late.longest)
        words = f"took {duration(late.latency)}; {usually}{part.words}"
        slow = SlowResponse(
            self.context.first_packet(connection), api_key, late.request_ns, late.request_ns + late.latency,
            part.cause == BROKER, words,
        )  # fmt: skip
        return late.row, (self.context.server(connection),), late.position, slow

    def retain(self, connections: Set[int]) -> None:
        """Forget the latencies of the others: three kilobytes for each of their APIs."""
        self._usual.keep(lambda key: key[0] in connections)

    def examine_fetches(self, fetched: FetchedPartitions) -> None:
        """Look for those that may be late."""
        exchanges, wait = fetched.exchanges, fetched.max_wait_ms
        allowed = np.maximum(np.where(wait.is_there, wait.values, 0), 0) * MILLISECOND * 3 // 2 + LATE_NS
        self._may_be_late = exchanges.row[exchanges.has_both & (exchanges.wait_ns > allowed)]

    def needed(self, rows: ExaminedRows, _is_clean: Bool) -> Bool:
        """Only those that may be late."""
        is_late = rows.wait_ns > LATE_NS
        needed: Bool = is_late & ((rows.api_key != ApiKey.FETCH) | is_in(rows.row, self._may_be_late))
        return needed

    def examine_exchange(self, exchange: DecodedExchange) -> None:
        """Compare the wait with `max_wait_ms`: a broker responds once it has `min_bytes`, or after that time."""
        if not exchange.response_ns or exchange.wait_ns <= LATE_NS:
            return
        allowed = exchange.request.get("max_wait_ms")
        if isinstance(allowed, int) and exchange.wait_ns > max(0, allowed) * MILLISECOND * 3 // 2 + LATE_NS:
            words = f"took {duration(exchange.wait_ns)}, although max_wait_ms is {allowed:,}"
            slow = SlowResponse(
                self.context.first_packet(exchange.connection), exchange.api_key, exchange.request_ns,
                exchange.response_ns, True, words,
            )  # fmt: skip
            self.observe((self.context.server(exchange.connection),), exchange.row, exchange.position, slow)


class _Episode:
    """A period in which a broker was slow."""

    __slots__ = ("begin_ns", "connections", "end_ns", "finding", "is_broker", "more", "words")

    def __init__(self, first: SlowResponse, finding: OpenFinding) -> None:
        self.begin_ns, self.end_ns = first.request_ns, first.end_ns
        self.words, self.finding, self.is_broker = first.words, finding, first.is_broker
        self.connections = {first.connection}
        self.more = 0

    def add(self, slow: SlowResponse) -> None:
        self.more += 1
        if len(self.connections) < MOST_CONNECTIONS:
            self.connections.add(slow.connection)
        self.is_broker &= slow.is_broker
        connections = len(self.connections)
        if connections == 1:
            words = f"{self.more:,} more waited behind it"
        else:
            took = duration(max(self.end_ns, slow.end_ns) - min(self.begin_ns, slow.request_ns))
            was = "was" if self.more == 1 else "were"
            words = f"{self.more:,} more {was} slow within these {took}, on {counted(connections, 'connection')}"
            words += ": the broker may have stalled" if self.is_broker else ""
        self.finding.update(f"{self.words}; {words}")


MOST_CONNECTIONS: Final = 10_000
"""Connections of one period that are distinguished."""


class Slow(Aggregator[SlowResponse]):
    """Finds the periods in which a broker was slow."""

    extractor: ClassVar = SlowResponses
    explanation: ClassVar = SLOW

    def __init__(self, sink: FindingSink, scope: Scope) -> None:
        super().__init__(sink, scope)
        self._newest: BoundedStates[tuple[int, int], _Newest] = BoundedStates(_Newest)
        """By connection and API."""
        self._known: deque[_Episode] = deque(maxlen=EPISODES)

    def add(self, row: int, observed: SlowResponse) -> None:
        """Report a slow response, or add it to the period that it is in: of its own connection, as requests that were
        sent while it was in flight are slow for the same reason, or of others."""
        is_fetch = observed.api_key in SlowResponses.apis
        newest = self._newest.of((observed.connection, observed.api_key))
        quiet_ns = QUIET_NS if is_fetch else 0
        episode = newest.episode if observed.request_ns < newest.until + quiet_ns else None
        if episode is None:
            episode = next((each for each in reversed(self._known) if _overlap(each, observed)), None)
        if episode is not None:
            episode.add(observed)
        else:
            path = "request.body.max_wait_ms" if is_fetch else "response"
            episode = _Episode(observed, self.report(row, observed.words, path))
            self._known.append(episode)
        newest.episode, newest.until = episode, max(newest.until, observed.end_ns)


class _Newest:
    """The period in which a connection and API was slow last, and until when."""

    __slots__ = ("episode", "until")

    def __init__(self) -> None:
        self.episode: _Episode | None = None
        self.until = 0


def _overlap(episode: _Episode, slow: SlowResponse) -> bool:
    """Whether a response of another connection was slow at the same time as the first of a period, for most of it."""
    both = min(episode.end_ns, slow.end_ns) - max(episode.begin_ns, slow.request_ns)
    return slow.connection not in episode.connections and 2 * both > max(
        episode.end_ns - episode.begin_ns, slow.end_ns - slow.request_ns
    )


class _LateExchange(NamedTuple):
    row: int
    request_ns: int
    latency: int
    bucket: int
    position: RowPosition
    longest: LongestPart


class _ExchangeTimes(NamedTuple):
    """Successive exchanges of an API on a connection, as columns."""

    at: Int64
    """Their places among `rows`."""
    latency: Int64
    bucket: Int64
    rows: ExaminedRows
    context: FindingContext

    def part(self, low: int, high: int) -> "_ExchangeTimes":
        """Return those from `low` to before `high`."""
        some = slice(low, high)
        return self._replace(at=self.at[some], latency=self.latency[some], bucket=self.bucket[some])

    def chosen(self, at: Int64) -> list[_LateExchange]:
        """Return those at these positions."""
        places = self.at[at]
        rows = self.rows.where(places)
        columns = (rows.row, rows.request_ns, self.latency[at], self.bucket[at])
        positions = zip(rows.request_packet.tolist(), rows.request_start.tolist(), strict=True)
        parts = longest_parts(self.context, rows)
        values = zip(*(column.tolist() for column in columns), positions, parts, strict=True)
        return [_LateExchange(*each) for each in values]


class _UsualLatency:
    """Latencies of an API on a connection."""

    __slots__ = ("_few", "_histogram", "early", "seen")

    def __init__(self) -> None:
        self._few: list[int] = []
        """The buckets of the first exchanges, until there is a histogram: most connections are too short for one."""
        self._histogram: Int64 | None = None
        self.seen = 0
        self.early: list[_LateExchange] = []
        """Late exchanges among the first `LEAST_SEEN`."""

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
        it, and the first ones by the first `LEAST_SEEN`."""
        start = max(0, LEAST_SEEN - self.seen)
        if start:
            first = times.part(0, start)
            early, self.early = self.early, []
            self.count(first.bucket)
            least = self._middle + FAR
            late = np.flatnonzero((first.latency >= LEAST_NS) & (first.bucket >= least))
            yield from (each for each in early if self._is_slow(each.bucket))
            if slow := [at for at in late.tolist() if self._is_slow(int(first.bucket[at]))]:
                yield from first.chosen(np.array(slow))
        while start < len(times.at):
            some = times.part(start, start + self.seen)  # few at a time: `_may_be_slow` is sharper then
            start += len(some.at)
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
