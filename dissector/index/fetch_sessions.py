"""The partitions of an incremental Fetch: those of its session, not only those that it names (KIP-227).

A Fetch with epoch 0 begins a session with all of its partitions. Later ones name what is added and what is forgotten;
most name nothing. The set is computed by going back to where the session began, and forward from there.

Invariants:
  * the way back is bounded. Where it is longer, or the beginning was not captured, the set is unknown;
  * sets are never changed: one that a Fetch leaves as it was is the same object, and one that it changes shares the
    topics that it does not name. So a capture of many Fetches costs what their bytes say;
  * some sets of each connection are kept, so that rows may be asked for twice, or not in their order.
"""

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.index.exchange_table import NO_FRAME, ExchangeTable
from dissector.index.frame_table import FrameTable
from dissector.index.rows_by_connection import RowsByConnection
from dissector.protocol.message import PREFIX, Values, read, request_layout
from dissector.protocol.schema.api_keys import ApiKey

FIRST_VERSION: Final = 7
MAX_REQUESTS: Final = 5_000
"""Requests of a session that are read to compute one set."""
CACHE_SIZE: Final = 1_024
"""Connections of which sets are kept."""
MOST_KEPT: Final = 64
"""Sets that are kept of one connection."""
LONGEST_KNOWN: Final = 512
"""Bytes of a request that is read once for all its equals."""
ID_AT: Final = PREFIX + 4
"""Where the correlation id is in a request."""

_NONE: Final = np.zeros(0, np.int64)
_FETCH: Final = int(ApiKey.FETCH)
"""A plain number: to compare an array with a member of an enumeration takes four times as long."""
Partitions = Mapping[str, frozenset[int]]
"""Partitions by topic, by name or by id as the request has it."""
RowPartitions = tuple[int, Partitions | None]
"""A row, and the partitions of its session then; None where they are unknown."""
_NO_PARTITIONS: Final = frozenset[int]()
_UNKNOWN: Final[RowPartitions] = (-1, None)


def is_incremental(request: Mapping[str, Any]) -> bool:
    """Whether a Fetch continues a session."""
    epoch = request.get("session_epoch")
    return isinstance(epoch, int) and epoch > 0


class FetchSessions:
    """Computes sets for one capture."""

    def __init__(self, frames: FrameTable, table: ExchangeTable, by_connection: RowsByConnection) -> None:
        self._frames = frames
        self._table = table
        self._by_connection = by_connection
        self._generation = -1
        self._retained: dict[int, RowPartitions] = {}
        """By connection, of the last Fetch that a checkpoint left out."""
        self._kept: OrderedDict[int, _KeptSets] = OrderedDict()
        """By connection. An unknown set is kept as well: else each Fetch of a session that began before the capture
        would go all the way back again."""
        self._known_fetches: dict[int, Int64] = {}
        """By connection, the rows that are a Fetch with a session."""

    def partitions(self, row: int, generation: int, *, names_topics: bool = True) -> Partitions | None:
        """The partitions of a row that is an incremental Fetch; None where the beginning of its session is unknown.
        One that names no topics is not read where the set before it is known."""
        self._refresh(generation)
        connection = int(self._table.connection.values[row])
        kept = self._kept_sets(connection)
        last, found = max(kept.newest(row), self._retained_before(connection, row), key=lambda known: known[0])
        if last == row:
            return found
        requests: list[Values] = []
        rows = self._fetches_back(connection, row, last)
        if len(rows) > MAX_REQUESTS:
            found = None  # what is known is too long ago
        is_unchanged = not names_topics and rows == [row]
        for each in () if is_unchanged else rows[:MAX_REQUESTS]:
            requests.append(self._request(each))
            if not is_incremental(requests[-1]):
                found = {}
                break
        if found is not None:
            for request in reversed(requests):
                found = _after(found, request)
        kept.add(row, found)
        return found

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
            self._kept.clear()
            self._known_fetches.clear()

    def _kept_sets(self, connection: int) -> "_KeptSets":
        kept = self._kept.setdefault(connection, _KeptSets())
        self._kept.move_to_end(connection)
        if len(self._kept) > CACHE_SIZE:
            self._kept.popitem(last=False)
        return kept

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
        return _request(version, data[:ID_AT], data[ID_AT + 4 :], whole)


@lru_cache(maxsize=CACHE_SIZE)
def _request(version: int, before_id: bytes, behind_id: bytes, whole: int) -> Values:
    """The body of a short request, whatever its correlation id is: clients begin their sessions alike."""
    return read(before_id + bytes(4) + behind_id, request_layout(ApiKey.FETCH, version), whole).body


class _KeptSets:
    """Sets of one connection: those of the newest rows, and fewer of older ones."""

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._sets: list[Partitions | None] = []

    def newest(self, row: int) -> RowPartitions:
        """The set of a row, or the newest one from before it."""
        at = bisect_right(self._rows, row) - 1
        return (self._rows[at], self._sets[at]) if at >= 0 else _UNKNOWN

    def add(self, row: int, found: Partitions | None) -> None:
        """Keep the set of a row."""
        at = bisect_left(self._rows, row)
        self._rows.insert(at, row)
        self._sets.insert(at, found)
        if len(self._rows) > MOST_KEPT:
            del self._rows[: MOST_KEPT // 2 : 2], self._sets[: MOST_KEPT // 2 : 2]


def _after(before: Partitions, request: Values) -> Partitions:
    """The partitions of a session after a request."""
    continues = is_incremental(request)
    added = dict(_partitions_in(request.get("topics"), "partition"))
    forgotten = dict(_partitions_in(request.get("forgotten_topics_data"), None))
    if continues and not added and not forgotten:
        return before
    found = dict(before) if continues else {}
    for topic, numbers in added.items():
        found[topic] = found.get(topic, _NO_PARTITIONS) | numbers
    for topic, numbers in forgotten.items():
        found[topic] = found.get(topic, _NO_PARTITIONS) - numbers
    return {topic: numbers for topic, numbers in found.items() if numbers}


def _partitions_in(topics: object, field: str | None) -> Iterator[tuple[str, frozenset[int]]]:
    """Topics with partitions, each topic once."""
    found: dict[str, set[int]] = {}
    for topic in topics if isinstance(topics, list) else ():
        numbers = found.setdefault(str(topic.get("topic") or topic.get("topic_id")), set())
        numbers.update(each if field is None else each[field] for each in topic["partitions"])
    return ((topic, frozenset(numbers)) for topic, numbers in found.items())
