"""Sequence numbers of idempotent producers (KIP-98), as observations."""

from collections import deque
from typing import ClassVar, Final, NamedTuple

import numpy as np

from dissector.findings.framework.decoded_exchange import Place, Seen
from dissector.findings.framework.detector import Around
from dissector.findings.framework.examined_rows import Rows
from dissector.findings.framework.extractor import BodyNoter, RowNoter, Sink
from dissector.findings.framework.produce_batches import path_of
from dissector.findings.framework.recurrence import Recent
from dissector.index.exchange_table import NO_FRAME, RowKind
from dissector.protocol.schema.api_keys import ApiKey

AROUND: Final = 1 << 31
"""Where sequence numbers begin again with 0."""
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
