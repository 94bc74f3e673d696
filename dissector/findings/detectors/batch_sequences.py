"""Sequence numbers of idempotent producers (KIP-98), as observations."""

from collections import deque
from typing import ClassVar, Final, NamedTuple

import numpy as np

from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.decoded_exchange import DecodedExchange, RowPosition
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.extractor import Extractor, ObservationSink
from dissector.findings.framework.produce_batches import path_of
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

    apis: ClassVar = frozenset((ApiKey.PRODUCE,))
    max_scopes: ClassVar = 2_048

    def __init__(self, context: FindingContext, sink: ObservationSink) -> None:
        super().__init__(context, sink)
        self._holes: BoundedStates[int, _Holes] = BoundedStates(_Holes)

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Take note of gaps and unparsed stretches among the rows."""
        missing = rows.where((rows.kind == RowKind.GAP) | (rows.kind == RowKind.UNPARSED))
        starts = np.where(missing.request == NO_FRAME, missing.response_start, missing.request_start)
        columns = (missing.connection, missing.packet, starts)
        for connection, *place in zip(*(column.tolist() for column in columns), strict=True):
            self._holes.of(connection).add((place[0], place[1]), (int(rows.packet[0]), 0))

    def examine_exchange(self, exchange: DecodedExchange) -> None:
        """Observe each batch that has a sequence number."""
        batches, place = exchange.batches, exchange.position
        if not batches and not exchange.request:
            self._holes.of(exchange.connection).here(place)
        for batch in batches:
            if batch.producer_id >= 0 and batch.base_sequence >= 0:
                known = self._holes.get(exchange.connection)
                hole = NOWHERE if known is None else known.before(place)
                first, topic = batch.base_sequence, self.context.topic(batch.topic)
                end = (first + batch.records_count) % SEQUENCE_NUMBERS
                batch_seen = SequencedBatch(
                    (topic, batch.partition), first, end, exchange.request_ns, batch.positions, place, hole
                )
                self.observe((batch.producer_id, batch.producer_epoch), exchange.row, place, batch_seen)
