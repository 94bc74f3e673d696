"""Batches that an idempotent producer sent again."""

from typing import ClassVar

from dissector.core.finding import Severity
from dissector.findings.detectors.batch_sequences import SEQUENCE_NUMBERS, BatchExtractor, Partition, SequencedBatch
from dissector.findings.detectors.sequence_gap import PARTITIONS, LastBatch
from dissector.findings.explanation import Explanation
from dissector.findings.framework.detector import Aggregator
from dissector.findings.framework.extractor import ONE_PER_SCOPE, Scope
from dissector.findings.framework.open_findings import FindingSink
from dissector.findings.framework.recurrence import SECOND, BoundedStates


class RetriedBatch(Aggregator[SequencedBatch]):
    """Finds batches that were sent again."""

    extractor: ClassVar = BatchExtractor
    explanation: ClassVar = Explanation(
        "retried-batch",
        "Batch sent again",
        Severity.NOTE,
        "A batch of an idempotent producer has sequence numbers that the producer had sent before.",
        "The first attempt got a retriable error or no response within request.timeout.ms, or its connection broke. "
        "The broker keeps one of the two.",
        "A few are normal when leaders move. Many of them with DUPLICATE_SEQUENCE_NUMBER, or with late responses, "
        "mean that request.timeout.ms is too short for the broker. retry.backoff.ms sets the pace of retries.",
    )
    quiet_ns: ClassVar = 60 * SECOND

    def __init__(self, found: FindingSink, scope: Scope) -> None:
        super().__init__(found, scope)
        self._next: BoundedStates[Partition, LastBatch] = BoundedStates(LastBatch, PARTITIONS)

    def add(self, row: int, observed: SequencedBatch) -> None:
        """Report one finding for each producer. It ends after a minute without such batches."""
        last = self._next.of(observed.partition)
        if last.next >= 0 and (last.next - observed.end) % SEQUENCE_NUMBERS < SEQUENCE_NUMBERS // 2:
            words = f"sequence numbers {observed.sequence:,} to {observed.end - 1:,} were sent before"
            self.report_repeated(ONE_PER_SCOPE, row, observed.time_ns, words, observed.path, "batches sent again")
        else:
            last.next = observed.end
