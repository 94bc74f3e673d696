"""The statistics of a capture, or of some of its rows: plain values that can be merged, in the units of the index.

Invariants:
  * every row is in `kinds`; every exchange is in `total` and once in each of `apis`, `clients` and `connections`;
  * `merge` is associative: parts of a capture may be counted separately.
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

    def merge(self, other: "Statistics") -> None:
        """Add the counts of another one."""
        for kind, count in other.kinds.items():
            self.kinds[kind] = self.kinds.get(kind, 0) + count
        self.total.merge(other.total)
        self.apis.merge(other.apis)
        self.clients.merge(other.clients)
        self.connections.merge(other.connections)
        self.topics.merge(other.topics)
        self.partitions.merge(other.partitions)
        self.errors.merge(other.errors)
        for server, advertised in other.advertised_versions.items():
            for key, versions in advertised.items():
                widen_span(self.advertised_versions.setdefault(server, {}), key, versions)
        self.used_versions.merge(other.used_versions)
        self.fields.merge(other.fields)
