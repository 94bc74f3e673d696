"""Producers that send many tiny batches."""

from typing import ClassVar, Final

from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.decoded_exchange import Seen
from dissector.findings.framework.detector import Around, BodyFinder
from dissector.findings.framework.open_findings import Telling
from dissector.findings.framework.recurrence import SECOND, Burst, Recent
from dissector.protocol.schema.api_keys import ApiKey

FEW: Final = 2
"""Records of a batch that is tiny."""
MANY: Final = 50
SPAN_NS: Final = 5 * SECOND


class TinyBatches(BodyFinder):
    """Produce requests with next to nothing in them, one after the other."""

    explanation: ClassVar = Explanation(
        "tiny-batches",
        "Many tiny batches",
        Severity.NOTE,
        "A producer sent fifty Produce requests or more in quick succession whose batches had one or two records each.",
        "With linger.ms=0 (the default before Kafka 4.0) a producer sends what it has at once; one that flushes, or "
        "waits for the answer, after each record does so with any setting. Records spread over many partitions make "
        "for small batches.",
        "Set linger.ms to 5 or more so that batches fill up to batch.size, do not call flush() or wait for each "
        "record, and compress. Each request costs the broker about the same, whatever is in it.",
    )
    apis: ClassVar = frozenset((ApiKey.PRODUCE,))

    def __init__(self, found: Telling, around: Around) -> None:
        super().__init__(found, around)
        self._bursts: Recent[int, Burst] = Recent(Burst)

    def look(self, seen: Seen) -> None:
        """A request with larger batches ends what was begun."""
        burst, batches = self._bursts.of(seen.connection), seen.batches
        for batch in batches:
            if batch.records_count > FEW:
                burst.over()
                return
        if not batches:
            burst.over()
        elif burst.is_on(seen.asked_ns, MANY, SPAN_NS):
            words = f"{burst.count:,} Produce requests with batches of at most {FEW} records"
            self.burst(burst, seen.row, seen.asked_ns, words, "request.body.topic_data")
