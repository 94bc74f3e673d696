"""Sequence numbers of idempotent producers (KIP-98): batches that leave a gap behind the last one of their partition,
and batches that are sent again."""

from collections import deque
from typing import ClassVar, Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool
from dissector.core.columns import tuples
from dissector.core.finding import Severity
from dissector.core.times import SECOND
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.decoded_exchange import RowPosition
from dissector.findings.framework.detector import Aggregator
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.extractor import NO_API, ONE_PER_SCOPE, Apis, Extractor, ObservationSink, Scope
from dissector.findings.framework.open_findings import FindingSink
from dissector.findings.framework.produce_batches import ProduceBatches, path_of
from dissector.findings.framework.recurrence import BoundedStates
from dissector.index.exchange_table import NO_FRAME, RowKind
from dissector.protocol.schema.api_keys import ApiKey

SEQUENCE_NUMBERS: Final = 1 << 31
"""Sequence numbers wrap around to 0 here."""
Partition = tuple[str, int]
"""Topic and number."""
NOWHERE: Final[RowPosition] = (-1, -1)


class SequencedBatch(NamedTuple):
    """A batch with a sequence number."""

    partition: Partition
    sequence: int
    end: int
    """The sequence number that comes next."""
    time_ns: int
    inside: tuple[int, int]
    """Index of its topic in the request, and of its partition in the topic."""
    place: RowPosition
    hole: RowPosition
    """The newest position before this batch at which the capture is missing bytes of the connection."""

    @property
    def path(self) -> str:
        """Field path of its sequence number."""
        return f"{path_of(self.inside)}.base_sequence"


class _Holes:
    """Positions at which the capture is missing bytes of a connection."""

    def __init__(self) -> None:
        self._ahead: deque[RowPosition] = deque()
        self._newest = NOWHERE

    def add(self, place: RowPosition, now: RowPosition) -> None:
        """Add a position. `before` is no longer called for positions before `now`."""
        self.before(now)
        self._ahead.append(place)

    def before(self, place: RowPosition) -> RowPosition:
        """Return the newest position before `place`. `place` must not decrease from call to call."""
        while self._ahead and self._ahead[0] < place:
            self._newest = self._ahead.popleft()
        return self._newest

    def here(self, place: RowPosition) -> None:
        """Add a position that is newer than all others."""
        self.before(place)
        self._newest = place


class BatchExtractor(Extractor):
    """Observes batches by producer, with the missing bytes between them on their connection."""

    examines_batches: ClassVar = True
    max_scopes: ClassVar = 2_048

    def __init__(self, context: FindingContext, sink: ObservationSink) -> None:
        super().__init__(context, sink)
        self._holes: BoundedStates[int, _Holes] = BoundedStates(_Holes)

    def needed_apis(self, rows: ExaminedRows, _is_clean: Bool) -> Apis:
        """All, for Produce: bytes may be missing between batches."""
        return None if (rows.api_key == ApiKey.PRODUCE).any() else NO_API

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Take note of gaps and unparsed stretches among the rows."""
        missing = rows.where((rows.kind == RowKind.GAP) | (rows.kind == RowKind.UNPARSED))
        starts = np.where(missing.request == NO_FRAME, missing.response_start, missing.request_start)
        for connection, *place in tuples(missing.connection, missing.packet, starts):
            self._holes.of(connection).add((place[0], place[1]), (int(rows.packet[0]), 0))

    def examine_batches(self, batches: ProduceBatches) -> None:
        """Observe each batch that has a sequence number."""
        requests, columns = batches.requests, batches.columns
        unread = np.flatnonzero(~batches.is_read)
        sequenced = np.flatnonzero(columns.has_sequence)
        order = np.argsort(np.concatenate([unread, columns.at[sequenced]]), kind="stable")
        steps = np.concatenate([np.full(len(unread), -1), sequenced])[order].tolist()
        some = columns.where(sequenced)
        values = tuples(*some)
        rows = requests.where(np.concatenate([unread, some.at])[order])
        columns_of_rows = rows.connection, rows.row, rows.packet, rows.request_start, rows.request_ns
        of_rows = tuples(*columns_of_rows)
        for batch, (connection, row, packet, start, time_ns) in zip(steps, of_rows, strict=True):
            place = packet, start
            if batch < 0:
                self._holes.of(connection).here(place)
                continue
            _, topic_at, partition_at, topic, partition, _, _, producer_id, epoch, first, count = next(values)
            known = self._holes.get(connection)
            hole = NOWHERE if known is None else known.before(place)
            end = (first + count) % SEQUENCE_NUMBERS
            batch_seen = SequencedBatch(
                (batches.topics[topic], partition), first, end, time_ns, (topic_at, partition_at), place, hole
            )
            self.observe((producer_id, epoch), row, place, batch_seen)


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


class RetriedBatch(Aggregator[SequencedBatch]):
    """Finds batches that were sent again."""

    extractor: ClassVar = BatchExtractor
    explanation: ClassVar = Explanation(
        "retried-batch",
        "Batch sent again",
        Severity.NOTE,
        "A batch of an idempotent producer has sequence numbers that the producer has already sent.",
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
