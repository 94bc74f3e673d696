"""The statistics of a capture, or of some of its rows: plain values, mergeable, in the units of the index.

Invariants:
  * every row is in `kinds`; every exchange is in `total` and once in each of `apis`, `clients` and `connections`;
  * `merge` is associative: parts of a capture may be counted apart.
"""

from dataclasses import dataclass, field

from dissector.analysis.stats.field_bytes import FieldBytes
from dissector.analysis.stats.tallies import (
    ApiVersion,
    Client,
    Connection,
    Error,
    Group,
    Partition,
    Tally,
    Use,
    Versions,
    widen,
)


@dataclass(slots=True)
class Statistics:
    """What was counted so far."""

    kinds: dict[str, int] = field(default_factory=dict)
    """Rows by their kind, as `Row.kind` names it; entries of Kafka's files are `entry`."""
    total: Tally = field(default_factory=Tally)
    apis: Group[ApiVersion] = field(default_factory=Group)
    clients: Group[Client] = field(default_factory=Group)
    connections: Group[Connection] = field(default_factory=Group)
    topics: Group[str] = field(default_factory=Group)
    """Exchanges that name a topic in a field of their own, or whose fetch session has it; bytes are those of its
    records, errors those of the topic or its partitions."""
    partitions: Group[Partition] = field(default_factory=Group)
    errors: Group[Error] = field(default_factory=Group)
    """Exchanges with that error."""
    offers: dict[str, dict[int, Versions]] = field(default_factory=dict)
    """By server and API key: what its ApiVersions responses offered."""
    uses: Group[Use] = field(default_factory=Group)
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
                widen(self.offers.setdefault(server, {}), key, versions)
        self.uses.merge(other.uses)
        self.fields.merge(other.fields)
