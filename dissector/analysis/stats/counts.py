"""Counts of exchanges, and groups of counts by key. Plain values that can be merged.

Invariant: a group holds at most `MAX_KEYS` keys; later ones count under `others`, so that hostile names cost bounded
memory and no exchange is lost. As long as no group is full, merging does not depend on the order.
"""

import heapq
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

from dissector.analysis.stats.histogram import Histogram

MAX_KEYS: Final = 20_000
LATENCY_NOTE: Final = "latencies: without long polls (Fetch, …), unless a line has no others"
"""What the columns p50 to max of `stats` and of the overview are of."""
GroupKey = TypeVar("GroupKey")


class ClientSoftware(NamedTuple):
    """A client: its client id, and the software that its ApiVersions requests name (KIP-511)."""

    client_id: str | None
    software: str = ""
    software_version: str = ""


class StatsConnection(NamedTuple):
    """A TCP connection: its number in the capture, and `host:port` of its ends."""

    number: int
    client: str
    server: str


class ApiVersion(NamedTuple):
    """An API in one version; -1 and -1 for a response whose request is missing."""

    api_key: int
    version: int


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    number: int


class ApiError(NamedTuple):
    """An error of one API's responses, by its code."""

    api_key: int
    code: int


class VersionUse(NamedTuple):
    """A version of an API that a client used with a server (`host:port`)."""

    client: ClientSoftware
    server: str
    api_key: int
    version: int


@dataclass(slots=True)
class ExchangeCounts:
    """Counts of exchanges. Bytes are those of frames with their size prefix; of a topic, those of its records."""

    exchanges: int = 0
    bytes_out: int = 0
    """From the client to the server."""
    bytes_in: int = 0
    errors: int = 0
    """Exchanges whose response has an error code."""
    unanswered: int = 0
    """Without the response that the request expects."""
    latency: Histogram = field(default_factory=Histogram)
    """Of responses that do not wait on purpose."""
    waits: Histogram = field(default_factory=Histogram)
    """Latencies of APIs whose response may wait on purpose (`schema.waiting`): long polls, and others."""

    @property
    def usual_latency(self) -> Histogram:
        """The latencies without waits; the waits if there is nothing else, as for Fetch alone."""
        return self.latency if self.latency.counts else self.waits

    def add(self, out: int, back: int, error: bool, latency_ns: int | None, *, waits: bool) -> None:
        """Count one more exchange; `waits`: of an API whose response may wait on purpose."""
        self.exchanges += 1
        self.bytes_out += out
        self.bytes_in += back
        self.errors += error
        if latency_ns is not None:
            (self.waits if waits else self.latency).add(latency_ns)

    def merge(self, other: "ExchangeCounts") -> None:
        """Add the counts of another one."""
        self.exchanges += other.exchanges
        self.bytes_out += other.bytes_out
        self.bytes_in += other.bytes_in
        self.errors += other.errors
        self.unanswered += other.unanswered
        self.latency.merge(other.latency)
        self.waits.merge(other.waits)


@dataclass(slots=True)
class CountsByKey(Generic[GroupKey]):
    """Counts by key."""

    counts: dict[GroupKey, ExchangeCounts] = field(default_factory=dict)
    others: ExchangeCounts = field(default_factory=ExchangeCounts)
    """Of keys that came after the group was full."""

    def of(self, key: GroupKey) -> ExchangeCounts:
        """Return the counts of a key; zeros for a new one."""
        counts = self.counts.get(key)
        if counts is None:
            if len(self.counts) >= MAX_KEYS:
                return self.others
            counts = self.counts[key] = ExchangeCounts()
        return counts

    def add(self, key: GroupKey, counts: ExchangeCounts) -> None:
        """Add counts of a key. They are its own from then on: of a new key they are not copied."""
        if key not in self.counts and len(self.counts) < MAX_KEYS:
            self.counts[key] = counts
        else:
            self.of(key).merge(counts)

    def merge(self, other: "CountsByKey[GroupKey]") -> None:
        """Add the counts of another one."""
        for key, counts in other.counts.items():
            self.of(key).merge(counts)
        self.others.merge(other.others)

    def ranked(self, most: int | None = None) -> list[tuple[GroupKey, ExchangeCounts]]:
        """Return the keys, the ones with the most exchanges first; all or at most so many."""
        items = self.counts.items()
        return heapq.nlargest(len(items) if most is None else most, items, key=lambda item: item[1].exchanges)


class VersionSpan(NamedTuple):
    """The lowest and the highest version of an API that was used or advertised."""

    low: int
    high: int

    def merged(self, other: "VersionSpan") -> "VersionSpan":
        """The span that includes another one, too."""
        return VersionSpan(min(self.low, other.low), max(self.high, other.high))


def widen_span(ranges: dict[GroupKey, VersionSpan], key: GroupKey, versions: VersionSpan) -> None:
    """Extend the span of a key to include `versions`."""
    span = ranges.get(key)
    if span is not None:
        ranges[key] = span.merged(versions)
    elif len(ranges) < MAX_KEYS:
        ranges[key] = versions
