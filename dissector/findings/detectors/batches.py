"""Batches that cost more than they should: many tiny ones, and large ones without compression."""

import zlib
from typing import ClassVar, Final

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.columns import tuples
from dissector.core.finding import Severity
from dissector.core.text import size
from dissector.core.times import SECOND
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.open_findings import FindingSink, OpenFinding
from dissector.findings.framework.produce_batches import ProduceBatches
from dissector.findings.framework.recurrence import BoundedStates, Burst
from dissector.protocol.records.batch import HEADER
from dissector.protocol.records.compression import CODEC_MASK

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
        for connection, row, time_ns, tiny in tuples(*(each[counts] for each in columns)):
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


LARGE: Final = 8 << 10
"""Bytes of a batch that is worth compressing."""
ENOUGH: Final = 32 << 10
"""Bytes of such batches on one connection before they are reported."""
SAMPLE: Final = 4 << 10
"""Bytes that are compressed to see whether compression helps."""
WORTH: Final = 0.7
"""Largest compressed part of a sample for which compression helps."""


class UncompressedBatches(ConnectionDetector):
    """Finds batches that compression would make much smaller."""

    explanation: ClassVar = Explanation(
        "uncompressed-batches",
        "Large batches without compression",
        Severity.NOTE,
        "A producer sent batches of 8 KiB or more without compression, and compressing a sample of them makes it "
        "smaller by a third or more.",
        "Producers do not compress unless compression.type is set.",
        "Set compression.type on the producer: lz4 and zstd cost little CPU; gzip is for consumers without them. "
        "Compression saves network, disk and replication traffic, and works better on the larger batches that "
        "linger.ms above 0 makes.",
    )
    examines_batches: ClassVar = True

    def __init__(self, found: FindingSink, context: FindingContext) -> None:
        super().__init__(found, context)
        self._plain: BoundedStates[int, _UncompressedBatches] = BoundedStates(_UncompressedBatches)

    def examine_batches(self, batches: ProduceBatches) -> None:
        """Report one finding for each connection, once there are `ENOUGH` bytes."""
        columns, requests = batches.columns, batches.requests
        for batch in np.flatnonzero((columns.attributes & CODEC_MASK == 0) & (columns.size >= LARGE)).tolist():
            at = columns.at[batch]
            plain = self._plain.of(int(requests.connection[at]))
            plain.bytes += int(columns.size[batch])
            plain.count += 1
            if plain.bytes < ENOUGH or plain.is_dense:
                continue
            words = f"{plain.count:,} batches with {size(plain.bytes)} bytes in all were sent uncompressed"
            if plain.finding is not None:
                plain.finding.update(words)
                continue
            sample = batches.records(batch)[HEADER.size : HEADER.size + SAMPLE]
            if len(zlib.compress(sample, 1)) > WORTH * len(sample):
                plain.is_dense = True  # the values are compressed already, or encrypted
            else:
                plain.finding = self.report(int(requests.row[at]), words, batches.path(batch))


class _UncompressedBatches:
    finding: OpenFinding | None = None
    bytes = 0
    count = 0
    is_dense = False
