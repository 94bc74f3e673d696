"""Consumers that fall behind, as far as fetches show it."""

from collections.abc import Iterator
from typing import ClassVar, Final, NamedTuple, cast

from dissector.analysis.findings.explanation import Explanation
from dissector.analysis.findings.finder import Around, BodyFinder
from dissector.analysis.findings.found import Case, Found
from dissector.analysis.findings.recurring import SECOND, Recent
from dissector.analysis.findings.seen import Seen
from dissector.findings import Severity
from dissector.protocol.message import Values
from dissector.text import counted, duration

FETCH: Final = 1
FAR: Final = 100_000
"""Records behind that are told whatever comes."""
BEHIND: Final = 1_000
"""Records behind that are told where they become more."""
TIMES: Final = 2
"""So many times the least that was seen is growth."""
LEAST_NS: Final = 2 * SECOND
"""Growth is told of after so long."""


class _Lag:
    """What is known of a partition that a client reads."""

    case: Case | None = None
    least = -1
    least_ns = 0
    seen = 0


class _Place(NamedTuple):
    topic: Values
    partition: Values
    path: str


class ConsumerLag(BodyFinder):
    """The end of a partition against where a fetch reads."""

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
    apis: ClassVar = frozenset((FETCH,))

    def __init__(self, found: Found, around: Around) -> None:
        super().__init__(found, around)
        self._lags: Recent[tuple[str, str, int], _Lag] = Recent(_Lag)

    def look(self, seen: Seen) -> None:
        """Partitions whose place the request tells; a broker that replicates has other names for being behind."""
        if cast(int, seen.request.get("replica_id", -1)) >= 0 or not seen.response.get("responses"):
            return
        wanted = {
            (self.around.topic(place.topic), place.partition.get("partition")): place.partition.get("fetch_offset")
            for place in _places(seen.request.get("topics"), "request.body.topics")
        }
        for place in _places(seen.response.get("responses"), "response.body.responses"):
            topic, number = self.around.topic(place.topic), place.partition.get("partition_index")
            end, offset = place.partition.get("high_watermark"), wanted.get((topic, number))
            if isinstance(end, int) and isinstance(offset, int) and isinstance(number, int) and 0 <= offset <= end:
                self._note(seen, topic, number, end - offset, f"{place.path}.high_watermark")

    def _note(self, seen: Seen, topic: str, number: int, behind: int, path: str) -> None:
        lag = self._lags.of((self.around.client(seen.connection), topic, number))
        if lag.least < 0 or behind < lag.least:
            lag.least, lag.least_ns = behind, seen.answered_ns
        grows = behind >= BEHIND and behind >= TIMES * lag.least and seen.answered_ns - lag.least_ns >= LEAST_NS
        if lag.case is not None and (grows or behind >= FAR):
            lag.seen += 1
            often = counted(lag.seen, "fetch", "fetches")
            lag.case.retell(f"{topic}[{number}] is {counted(behind, 'record')} behind, and was so in {often}")
        elif grows or behind >= FAR:
            since = duration(seen.answered_ns - lag.least_ns)
            more = f", where it was {lag.least:,} behind {since} before" if grows else ""
            lag.seen = 1
            severity = Severity.WARNING if grows else Severity.NOTE
            lag.case = self.tell(
                seen.row, f"{topic}[{number}] is {counted(behind, 'record')} behind{more}", path, severity
            )


def _places(topics: object, path: str) -> Iterator[_Place]:
    for at, topic in enumerate(cast(list[Values], topics or [])):
        for number, partition in enumerate(cast(list[Values], topic.get("partitions") or [])):
            yield _Place(topic, partition, f"{path}[{at}].partitions[{number}]")
