"""The partitions of an incremental Fetch: those of its session, not only those that it names (KIP-227).

A Fetch with epoch 0 begins a session with all of its partitions. Later ones name what is added and what is forgotten;
most name nothing. The set is computed by going back to where the session began, and forward from there.

Invariants:
  * the way back is bounded. Where it is longer, or the beginning was not captured, the set is unknown;
  * each connection has one set (`SessionSet`), which is changed from Fetch to Fetch. So rows that are asked for in
    their order cost what their requests say, and nearly so do rows that are asked for twice or backward. All of a set
    is copied only where `partitions` is asked for, and only topics that changed.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.own_lock import OwnLock
from dissector.index.exchange_table import NO_FRAME, ExchangeTable, RowsByConnection
from dissector.index.frame_table import FrameTable
from dissector.index.session_set import Partitions, RowPartitions, SessionChange, SessionSet
from dissector.protocol.message import Values, read
from dissector.protocol.message_layout import REQUEST_ID, request_layout
from dissector.protocol.schema.api_keys import ApiKey

FIRST_VERSION: Final = 7
MAX_REQUESTS: Final = 5_000
"""Requests of a session that are read to compute one set."""
CACHE_SIZE: Final = 1_024
"""Connections of which sets are kept."""
MOST_READ_BACK: Final = 1 << 16
"""Partitions of requests on the way back that are kept for the way forward; the requests of others are read twice."""
LONGEST_KNOWN: Final = 512
"""Bytes of a request that is read once for all its equals."""

_NONE: Final = np.zeros(0, np.int64)
_FETCH: Final = int(ApiKey.FETCH)
"""A plain number: to compare an array with a member of an enumeration takes four times as long."""
_UNKNOWN: Final[RowPartitions] = (-1, None)


def is_incremental(request: Mapping[str, Any]) -> bool:
    """Whether a Fetch continues a session."""
    epoch = request.get("session_epoch")
    return isinstance(epoch, int) and epoch > 0


class _Request(NamedTuple):
    """What a Fetch says about its session: topics with partitions, each topic once."""

    continues: bool
    named: dict[str, set[int]]
    forgotten: dict[str, set[int]]

    @classmethod
    def of(cls, body: Values) -> "_Request":
        named, forgotten = body.get("topics"), body.get("forgotten_topics_data")
        return cls(is_incremental(body), _partitions_in(named, "partition"), _partitions_in(forgotten, None))

    @property
    def size(self) -> int:
        return sum(map(len, (*self.named.values(), *self.forgotten.values())))


class FetchSessions:
    """Computes sets for one capture."""

    def __init__(self, frames: FrameTable, table: ExchangeTable, by_connection: RowsByConnection) -> None:
        self._frames = frames
        self._table = table
        self._by_connection = by_connection
        self._moving = OwnLock()
        """Held while a set is changed and read: several threads look at rows."""
        self._generation = -1
        self._retained: dict[int, RowPartitions] = {}
        """By connection, of the last Fetch that a checkpoint left out."""
        self._sets: OrderedDict[int, SessionSet] = OrderedDict()
        """By connection."""
        self._known_fetches: dict[int, Int64] = {}
        """By connection, the rows that are a Fetch with a session."""

    def partitions(self, row: int, generation: int, *, names_topics: bool = True) -> Partitions | None:
        """The partitions of a row that is an incremental Fetch; None where the beginning of its session is unknown.
        One that names no topics is not read where the set before it is known."""
        with self._moving:
            return self._at(row, generation, names_topics=names_topics)[0].copied()

    def first_partitions(
        self, row: int, generation: int, most: int, *, names_topics: bool = True
    ) -> tuple[dict[str, Sequence[int]], int] | None:
        """Of the same the first topics, at most so many, and how many more there are. Of many partitions of a topic
        some stand for all, as in `SessionSet.first`."""
        with self._moving:
            return self._at(row, generation, names_topics=names_topics)[0].first(most)

    def changes(
        self, row: int, generation: int, *, is_first: bool, names_topics: bool
    ) -> tuple[bool, list[SessionChange]]:
        """Whether the set is another one than before, and what was added since and forgotten: since the Fetch of the
        same connection that was asked for last, unless this is the first one. An unknown set has nothing."""
        changes: list[SessionChange] = []
        with self._moving:
            found, is_another = self._at(row, generation, names_topics=names_topics, changes=changes)
            if found.topics is not None and not is_another and not is_first:
                return False, changes
            return True, [SessionChange(topic, numbers, True) for topic, numbers in (found.topics or {}).items()]

    def _at(
        self, row: int, generation: int, *, names_topics: bool = True, changes: list[SessionChange] | None = None
    ) -> tuple[SessionSet, bool]:
        """The set of a connection, as it is at a row, and whether it became that in another way than by `changes`."""
        self._refresh(generation)
        connection = int(self._table.connection.values[row])
        found = self._set(connection)
        is_another = found.go_to(row, self._retained_before(connection, row))
        if found.row == row:
            return found, is_another
        rows = self._fetches_back(connection, row, found.row)
        if not names_topics and rows == [row] and found.topics is not None:
            found.move(row)
            return found, is_another
        count, requests = self._read_back(rows)
        if count is None:
            if found.topics is None or len(rows) > MAX_REQUESTS:
                found.forget(row)  # what is known is too long ago
                return found, True
            count = len(rows)
        for at in range(count - 1, -1, -1):
            continues, named, forgotten = requests[at] or _Request.of(self._request(rows[at]))
            if not continues:
                found.begin(rows[at], named, forgotten)
                is_another = True
                continue
            changed = found.take(rows[at], named, forgotten)
            if changes is not None:
                changes += changed
        return found, is_another

    def _read_back(self, rows: list[int]) -> tuple[int | None, list[_Request | None]]:
        """Read requests, of rows in descending order, up to one that begins a session: how many these are, None without
        one; and what they say, where that is little enough to be kept until it is used."""
        requests: list[_Request | None] = []
        room = MOST_READ_BACK
        for row in rows[:MAX_REQUESTS]:
            request = _Request.of(self._request(row))
            room -= request.size
            requests.append(request if room >= 0 or not requests else None)
            if not request.continues:
                return len(requests), requests
        return None, requests

    def retain(self, connections: Int64, pending_rows: Int64, generation: int) -> Int64:
        """Get ready for a checkpoint: remember the sets of these connections before their first pending row. Return the
        rows, ascending, that have to stay."""
        self._refresh(generation)
        retained: dict[int, RowPartitions] = {}
        needed = [_NONE]
        for connection in connections.tolist():
            rows = np.array(self._fetches_back(connection, len(self._table), -1)[::-1], np.int64)
            final = int(np.argmax(np.append(np.isin(rows, pending_rows), True)))
            needed.append(rows[final:])
            if final:
                last = int(rows[final - 1])
                retained[connection] = (last, self.partitions(last, generation))
            elif connection in self._retained:
                retained[connection] = self._retained[connection]
        self._retained = retained
        self._known_fetches.clear()
        return np.sort(np.concatenate(needed))

    def _refresh(self, generation: int) -> None:
        if generation != self._generation:
            self._generation = generation
            self._sets.clear()
            self._known_fetches.clear()

    def _set(self, connection: int) -> SessionSet:
        found = self._sets.setdefault(connection, SessionSet())
        self._sets.move_to_end(connection)
        if len(self._sets) > CACHE_SIZE:
            self._sets.popitem(last=False)
        return found

    def _retained_before(self, connection: int, row: int) -> RowPartitions:
        retained = self._retained.get(connection, _UNKNOWN)
        return retained if retained[0] < row else _UNKNOWN

    def _fetches_back(self, connection: int, row: int, last: int) -> list[int]:
        """Rows of a connection that are a Fetch with a session, from `row` back to behind `last`: at most one more than
        `MAX_REQUESTS`."""
        rows = self._fetches(connection)
        first, stop = bisect_right(rows, last), bisect_right(rows, row)
        found: list[int] = rows[max(first, stop - MAX_REQUESTS - 1) : stop][::-1].tolist()
        return found

    def _fetches(self, connection: int) -> Int64:
        """Rows of a connection that are a Fetch with a session, ascending."""
        found = self._known_fetches.get(connection)
        if found is None:
            rows, table = self._by_connection.rows(connection, self._generation), self._table
            fetches = (table.api_key.values[rows] == _FETCH) & (table.version.values[rows] >= FIRST_VERSION)
            if len(self._known_fetches) == CACHE_SIZE:
                self._known_fetches.clear()
            found = self._known_fetches[connection] = rows[fetches & (table.request.values[rows] != NO_FRAME)]
        return found

    def _request(self, row: int) -> Values:
        data, whole = self._frames.read(int(self._table.request.values[row]))
        version = int(self._table.version.values[row])
        if len(data) > LONGEST_KNOWN:
            return read(data, request_layout(ApiKey.FETCH, version), whole).body
        return _request(version, data[: REQUEST_ID.start], data[REQUEST_ID.stop :], whole)


@lru_cache(maxsize=CACHE_SIZE)
def _request(version: int, before_id: bytes, behind_id: bytes, whole: int) -> Values:
    """The body of a short request, whatever its correlation id is: clients begin their sessions alike."""
    return read(before_id + bytes(4) + behind_id, request_layout(ApiKey.FETCH, version), whole).body


def _partitions_in(topics: object, field: str | None) -> dict[str, set[int]]:
    """Topics with partitions, each topic once."""
    found: dict[str, set[int]] = {}
    for topic in topics if isinstance(topics, list) else ():
        numbers = found.setdefault(str(topic.get("topic") or topic.get("topic_id")), set())
        numbers.update(each if field is None else each[field] for each in topic["partitions"])
    return found
