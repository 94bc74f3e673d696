"""Batches that an idempotent producer sent again."""

from typing import ClassVar

from dissector.core.finding import Severity
from dissector.findings.detectors.batch_sequences import AROUND, BatchNoter, BatchSent, Partition
from dissector.findings.detectors.sequence_gap import PARTITIONS, _Last
from dissector.findings.explanation import Explanation
from dissector.findings.framework.extractor import ONE, Maker, Scope
from dissector.findings.framework.open_findings import Telling
from dissector.findings.framework.recurrence import SECOND, Recent


class RetriedBatch(Maker[BatchSent]):
    """A batch sent again."""

    noter: ClassVar = BatchNoter
    explanation: ClassVar = Explanation(
        "retried-batch",
        "A batch was sent again",
        Severity.NOTE,
        "A batch of an idempotent producer has sequence numbers that were sent before.",
        "The first attempt was answered with a retriable error, not answered within request.timeout.ms, or its "
        "connection broke. The broker keeps one of the two.",
        "A few are normal when leaders move. Many with DUPLICATE_SEQUENCE_NUMBER, or with answers that came late, mean "
        "that request.timeout.ms is too short for the broker; retry.backoff.ms sets the pace.",
    )
    quiet_ns: ClassVar = 60 * SECOND

    def __init__(self, found: Telling, scope: Scope) -> None:
        super().__init__(found, scope)
        self._next: Recent[Partition, _Last] = Recent(_Last, PARTITIONS)

    def make(self, row: int, note: BatchSent) -> None:
        """One case a producer, until there is a minute without."""
        last = self._next.of(note.partition)
        if last.next >= 0 and (last.next - note.end) % AROUND < AROUND // 2:
            words = f"sequence numbers {note.sequence:,} to {note.end - 1:,} were sent before"
            self.again(ONE, row, note.time_ns, words, note.path, "batches sent again")
        else:
            last.next = note.end
