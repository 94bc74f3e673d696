"""The pass over a capture that runs the detectors.

Invariants:
  * a row is examined once, when it is final; in order, as far as rows are complete;
  * a body is read once for all detectors, and only if one of them examines its API;
  * a step begins where the last one ended, whichever caller ran that. Only one step runs at a time;
  * damage is not examined: unreadable bytes are skipped.
"""

from collections.abc import Collection, Iterator, Sequence, Set
from typing import Final

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.batches import NEVER
from dissector.core.columns import is_in, unique
from dissector.core.store import Store
from dissector.detection.connections import Connections
from dissector.exchange.decoder import ExchangeDecoder
from dissector.findings import registry
from dissector.findings.framework.aggregation import EXTRACTORS, ImmediateAggregation, ObservationLog, finds
from dissector.findings.framework.body_reader import BodyReader
from dissector.findings.framework.capture_context import CaptureContext
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.examination_queue import examination_queue, in_start_order
from dissector.findings.framework.examiner_group import ExaminerGroup
from dissector.findings.framework.extractor import NO_API, Apis, Examiner, Extractor
from dissector.findings.framework.injected_rows import InjectedRows
from dissector.findings.framework.message_examination import MessageExamination
from dissector.findings.framework.open_findings import MAX_FINDINGS, UNLIMITED, FindingStore
from dissector.index.exchange_table import NO_FRAME
from dissector.index.indexer import Indexer
from dissector.tls.plaintext import Plaintext
from dissector.transport import Retransmissions
from dissector.transport.deliveries import Deliveries

STEP: Final = 4_096
"""Rows that are examined between two reports of progress."""


class Examination:
    """Examines a capture, which may still grow, or with `part` a capture partition. Of a partition, observations are
    collected and not aggregated, as `aggregation` needs those of all partitions, and all findings are kept."""

    def __init__(
        self, index: Indexer, store: Store, decoder: ExchangeDecoder, connections: Connections,
        retransmissions: Retransmissions, deliveries: Deliveries, plaintext: Plaintext, *, part: bool = False,
    ) -> None:  # fmt: skip
        self._index = index
        self._store = store
        self._decoder = decoder
        self._injected = InjectedRows(index.injections, decoder, connections.first_packet)
        self._context = CaptureContext(
            index, store, decoder, connections, retransmissions, deliveries, plaintext, self._injected, is_part=part
        )
        self.findings = FindingStore(UNLIMITED if part else MAX_FINDINGS)
        self.observations = ObservationLog()
        sink = self.observations if part else ImmediateAggregation(self.findings)
        self._detectors = [
            each(self.findings, self._context) for each in registry.DETECTORS if issubclass(each, ConnectionDetector)
        ]
        self._extractors = [each(self._context, sink) for each in EXTRACTORS]
        self._groups = [self._group([*self._detectors, *self._extractors])]
        self._messages = MessageExamination(index, store, decoder, self.findings)
        self._examined = 0
        """Number of rows that were examined or are pending."""
        self._pending: Int64 = np.zeros(0, np.int64)
        self._overdue: Int64 = self._pending
        """Rows that were examined before they were complete: the end of their connections is still to be examined."""

    def examine(self, most_pending: int, *, final: bool, step: int = STEP) -> Iterator[int]:
        """Examine rows that became complete since the last call; all rows once the capture is `final`. Yield the number
        of rows reached, every `step` rows. At most `most_pending` rows wait."""
        self._context.learn()
        table = self._index.table
        while True:
            stop = min(self._examined + step, len(table))
            rows = np.concatenate([self._pending, np.arange(self._examined, stop)])
            complete = np.ones(len(rows), np.bool_) if final else self._index.is_complete(rows)
            complete[:-most_pending] = True
            self._examined, self._pending = stop, rows[~complete]
            self._context.first_pending_packet = self._first_packet_of(self._pending)
            ready = rows[complete]
            self._examine(ready, ready)
            yield self._examined
            if self._examined == len(table):
                return

    def examine_in_order(self, most_pending: int, now_ns: int, *, final: bool) -> Iterator[int]:
        """Examine the rows of a micro-batch that was read to its end, in the order of `examination_queue`. `now_ns` is
        the time that the complete capture has reached."""
        self._context.learn()
        index, stop = self._index, len(self._index.table)
        rows = np.concatenate([self._pending, np.arange(self._examined, stop)])
        complete = np.ones(len(rows), np.bool_) if final else index.is_final(rows)
        ready, overdue, self._pending = examination_queue(index, rows, complete, now_ns, most_pending)
        done = np.ones(len(self._overdue), np.bool_) if final else index.is_final(self._overdue)
        ended = np.concatenate([self._overdue[done], np.sort(ready[~is_in(ready, overdue)])])
        self._overdue, self._examined = np.concatenate([self._overdue[~done], overdue])[-most_pending:], stop
        self._context.first_pending_packet = self._first_packet_of(self._pending)
        ended = in_start_order(index, ended[index.table.response.values[ended] == NO_FRAME])
        for at in range(0, max(1, len(ready), len(ended)), STEP):
            self._examine(ready[at : at + STEP], ended[at : at + STEP])
            yield stop

    def end(self) -> None:
        """Forget what detectors remember, which is much, once all rows of a whole capture are examined."""
        if not self._context.is_part:
            self._detectors, self._extractors, self._groups = [], [], []
            self._context.client.cache_clear()

    def retain(self, connections: Set[int]) -> None:
        """Get ready for a checkpoint: of other connections than these all rows are examined, and no more follow."""
        for each in (*self._detectors, *self._extractors):
            each.retain(connections)

    def _first_packet_of(self, rows: Int64) -> int:
        return int(self._index.table.packet.values[rows].min(initial=NEVER))

    @property
    def pending_rows(self) -> Int64:
        """Rows not examined yet."""
        return np.concatenate([self._pending, self._overdue, np.arange(self._examined, len(self._index.table))])

    def pending_requests(self) -> Int64:
        """Return time and first packet of the requests not examined yet, `(2, n)`."""
        rows = self._pending[self._index.table.request.values[self._pending] != NO_FRAME]
        times = self._index.frames.time_ns.values[self._index.table.request.values[rows]]
        return np.stack([times, self._index.table.packet.values[rows]])

    @property
    def revisable_rows(self) -> Int64:
        """Rows about which detectors may still report findings."""
        return np.concatenate([self.pending_rows, *(each.revisable_rows for each in self._detectors)])

    @property
    def rechecked_frames(self) -> Int64:
        """Frames of examined rows whose retransmissions will be looked up again."""
        return np.concatenate([each.rechecked_frames for each in self._detectors])

    def limit_to(self, rows: Int64, codes: Collection[str] | None = None) -> None:
        """Examine only what the findings of these rows need, before anything is examined: the rows, by the detectors of
        one message; their connections, as others tell a `ConnectionDetector` nothing, by the detectors that examine
        such rows; and what the extractors need that may observe one of them. Detectors then forget less, as they
        remember a bounded number of connections. With `codes` only these cross-message findings are found, and they
        count nothing of other connections than those of the rows."""
        self._context.learn()
        connections = np.zeros(int(self._index.table.connection.values.max(initial=-1)) + 1, np.bool_)
        connections[self._index.table.connection.values[rows]] = True
        apis = frozenset(unique(self._index.table.api_key.values[rows].astype(np.int64)).tolist())
        asked = [each for each in self._detectors if codes is None or each.explanation.code in codes]
        of_rows = [each for each in asked if each.examines_any_row or each.examined_apis & apis]
        detectors = self._group(of_rows, connections=connections)
        needed: dict[Extractor, Apis] = dict.fromkeys(
            (each for each in self._extractors if codes is None or finds(type(each), codes)), NO_API
        )
        for at in range(0, len(rows), STEP):
            some = self._context.columns(rows[at : at + STEP])
            is_clean = detectors.bodies.clean(some)
            for extractor, before in needed.items():
                more = None if before is None else extractor.needed_apis(some, is_clean)
                needed[extractor] = None if before is None or more is None else before | more
        found = [each for each, of_each in needed.items() if of_each != NO_API]
        of_some = [each for each in found if needed[each] is not None]
        of_all = [each for each in found if needed[each] is None]
        apis = NO_API.union(*(of_each for of_each in needed.values() if of_each is not None))
        if codes is None:
            self._groups = [detectors, self._group(of_some, apis=apis), self._group(of_all)]
        else:
            self._groups = [detectors, self._group(found, connections=connections)]
        self._messages.limit_to(rows if codes is None else rows[:0])

    def _group(
        self, examiners: Sequence[Examiner], *, connections: Bool | None = None, apis: Apis = None
    ) -> ExaminerGroup:
        bodies = BodyReader(self._index, self._store, examiners, self._context.topic)
        return ExaminerGroup(examiners, bodies, self._injected, connections=connections, apis=apis)

    def _examine(self, rows: Int64, ended: Int64) -> None:
        """Examine rows; `ended` are those whose connection's end is known."""
        for group in self._groups:
            some = self._context.columns(group.rows(self._index.table, rows))
            group.examine(some, some if ended is rows else self._context.columns(group.rows(self._index.table, ended)))
        self._context.forget_step()
        left_alone = rows if not self._index.injections else self._injected.left_alone(self._context.columns(rows)).row
        self._messages.examine(left_alone)
