"""Consumers that fall behind, as far as fetches show it."""

from collections.abc import Iterator
from typing import ClassVar, Final, NamedTuple, cast

from dissector.core.finding import Severity
from dissector.core.text import counted, duration
from dissector.findings.explanation import Explanation
from dissector.findings.framework.decoded_exchange import DecodedExchange
from dissector.findings.framework.detector import Aggregator
from dissector.findings.framework.extractor import Extractor, Scope
from dissector.findings.framework.open_findings import FindingSink, OpenFinding
from dissector.findings.framework.recurrence import SECOND
from dissector.protocol.message import Values
from dissector.protocol.schema.api_keys import ApiKey

FAR: Final = 100_000
"""So many records behind are always reported."""
BEHIND: Final = 1_000
"""So many records behind are reported if they become more."""
TIMES: Final = 2
"""So many times the least that was exchange is growth."""
LEAST_NS: Final = 2 * SECOND
"""Growth is reported after so long."""


class _PartitionField(NamedTuple):
    topic: Values
    partition: Values
    path: str


class FetchLag(NamedTuple):
    """A fetch reads so many records before the end."""

    records: int
    time_ns: int
    path: str


class LagExtractor(Extractor):
    """Where fetches read, by client and partition."""

    apis: ClassVar = frozenset((ApiKey.FETCH,))

    def examine_exchange(self, exchange: DecodedExchange) -> None:
        """Partitions whose offset the request has; a broker that replicates has other names for being behind."""
        if cast(int, exchange.request.get("replica_id", -1)) >= 0 or not exchange.response.get("responses"):
            return
        wanted = {
            (self.context.topic(place.topic), place.partition.get("partition")): place.partition.get("fetch_offset")
            for place in _partition_fields(exchange.request.get("topics"), "request.body.topics")
        }
        for place in _partition_fields(exchange.response.get("responses"), "response.body.responses"):
            topic, number = self.context.topic(place.topic), place.partition.get("partition_index")
            end, offset = place.partition.get("high_watermark"), wanted.get((topic, number))
            if isinstance(end, int) and isinstance(offset, int) and isinstance(number, int) and 0 <= offset <= end:
                scope = (self.context.client(exchange.connection), topic, number)
                behind = FetchLag(end - offset, exchange.response_ns, f"{place.path}.high_watermark")
                self.observe(scope, exchange.row, exchange.position, behind)


class ConsumerLag(Aggregator[FetchLag]):
    """The end of a partition against where a client's fetches read."""

    extractor: ClassVar = LagExtractor
    explanation: ClassVar = Explanation(
        "consumer-lag",
        "A consumer is far behind, or falls behind",
        Severity.WARNING,
        "A fetch reads 100,000 records or more before the partition's high watermark; or 1,000 or more, and twice what "
        "it was seconds before.",
        "More is produced than the consumer takes in: it processes slowly between polls, fetches too little at a time, "
        "or has too few members for the partitions. Behind after a start or a reset of offsets is normal and shrinks.",
        "Look at the time between fetches: long with short answers means that the processing is slow. Else let a fetch "
        "bring more (fetch.max.bytes, max.partition.fetch.bytes, max.poll.records), or add partitions and members.",
    )

    def __init__(self, found: FindingSink, scope: Scope) -> None:
        super().__init__(found, scope)
        self._case: OpenFinding | None = None
        self._least = -1
        self._least_ns = 0
        self._times = 0

    def add(self, row: int, observed: FetchLag) -> None:
        """One finding, updated as it goes on."""
        _, topic, number = self.scope
        behind = observed.records
        if self._least < 0 or behind < self._least:
            self._least, self._least_ns = behind, observed.time_ns
        grows = behind >= BEHIND and behind >= TIMES * self._least and observed.time_ns - self._least_ns >= LEAST_NS
        if not grows and behind < FAR:
            return
        words = f"{topic}[{number}] is {counted(behind, 'record')} behind"
        self._times += 1
        if self._case is not None:
            self._case.update(f"{words}, and was so in {counted(self._times, 'fetch', 'fetches')}")
            return
        since = duration(observed.time_ns - self._least_ns)
        more = f", where it was {self._least:,} behind {since} before" if grows else ""
        self._case = self.report(row, words + more, observed.path, Severity.WARNING if grows else Severity.NOTE)


def _partition_fields(topics: object, path: str) -> Iterator[_PartitionField]:
    for at, topic in enumerate(cast(list[Values], topics or [])):
        for number, partition in enumerate(cast(list[Values], topic.get("partitions") or [])):
            yield _PartitionField(topic, partition, f"{path}[{at}].partitions[{number}]")
