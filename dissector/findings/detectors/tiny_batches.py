"""Producers that send many tiny batches."""

from typing import ClassVar, Final

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.open_findings import FindingSink
from dissector.findings.framework.produce_batches import ProduceBatches
from dissector.findings.framework.recurrence import SECOND, BoundedStates, Burst

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
        "A producer sent fifty or more Produce requests in quick succession, whose batches had one or two records "
        "each.",
        "With linger.ms=0 (the default before Kafka 4.0) a producer sends records at once. One that flushes or waits "
        "for the response after each record does so with any setting. Records spread over many partitions also make "
        "small batches.",
        "Set linger.ms to 5 or more so that batches fill up to batch.size, do not call flush() or wait after each "
        "record, and compress. Each request costs the broker about the same, however little it carries.",
    )
    examines_batches: ClassVar = True

    def __init__(self, found: FindingSink, context: FindingContext) -> None:
        super().__init__(found, context)
        self._bursts: BoundedStates[int, Burst] = BoundedStates(Burst)

    def examine_batches(self, batches: ProduceBatches) -> None:
        """Count requests with tiny batches only. Any other ends the burst."""
        requests = batches.requests
        most = np.zeros(len(requests.row), np.int64)
        np.maximum.at(most, batches.columns.at, batches.columns.records_count)
        is_tiny = (most > 0) & (most <= FEW)
        counts = is_tiny | _follows(requests.connection, is_tiny)
        columns = requests.connection, requests.row, requests.request_ns, is_tiny
        for connection, row, time_ns, tiny in zip(*(column[counts].tolist() for column in columns), strict=True):
            if not tiny:
                if (ended := self._bursts.get(connection)) is not None:
                    ended.end()
                continue
            burst = self._bursts.of(connection)
            if burst.is_on(time_ns, MANY, SPAN_NS):
                words = f"{burst.count:,} Produce requests with batches of at most {FEW} records"
                self.report_burst(burst, row, time_ns, words, "request.body.topic_data")


def _follows(connection: Int64, is_tiny: Bool) -> Bool:
    """Which requests are the first of their connection, or come behind a tiny one of it: others end no burst."""
    order = np.argsort(connection, kind="stable")
    follows = np.ones(len(order), np.bool_)
    is_same = connection[order[1:]] == connection[order[:-1]]
    follows[order[1:]] = ~is_same | is_tiny[order[:-1]]
    return follows
