"""Producers that send large batches without compression."""

import zlib
from typing import ClassVar, Final

import numpy as np

from dissector.core.finding import Severity
from dissector.core.text import size
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.open_findings import FindingSink, OpenFinding
from dissector.findings.framework.produce_batches import ProduceBatches
from dissector.findings.framework.recurrence import BoundedStates
from dissector.protocol.records.batch import HEADER

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
        for batch in np.flatnonzero((columns.codec == 0) & (columns.size >= LARGE)).tolist():
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
