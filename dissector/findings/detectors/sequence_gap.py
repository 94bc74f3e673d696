"""Gaps in the sequence numbers of an idempotent producer.

A batch should begin where the previous batch of its partition ended."""

from typing import ClassVar, Final

from dissector.core.finding import Severity
from dissector.findings.detectors.batch_sequences import (
    NOWHERE,
    SEQUENCE_NUMBERS,
    BatchExtractor,
    Partition,
    SequencedBatch,
)
from dissector.findings.explanation import Explanation
from dissector.findings.framework.detector import Aggregator
from dissector.findings.framework.extractor import ONE_PER_SCOPE, Scope
from dissector.findings.framework.open_findings import FindingSink
from dissector.findings.framework.recurrence import BoundedStates

PARTITIONS: Final = 4_096
"""Partitions of a producer that are remembered."""


class LastBatch:
    """The newest batch of a partition."""

    next = -1
    """The next sequence number; -1 if it is unknown."""
    place = NOWHERE


class SequenceGap(Aggregator[SequencedBatch]):
    """Finds gaps in sequence numbers."""

    extractor: ClassVar = BatchExtractor
    explanation: ClassVar = Explanation(
        "sequence-gap",
        "Gap in an idempotent producer's sequence numbers",
        Severity.WARNING,
        "A batch begins after the end of the previous one of the same producer id and epoch, topic and partition, and "
        "no bytes of the connection in between are missing from the capture.",
        "The batch in between went to another broker, or the producer gave it up (delivery.timeout.ms) while later "
        "ones were in flight, requests overtook each other, or the producer counts wrongly. The broker responds with "
        "OUT_OF_ORDER_SEQUENCE_NUMBER until the missing batch arrives.",
        "Look for the batch with the missing numbers and for its response. Keep max.in.flight.requests.per.connection "
        "at 5 or less with enable.idempotence=true: brokers remember only five batches. After giving up a batch, a "
        "producer must start a new epoch.",
    )

    def __init__(self, found: FindingSink, scope: Scope) -> None:
        super().__init__(found, scope)
        self._last: BoundedStates[Partition, LastBatch] = BoundedStates(LastBatch, PARTITIONS)

    def add(self, row: int, observed: SequencedBatch) -> None:
        """Report one finding for each producer."""
        last = self._last.of(observed.partition)
        behind = (observed.sequence - last.next) % SEQUENCE_NUMBERS
        if last.next >= 0 and 0 < behind < SEQUENCE_NUMBERS // 2 and observed.hole <= last.place:
            words = f"begins with sequence number {observed.sequence:,}, expected {last.next:,}"
            self.report_repeated(ONE_PER_SCOPE, row, observed.time_ns, words, observed.path, "gaps of this producer")
        if last.next < 0 or behind < SEQUENCE_NUMBERS // 2:
            last.next, last.place = observed.end, observed.place
