"""Producers that send many tiny batches."""

from typing import ClassVar, Final

from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.decoded_exchange import DecodedExchange
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.open_findings import FindingSink
from dissector.findings.framework.recurrence import SECOND, BoundedStates, Burst
from dissector.protocol.schema.api_keys import ApiKey

FEW: Final = 2
"""Most records of a tiny batch."""
MANY: Final = 50
SPAN_NS: Final = 5 * SECOND


class TinyBatches(ConnectionDetector):
    """Finds successive Produce requests with very few records."""

    explanation: ClassVar = Explanation(
        "tiny-batches",
        "Many tiny batches",
        Severity.NOTE,
        "A producer sent fifty Produce requests or more in quick succession whose batches had one or two records each.",
        "With linger.ms=0 (the default before Kafka 4.0) a producer sends records at once; one that flushes, or "
        "waits for the response, after each record does so with any setting. Records spread over many partitions also "
        "make small batches.",
        "Set linger.ms to 5 or more so that batches fill up to batch.size, do not call flush() or wait for each "
        "record, and compress. Each request costs the broker about the same, whatever is in it.",
    )
    apis: ClassVar = frozenset((ApiKey.PRODUCE,))

    def __init__(self, found: FindingSink, context: FindingContext) -> None:
        super().__init__(found, context)
        self._bursts: BoundedStates[int, Burst] = BoundedStates(Burst)

    def examine_exchange(self, exchange: DecodedExchange) -> None:
        """Count requests with tiny batches only. Any other ends the burst."""
        burst, batches = self._bursts.of(exchange.connection), exchange.batches
        for batch in batches:
            if batch.records_count > FEW:
                burst.end()
                return
        if not batches:
            burst.end()
        elif burst.is_on(exchange.request_ns, MANY, SPAN_NS):
            words = f"{burst.count:,} Produce requests with batches of at most {FEW} records"
            self.report_burst(burst, exchange.row, exchange.request_ns, words, "request.body.topic_data")
