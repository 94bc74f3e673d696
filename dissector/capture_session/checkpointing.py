"""A capture whose packets come in portions: what is settled is taken, the rest is carried on (`carried`)."""

from collections.abc import Iterator

import numpy as np

from dissector.capture_session.checkpoint import Checkpoint, checkpoint
from dissector.capture_session.examining import Examining
from dissector.capture_session.reading import Progress
from dissector.core.arrays import Bool, Int64
from dissector.core.batches import NEVER
from dissector.findings.found import Anew
from dissector.findings.order import PATIENCE_NS
from dissector.findings.seen import Place


class Carrying(Examining):
    """For who reads with `go_on`, and not to an end with `read`, but the last portion."""

    def take_settled(self) -> Int64:
        """Rows that will stay as they are, from 0 and ascending, each told once; at the end of reading, all others."""
        entries = len(self._files)
        rows = np.concatenate([self._unsettled, np.arange(self._looked_upto, len(self._session.table))])
        settled = np.ones(len(rows), np.bool_) if self._finished else self._session.is_settled(rows)
        self._unsettled, self._looked_upto = rows[~settled], len(self._session.table)
        return rows[settled] + entries

    def is_over(self, connections: Int64) -> Bool:
        """Of which of these connections nothing can come any more, `(n,)`."""
        if self._finished:
            return np.ones(len(connections), np.bool_)
        return ~np.isin(connections - 1 - self._files.count, self._transport.flows.open())

    def examine_portion(self, now_ns: int) -> Iterator[Progress]:
        """As `examine` does a part, in the order in which rows begin: portions end anywhere, and what several rows tell
        is the same. `now_ns` is the time that the capture as a whole has reached."""
        examination = self._examined(part=True)
        yield from self._examine(examination.go_on_in_order(self.bounds.pending_requests, now_ns, final=self._finished))

    def waits_from(self, now_ns: int) -> int:
        """The packet of the first request of which notes may come yet, `NEVER` where none is there; those that have
        waited for longer than `PATIENCE_NS` do not count."""
        if self._finished:
            return NEVER
        of_rows = [] if self._examination is None else [self._examination.waits()]
        time_ns, packet = np.concatenate([*of_rows, self._splitter.waits(), self._transport.waits()], axis=1)
        return int(packet[time_ns > now_ns - PATIENCE_NS].min(initial=NEVER))

    def take_anew(self) -> list[Anew]:
        """What `examine` has found since about rows that were taken, of portions before; each is told once."""
        return [] if self._examination is None else self._examination.found.changes.take()

    def _place(self, row: int) -> Place:
        """Of a row of the index: how it is found once it is taken."""
        [place] = self.begins(np.array([row + len(self._files)]))
        return place

    def carry(self) -> bytes:
        """Put down what has not come to an end; nothing else can be done with this capture afterwards, but to close it.
        Taken up by whoever opens the packets that follow, as `carried`."""
        examination = self._examination
        untaken = np.concatenate([self._unsettled, np.arange(self._looked_upto, len(self._session.table))])
        rows = np.union1d(untaken, self._session.knowledge.waiting)
        if examination is not None:
            rows = np.union1d(rows, examination.waiting)
        connections = np.union1d(self._transport.flows.open(), self._session.table.connection.values[rows])
        rows = np.union1d(rows, self._lookup.keep(rows, connections))
        looked_back = rows[:0] if examination is None else examination.looks_back
        places = [self._session.places(rows), self._splitter.places(), self._transport.places()]
        excerpt = self._store.excerpt(*np.concatenate(places, axis=1))
        if examination is not None:
            examination.found.keep(untaken, examination.remembers, self._place)
        self._session.keep(rows, looked_back)
        return checkpoint(
            Checkpoint(
                self._store, self._transport, self._session, self._splitter, self._lookup, examination,
                self._unsettled, self._looked_upto, self.packets, self.start_ns,
            ), excerpt,
        )  # fmt: skip
