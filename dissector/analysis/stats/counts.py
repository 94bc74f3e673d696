"""Counts of exchanges, groups of counts by key, and the statistics of a capture or of some of its rows.

All are plain values, in the units of the index.

Invariants:
  * a group holds at most `MAX_KEYS` keys; later ones count under `others`, so that hostile names cost bounded memory
    and no exchange is lost;
  * every row is in `Statistics.kinds`; every exchange is in `total` and once in each of `apis`, `clients` and
    `connections`.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

from dissector.analysis.stats.field_bytes import FieldBytes
from dissector.analysis.stats.histogram import Histogram
from dissector.analysis.stats.latency_parts import PartsByApi

MAX_KEYS: Final = 20_000
LATENCY_NOTE: Final = "latencies: long polls (Fetch, …) are excluded unless a row has only those"
"""What the columns p50 to max of `stats` and of the overview are of."""
GroupKey = TypeVar("GroupKey")
Merge = Callable[[Histogram, Histogram], Histogram]
"""Returns the counts of both."""


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
    """Latencies of APIs whose response may wait on purpose (`api_groups.WAITING`): long polls, and others."""

    @property
    def usual_latency(self) -> Histogram:
        """The latencies without waits; the waits if there is nothing else, as for Fetch alone."""
        return self.latency if self.latency.counts else self.waits

    def merge(self, other: "ExchangeCounts", merged: "Merge" = Histogram.merged) -> None:
        """Add the counts of another one. Histograms are not changed, as several counts may share one."""
        self.exchanges += other.exchanges
        self.bytes_out += other.bytes_out
        self.bytes_in += other.bytes_in
        self.errors += other.errors
        self.unanswered += other.unanswered
        self.latency = merged(self.latency, other.latency)
        self.waits = merged(self.waits, other.waits)


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

    def add(self, key: GroupKey, counts: ExchangeCounts, merged: "Merge" = Histogram.merged) -> None:
        """Add counts of a key. They are its own from then on: of a new key they are not copied."""
        if key not in self.counts and len(self.counts) < MAX_KEYS:
            self.counts[key] = counts
        else:
            self.of(key).merge(counts, merged)

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


@dataclass(slots=True)
class Statistics:
    """The counts so far."""

    kinds: dict[str, int] = field(default_factory=dict)
    """Rows by kind, as in `Row.kind`; entries of Kafka's files are `entry`."""
    total: ExchangeCounts = field(default_factory=ExchangeCounts)
    apis: CountsByKey[ApiVersion] = field(default_factory=CountsByKey)
    clients: CountsByKey[ClientSoftware] = field(default_factory=CountsByKey)
    connections: CountsByKey[StatsConnection] = field(default_factory=CountsByKey)
    topics: CountsByKey[str] = field(default_factory=CountsByKey)
    """Exchanges that name a topic, or whose fetch session has it. Bytes are those of its records, errors those of the
    topic or its partitions."""
    partitions: CountsByKey[TopicPartition] = field(default_factory=CountsByKey)
    errors: CountsByKey[ApiError] = field(default_factory=CountsByKey)
    """Exchanges by error."""
    advertised_versions: dict[str, dict[int, VersionSpan]] = field(default_factory=dict)
    """By server and API key, from its ApiVersions responses."""
    used_versions: CountsByKey[VersionUse] = field(default_factory=CountsByKey)
    fields: FieldBytes = field(default_factory=FieldBytes)
    parts: PartsByApi = field(default_factory=PartsByApi)
    """Where the time of exchanges goes, by API and version."""
