"""Sequence numbers of idempotent producers (KIP-98): each batch of a partition begins where the one before it ended."""

from typing import ClassVar, Final

from dissector.analysis.findings.explanation import Explanation
from dissector.analysis.findings.finder import Around, BodyFinder, RowFinder
from dissector.analysis.findings.found import Found
from dissector.analysis.findings.produce import PRODUCE, Sent
from dissector.analysis.findings.recurring import SECOND, Recent
from dissector.analysis.findings.rows import Rows
from dissector.analysis.findings.seen import Seen
from dissector.findings import Severity
from dissector.session.table import RowKind

AROUND: Final = 1 << 31
"""Where sequence numbers begin again with 0."""
Partition = tuple[int, int, str, int]
"""Producer id and epoch, topic, partition."""


class _Last:
    """The newest batch of a partition."""

    next = -1
    """The sequence number that comes next; -1 where nothing is known."""
    row = -1


class SequenceGap(RowFinder, BodyFinder):
    """A number left out."""

    explanation: ClassVar = Explanation(
        "sequence-gap",
        "A gap in an idempotent producer's sequence numbers",
        Severity.WARNING,
        "A batch begins later than where the one before it ended, for the same producer id and epoch, topic and "
        "partition, and the capture lacks nothing of the connection in between.",
        "The batch between went to another broker or was given up (delivery.timeout.ms) while later ones were on their "
        "way, requests overtook each other, or the producer counts wrongly. The broker answers "
        "OUT_OF_ORDER_SEQUENCE_NUMBER until the missing one comes.",
        "Look for the batch with the missing numbers and how it was answered. Keep "
        "max.in.flight.requests.per.connection at 5 or fewer with enable.idempotence=true: brokers remember no more. "
        "After a batch is given up, a producer must begin a new epoch.",
    )
    apis: ClassVar = frozenset((PRODUCE,))

    def __init__(self, found: Found, around: Around) -> None:
        super().__init__(found, around)
        self._last: Recent[Partition, _Last] = Recent(_Last)
        self._holes: Recent[int, list[int]] = Recent(list)
        """Rows of what the capture lacks, by connection: the newest."""

    def take(self, rows: Rows) -> None:
        """Note what the capture lacks."""
        lacks = rows.where((rows.kind == RowKind.GAP) | (rows.kind == RowKind.UNPARSED))
        for row, connection in zip(lacks.row.tolist(), lacks.connection.tolist(), strict=True):
            self._holes.of(connection)[:] = [row]

    def look(self, seen: Seen) -> None:
        """Each batch that has a sequence number."""
        if not seen.batches and not seen.request:
            self._holes.of(seen.connection)[:] = [seen.row]
        for batch in seen.batches:
            if batch.producer_id < 0 or batch.base_sequence < 0:
                continue
            last = self._last.of(_partition(batch, self.around))
            behind = (batch.base_sequence - last.next) % AROUND
            if last.next >= 0 and 0 < behind < AROUND // 2 and not self._is_unknown(seen, last):
                words = f"begins with sequence number {batch.base_sequence:,}, where {last.next:,} comes next"
                key = (batch.producer_id, batch.producer_epoch)
                self.again(key, seen.row, seen.asked_ns, words, f"{batch.path}.base_sequence", "gaps of this producer")
            if last.next < 0 or behind < AROUND // 2:
                last.next, last.row = (batch.base_sequence + batch.records_count) % AROUND, seen.row

    def _is_unknown(self, seen: Seen, last: _Last) -> bool:
        """Whether the capture lacks something between."""
        holes = self._holes.of(seen.connection)
        return bool(holes) and holes[0] > last.row


class RetriedBatch(BodyFinder):
    """A batch sent again."""

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
    apis: ClassVar = frozenset((PRODUCE,))
    quiet_ns: ClassVar = 60 * SECOND

    def __init__(self, found: Found, around: Around) -> None:
        super().__init__(found, around)
        self._next: Recent[Partition, _Last] = Recent(_Last)

    def look(self, seen: Seen) -> None:
        """One case a producer, until there is a minute without."""
        for batch in seen.batches:
            if batch.producer_id < 0 or batch.base_sequence < 0:
                continue
            last = self._next.of(_partition(batch, self.around))
            end = (batch.base_sequence + batch.records_count) % AROUND
            if last.next >= 0 and (last.next - end) % AROUND < AROUND // 2:
                words = f"sequence numbers {batch.base_sequence:,} to {end - 1:,} were sent before"
                key = (batch.producer_id, batch.producer_epoch)
                self.again(key, seen.row, seen.asked_ns, words, f"{batch.path}.base_sequence", "batches sent again")
            else:
                last.next = end


def _partition(batch: Sent, around: Around) -> Partition:
    return batch.producer_id, batch.producer_epoch, around.topic(batch.topic), batch.partition
