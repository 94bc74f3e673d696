"""The pass over a capture that finds what only several rows together tell.

Invariants:
  * a row is examined once, when nothing is added to it any more; in order, as far as rows are complete;
  * a body is read once for all finders, and only if one of them asked for its API;
  * a step begins where the last one ended, whoever asked for that: steps of several callers may alternate, but only one
    is done at a time;
  * damage is nobody's business here: what can't be read is not looked at.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import NEVER
from dissector.core.store import Store
from dissector.detection.kafka_detector import Connections
from dissector.exchange.decoder import ExchangeDecoder
from dissector.findings.framework.aggregation import NOTERS, AtOnce, Notes
from dissector.findings.framework.body_reader import Bodies
from dissector.findings.framework.detector import NarrowFinder, OverBodies, OverRows
from dissector.findings.framework.examination_queue import in_order, turns
from dissector.findings.framework.examined_rows import Rows
from dissector.findings.framework.open_findings import ALL, MOST, Found
from dissector.findings.registry import FINDERS
from dissector.index.exchange_table import NO_FRAME
from dissector.index.indexer import Indexer
from dissector.protocol.message import Values
from dissector.protocol.schema.api_keys import ApiKey
from dissector.transport import Retransmissions

STEP: Final = 4_096
"""Rows that are examined between two words of progress."""
KEPT: Final = 4_096
"""Connections whose client's name is kept."""
_OF_TABLE: Final = (
    "kind", "connection", "packet", "api_key", "version", "correlation_id", "client_id", "flags", "request", "response",
)  # fmt: skip


class Examination:
    """Of one capture, which may still grow; or of a part of one: then what takes several connections is not told, but
    noted, for who has the notes of all parts. Of a part all findings are kept."""

    def __init__(
        self, session: Indexer, store: Store, lookup: ExchangeDecoder, flows: Connections, resent: Retransmissions, *,
        part: bool = False,
    ) -> None:  # fmt: skip
        self._session = session
        self._lookup = lookup
        self._flows = flows
        self._resent = resent
        self.found = Found(ALL if part else MOST)
        self.notes = Notes()
        sink = self.notes if part else AtOnce(self.found)
        self._narrow = [finder(self.found, self) for finder in FINDERS if issubclass(finder, NarrowFinder)]
        looking = [*self._narrow, *(noter(self, sink) for noter in NOTERS)]
        over_rows = [each for each in looking if isinstance(each, OverRows)]
        self._over_rows = [each for each in over_rows if not each.at_end]
        self._over_ends = [each for each in over_rows if each.at_end]
        self._bodies = Bodies(store, session.frames, [each for each in looking if isinstance(each, OverBodies)])
        self._examined = 0
        """Rows that were looked at, or wait."""
        self._waiting: Int64 = np.zeros(0, np.int64)
        self._passed: Int64 = self._waiting
        """Rows that were looked at before they were complete: how their connections end is still to be looked at."""
        self.waits_from = NEVER
        self._generation = -1
        self.client = lru_cache(maxsize=KEPT)(self._client)

    def go_on(self, pending: int, *, final: bool) -> Iterator[int]:
        """Examine what has come since the last time, if it is complete; all of it once the capture is `final`. How far
        it has come, in rows. No more than `pending` rows wait."""
        self._learn()
        table = self._session.table
        while True:
            stop = min(self._examined + STEP, len(table))
            rows = np.concatenate([self._waiting, np.arange(self._examined, stop)])
            complete = np.ones(len(rows), np.bool_) if final else self._session.is_complete(rows)
            complete[:-pending] = True
            self._examined, self._waiting = stop, rows[~complete]
            self.waits_from = self._first_packet_of(self._waiting)
            found = self._rows(rows[complete])
            self._examine(found, found)
            yield self._examined
            if self._examined == len(table):
                return

    def go_on_in_order(self, pending: int, now_ns: int, *, final: bool) -> Iterator[int]:
        """The same for a portion that was read as far as it goes: what is examined is so in `order`. `now_ns` is how
        far the capture has come."""
        self._learn()
        session, upto = self._session, len(self._session.table)
        rows = np.concatenate([self._waiting, np.arange(self._examined, upto)])
        complete = np.ones(len(rows), np.bool_) if final else session.is_final(rows)
        ready, passed, self._waiting = turns(session, rows, complete, now_ns, pending)
        over = np.ones(len(self._passed), np.bool_) if final else session.is_final(self._passed)
        ended = np.concatenate([self._passed[over], np.setdiff1d(ready, passed)])
        self._passed, self._examined = np.concatenate([self._passed[~over], passed])[-pending:], upto
        self.waits_from = self._first_packet_of(self._waiting)
        ended = in_order(session, ended[session.table.response.values[ended] == NO_FRAME])
        for at in range(0, max(1, len(ready), len(ended)), STEP):
            self._examine(self._rows(ready[at : at + STEP]), self._rows(ended[at : at + STEP]))
            yield upto

    def _first_packet_of(self, rows: Int64) -> int:
        return int(self._session.table.packet.values[rows].min(initial=NEVER))

    @property
    def waiting(self) -> Int64:
        """Rows that are to be examined yet."""
        return np.concatenate([self._waiting, self._passed, np.arange(self._examined, len(self._session.table))])

    def waits(self) -> Int64:
        """Time and packet with which the requests begin that are to be examined yet, `(2, n)`."""
        rows = self._waiting[self._session.table.request.values[self._waiting] != NO_FRAME]
        times = self._session.frames.time_ns.values[self._session.table.request.values[rows]]
        return np.stack([times, self._session.table.packet.values[rows]])

    @property
    def remembers(self) -> Int64:
        """Rows of which something may be told yet."""
        return np.concatenate([self.waiting, *(finder.remembers for finder in self._narrow)])

    @property
    def looks_back(self) -> Int64:
        """Frames of rows that were examined of which it will ask once more what TCP did to them."""
        return np.concatenate([finder.looks_back for finder in self._narrow])

    def _examine(self, rows: Rows, ended: Rows) -> None:
        for each in self._over_rows:
            each.take(rows)
        for each in self._over_ends:
            each.take(ended)
        self._bodies.take(rows.asked)

    def _rows(self, row: Int64) -> Rows:
        table, frames = self._session.table, self._session.frames
        columns = [getattr(table, name).values[row].astype(np.int64) for name in _OF_TABLE]
        sides = columns[-2:]
        for values in (
            frames.time_ns.values, frames.packet.values, frames.start.values, frames.contiguous, frames.size.values,
        ):  # fmt: skip
            for side in sides:
                there = side != NO_FRAME
                found = np.zeros(len(row), np.int64)
                found[there] = values(side[there]) if callable(values) else values[side[there]]
                columns.append(found)
        return Rows(row, *columns)

    def _learn(self) -> None:
        """Names, and the versions that servers offer."""
        self._lookup.update_conversation_state()
        if self._generation == self._session.generation:
            return
        self._generation = self._session.generation
        self.client.cache_clear()

    # What finders may ask: `finder.Around`.

    def _client(self, connection: int) -> str:
        return self._lookup.ends(connection)[0].rpartition(":")[0]

    def offered(self, connection: int) -> Mapping[int, tuple[int, int]]:
        """The versions that the server of a connection said it has, there or elsewhere, by API key."""
        return self._lookup.advertised_versions(connection)

    @property
    def has_resent(self) -> bool:
        """Whether TCP sent anything again, or brought it late."""
        return len(self._resent) > 0

    def delays(self, frames: Int64) -> tuple[Int64, Int64]:
        """What TCP added to frames, by sending again and by waiting, in nanoseconds; 0 where there is no frame."""
        again, waited = np.zeros(len(frames), np.int64), np.zeros(len(frames), np.int64)
        there = frames != NO_FRAME
        table, some = self._session.frames, frames[there]
        columns = (table.direction, table.start, table.size, table.time_ns)
        again[there], waited[there] = self._resent.delays(*(column.values[some] for column in columns))
        return again, waited

    def is_offered(self, connection: int, key: int, version: int) -> bool:
        """Whether the server takes that version of an API, as far as it said."""
        offered = self.offered(connection)
        low, high = offered.get(key, (0, -1))
        return key == ApiKey.API_VERSIONS or not offered or low <= version <= high

    def closed(self, connection: int) -> tuple[int, bool]:
        """When it was closed, `NEVER` where it was not; and whether the client was the first to do so."""
        time_ns, side = self._flows.closed(connection)
        return time_ns, side == self._session.detector.client(connection)

    def first_packet(self, connection: int) -> int:
        """The number of its first packet: no other connection of the capture has that."""
        return self._flows.first_packet(connection)

    def captured(self, frame: int) -> int:
        """How many bytes of a frame the capture has."""
        return self._session.frames.captured(frame)

    def topic(self, named: Values) -> str:
        """The name of a topic that a structure names, or else its id."""
        name = named.get("name") or named.get("topic")
        return str(name or self._session.conversation_state.topic_name(str(named.get("topic_id"))))
