"""Consumers that fall behind, as far as Fetch exchanges show it."""

from typing import ClassVar, Final, NamedTuple

from dissector.core.columns import tuples
from dissector.core.finding import Severity
from dissector.core.text import counted, duration
from dissector.core.times import SECOND
from dissector.findings.explanation import Explanation
from dissector.findings.framework.detector import Aggregator
from dissector.findings.framework.extractor import Extractor, Scope
from dissector.findings.framework.fetched_partitions import FetchedPartitions
from dissector.findings.framework.open_findings import FindingSink, OpenFinding

FAR: Final = 100_000
"""Records of lag that are always reported."""
BEHIND: Final = 1_000
"""Records of lag that are reported if the lag grows."""
TIMES: Final = 2
"""Growth is this many times the smallest lag so far."""
LEAST_NS: Final = 2 * SECOND
"""Growth is reported once it has lasted this long."""


class FetchLag(NamedTuple):
    """How many records before the end of its partition a Fetch reads."""

    records: int
    time_ns: int
    path: str


class LagExtractor(Extractor):
    """Observes the lag of fetches by client and partition."""

    examines_fetches: ClassVar = True

    def examine_fetches(self, fetched: FetchedPartitions) -> None:
        """Observe partitions whose offset is in the request."""
        exchanges, found = fetched.exchanges, fetched.columns
        found = found.where((found.offset >= 0) & (found.offset <= found.high_watermark))
        at, behind = found.at, found.high_watermark - found.offset
        columns = (
            exchanges.row[at], exchanges.connection[at], exchanges.packet[at], exchanges.request_start[at],
            exchanges.response_ns[at], found.topic, found.partition, behind, found.topic_at, found.partition_at,
        )  # fmt: skip
        for row, connection, packet, start, time_ns, topic, number, records, topic_at, partition_at in tuples(*columns):
            path = f"response.body.responses[{topic_at}].partitions[{partition_at}].high_watermark"
            scope = self.context.client(connection), fetched.topics[topic], number
            self.observe(scope, row, (packet, start), FetchLag(records, time_ns, path))


class ConsumerLag(Aggregator[FetchLag]):
    """Compares the high watermark of a partition with the offsets that a client fetches."""

    extractor: ClassVar = LagExtractor
    explanation: ClassVar = Explanation(
        "consumer-lag",
        "Consumer is far behind or falling behind",
        Severity.WARNING,
        "A Fetch reads at least 100,000 records behind the partition's high watermark, or at least 1,000 and twice as "
        "many as a few seconds earlier.",
        "Producers write faster than the consumer reads: it processes slowly between polls, fetches too little at a "
        "time, or its group has too few members for the partitions. Lag after a start or an offset reset is normal "
        "and shrinks.",
        "Look at the time between fetches: if it is long and responses are quick, processing is slow. Otherwise fetch "
        "more at a time (fetch.max.bytes, max.partition.fetch.bytes), or add partitions and members.",
    )

    def __init__(self, found: FindingSink, scope: Scope) -> None:
        super().__init__(found, scope)
        self._finding: OpenFinding | None = None
        self._least = -1
        self._least_ns = 0
        self._times = 0

    def add(self, row: int, observed: FetchLag) -> None:
        """Report one finding for each scope, and update it."""
        _, topic, number = self.scope
        behind = observed.records
        if self._least < 0 or behind < self._least:
            self._least, self._least_ns = behind, observed.time_ns
        grows = behind >= BEHIND and behind >= TIMES * self._least and observed.time_ns - self._least_ns >= LEAST_NS
        if not grows and behind < FAR:
            return
        words = f"{topic}[{number}] is {counted(behind, 'record')} behind"
        self._times += 1
        if self._finding is not None:
            self._finding.update(f"{words}, in {counted(self._times, 'fetch', 'fetches')}")
            return
        since = duration(observed.time_ns - self._least_ns)
        more = f", up from {self._least:,} {since} before" if grows else ""
        self._finding = self.report(row, words + more, observed.path, Severity.WARNING if grows else Severity.NOTE)
