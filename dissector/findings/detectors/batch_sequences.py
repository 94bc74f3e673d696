"""Sequence numbers of idempotent producers (KIP-98), as observations."""

from collections import deque
from typing import ClassVar, Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.decoded_exchange import RowPosition
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.extractor import NO_API, Apis, Extractor, ObservationSink
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
        columns = (missing.connection, missing.packet, starts)
        for connection, *place in zip(*(column.tolist() for column in columns), strict=True):
            self._holes.of(connection).add((place[0], place[1]), (int(rows.packet[0]), 0))

    def examine_batches(self, batches: ProduceBatches) -> None:
        """Observe each batch that has a sequence number."""
        requests, columns = batches.requests, batches.columns
        unread = np.flatnonzero(~batches.is_read)
        sequenced = np.flatnonzero(columns.has_sequence)
        order = np.argsort(np.concatenate([unread, columns.at[sequenced]]), kind="stable")
        steps = np.concatenate([np.full(len(unread), -1), sequenced])[order].tolist()
        some = columns.where(sequenced)
        values = zip(*(column.tolist() for column in some), strict=True)
        rows = requests.where(np.concatenate([unread, some.at])[order])
        columns_of_rows = rows.connection, rows.row, rows.packet, rows.request_start, rows.request_ns
        of_rows = zip(*(column.tolist() for column in columns_of_rows), strict=True)
        for batch, (connection, row, packet, start, time_ns) in zip(steps, of_rows, strict=True):
            place = packet, start
            if batch < 0:
                self._holes.of(connection).here(place)
                continue
            _, topic_at, partition_at, partition, _, _, count, producer_id, epoch, first = next(values)
            known = self._holes.get(connection)
            hole = NOWHERE if known is None else known.before(place)
            topic = self.context.topic(batches.topics[batch])
            end = (first + count) % SEQUENCE_NUMBERS
            batch_seen = SequencedBatch((topic, partition), first, end, time_ns, (topic_at, partition_at), place, hole)
            self.observe((producer_id, epoch), row, place, batch_seen)
