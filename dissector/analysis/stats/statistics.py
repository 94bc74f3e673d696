"""The statistics of a capture, or of some of its rows: plain values, mergeable, in the units of the index.

Invariants:
  * every row is in `kinds`; every exchange is in `total` and once in each of `apis`, `clients` and `connections`;
  * `merge` is associative: parts of a capture may be counted apart.
"""

from dataclasses import dataclass, field

from dissector.analysis.stats.counts import (
    ApiError,
    ApiVersion,
    ClientSoftware,
    CountsByKey,
    ExchangeCounts,
    StatsConnection,
    TopicPartition,
    VersionSpan,
    VersionUse,
    widen_span,
)
from dissector.analysis.stats.field_bytes import FieldBytes


@dataclass(slots=True)
class Statistics:
    """What was counted so far."""

    kinds: dict[str, int] = field(default_factory=dict)
    """Rows by their kind, as `Row.kind` names it; entries of Kafka's files are `entry`."""
    total: ExchangeCounts = field(default_factory=ExchangeCounts)
    apis: CountsByKey[ApiVersion] = field(default_factory=CountsByKey)
    clients: CountsByKey[ClientSoftware] = field(default_factory=CountsByKey)
    connections: CountsByKey[StatsConnection] = field(default_factory=CountsByKey)
    topics: CountsByKey[str] = field(default_factory=CountsByKey)
    """Exchanges that name a topic in a field of their own, or whose fetch session has it; bytes are those of its
    records, errors those of the topic or its partitions."""
    partitions: CountsByKey[TopicPartition] = field(default_factory=CountsByKey)
    errors: CountsByKey[ApiError] = field(default_factory=CountsByKey)
    """Exchanges with that error."""
    offers: dict[str, dict[int, VersionSpan]] = field(default_factory=dict)
    """By server and API key: what its ApiVersions responses offered."""
    uses: CountsByKey[VersionUse] = field(default_factory=CountsByKey)
    fields: FieldBytes = field(default_factory=FieldBytes)

    def merge(self, other: "Statistics") -> None:
        """Count what another has counted, too."""
        for kind, count in other.kinds.items():
            self.kinds[kind] = self.kinds.get(kind, 0) + count
        self.total.merge(other.total)
        self.apis.merge(other.apis)
        self.clients.merge(other.clients)
        self.connections.merge(other.connections)
        self.topics.merge(other.topics)
        self.partitions.merge(other.partitions)
        self.errors.merge(other.errors)
        for server, offered in other.offers.items():
            for key, versions in offered.items():
                widen_span(self.offers.setdefault(server, {}), key, versions)
        self.uses.merge(other.uses)
        self.fields.merge(other.fields)
