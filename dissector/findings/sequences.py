"""Sequence numbers of idempotent producers (KIP-98): each batch of a partition begins where the one before it ended."""

from collections import deque
from typing import ClassVar, Final, NamedTuple

import numpy as np

from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.finder import Around
from dissector.findings.found import Telling
from dissector.findings.noting import ONE, BodyNoter, Maker, RowNoter, Scope, Sink
from dissector.findings.produce import path_of
from dissector.findings.recurring import SECOND, Recent
from dissector.findings.rows import Rows
from dissector.findings.seen import Place, Seen
from dissector.index.exchange_table import NO_FRAME, RowKind
from dissector.protocol.schema.api_keys import ApiKey

AROUND: Final = 1 << 31
"""Where sequence numbers begin again with 0."""
PARTITIONS: Final = 4_096
"""Of a producer that are remembered."""
Partition = tuple[str, int]
"""Topic and number."""
NOWHERE: Final[Place] = (-1, -1)


class BatchSent(NamedTuple):
    """A batch with a sequence number."""

    partition: Partition
    sequence: int
    end: int
    """The sequence number that comes next."""
    time_ns: int
    inside: tuple[int, int]
    """The places of its topic in the request, and of its partition in the topic."""
    place: Place
    hole: Place
    """Where the capture lacks something of the connection: the newest such place before it."""

    @property
    def path(self) -> str:
        """Where its sequence number stands."""
        return f"{path_of(self.inside)}.base_sequence"


class _Holes:
    """What the capture lacks of a connection."""

    def __init__(self) -> None:
        self._ahead: deque[Place] = deque()
        self._newest = NOWHERE

    def add(self, place: Place, now: Place) -> None:
        """It lacks something there; nobody asks about what comes before `now` any more."""
        self.before(now)
        self._ahead.append(place)

    def before(self, place: Place) -> Place:
        """The newest before a place; places that are asked for go up."""
        while self._ahead and self._ahead[0] < place:
            self._newest = self._ahead.popleft()
        return self._newest

    def here(self, place: Place) -> None:
        """Something is lacking right where one asks."""
        self.before(place)
        self._newest = place


class BatchNoter(RowNoter, BodyNoter):
    """Batches by producer, and what stands between them on their connection."""

    apis: ClassVar = frozenset((ApiKey.PRODUCE,))
    scopes: ClassVar = 2_048

    def __init__(self, around: Around, sink: Sink) -> None:
        super().__init__(around, sink)
        self._holes: Recent[int, _Holes] = Recent(_Holes)

    def take(self, rows: Rows) -> None:
        """What the capture lacks of the next rows."""
        lacks = rows.where((rows.kind == RowKind.GAP) | (rows.kind == RowKind.UNPARSED))
        starts = np.where(lacks.request == NO_FRAME, lacks.answered_start, lacks.asked_start)
        columns = (lacks.connection, lacks.packet, starts)
        for connection, *place in zip(*(column.tolist() for column in columns), strict=True):
            self._holes.of(connection).add((place[0], place[1]), (int(rows.packet[0]), 0))

    def look(self, seen: Seen) -> None:
        """Each batch that has a sequence number."""
        batches, place = seen.batches, seen.place
        if not batches and not seen.request:
            self._holes.of(seen.connection).here(place)
        for batch in batches:
            if batch.producer_id >= 0 and batch.base_sequence >= 0:
                known = self._holes.get(seen.connection)
                hole = NOWHERE if known is None else known.before(place)
                first, topic = batch.base_sequence, self.around.topic(batch.topic)
                end = (first + batch.records_count) % AROUND
                note = BatchSent((topic, batch.partition), first, end, seen.asked_ns, batch.place, place, hole)
                self.note((batch.producer_id, batch.producer_epoch), seen.row, place, note)


class _Last:
    """The newest batch of a partition."""

    next = -1
    """The sequence number that comes next; -1 where nothing is known."""
    place = NOWHERE


class SequenceGap(Maker[BatchSent]):
    """A number left out."""

    noter: ClassVar = BatchNoter
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

    def __init__(self, found: Telling, scope: Scope) -> None:
        super().__init__(found, scope)
        self._last: Recent[Partition, _Last] = Recent(_Last, PARTITIONS)

    def make(self, row: int, note: BatchSent) -> None:
        """One case a producer."""
        last = self._last.of(note.partition)
        behind = (note.sequence - last.next) % AROUND
        if last.next >= 0 and 0 < behind < AROUND // 2 and note.hole <= last.place:
            words = f"begins with sequence number {note.sequence:,}, where {last.next:,} comes next"
            self.again(ONE, row, note.time_ns, words, note.path, "gaps of this producer")
        if last.next < 0 or behind < AROUND // 2:
            last.next, last.place = note.end, note.place


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
