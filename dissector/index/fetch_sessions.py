"""What an incremental Fetch asks for: its session's partitions, not only those that it names (KIP-227).

A Fetch with epoch 0 begins a session with all of its partitions; later ones name what is new and what is forgotten, and
most name nothing. The set is worked out by going back to where the session began, and forward from there.

Invariant: the way back is bounded; where it is longer, or the beginning was not captured, the set is not known.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.index.exchange_table import NO_FRAME, ExchangeTable
from dissector.index.frame_table import FrameTable
from dissector.index.rows_by_connection import RowsByConnection
from dissector.protocol.message import Values, read, request_layout
from dissector.protocol.schema.api_keys import ApiKey

FIRST_VERSION: Final = 7
MOST_REQUESTS: Final = 5_000
"""How many requests of a session are read for one answer."""
KEPT: Final = 1_024
"""Connections whose last answer is remembered."""

_NONE: Final = np.zeros(0, np.int64)
Partitions = dict[str, set[int]]
"""Partitions by topic, by name or by id as the request has it."""


def is_incremental(request: Mapping[str, Any]) -> bool:
    """Whether a Fetch leans on earlier ones."""
    epoch = request.get("session_epoch")
    return isinstance(epoch, int) and epoch > 0


class FetchSessions:
    """Answers for one capture; remembers the last answer of a connection, from which the next one follows."""

    def __init__(self, frames: FrameTable, table: ExchangeTable, by_connection: RowsByConnection) -> None:
        self._frames = frames
        self._table = table
        self._by_connection = by_connection
        self._generation = -1
        self._since: dict[int, tuple[int, Partitions | None]] = {}
        """The same, of connections whose earlier rows are not there any more."""
        self._last: OrderedDict[int, tuple[int, Partitions | None]] = OrderedDict()
        """By connection: the row of the last answer, and that. That nothing is known is an answer, too: else each Fetch
        of a session that began before the capture would go all the way back again."""

    def partitions(self, number: int, generation: int) -> Partitions | None:
        """What row `number`, an incremental Fetch, asks for; None where its session's beginning is not known."""
        self._refresh(generation)
        connection = int(self._table.connection.values[number])
        last, found = self._before(connection, number)
        requests: list[Values] = []
        rows = self._fetches(connection, last, number)
        if len(rows) > MOST_REQUESTS:
            found = None  # what was known is too long ago
        for row in rows[:MOST_REQUESTS]:
            requests.append(self._request(row))
            if not is_incremental(requests[-1]):
                found = {}
                break
        if found is not None:
            for request in reversed(requests):
                found = _after(found, request)
        self._last[connection] = (number, found)
        self._last.move_to_end(connection)
        if len(self._last) > KEPT:
            self._last.popitem(last=False)
        return None if found is None else {topic: set(numbers) for topic, numbers in found.items()}

    def keep(self, connections: Int64, waiting: Int64, generation: int) -> Int64:
        """Remember what is asked for on these connections, as far as no row that waits comes before it; the rows
        of which it will ask again, ascending. Other rows may be forgotten."""
        self._refresh(generation)
        since: dict[int, tuple[int, Partitions | None]] = {}
        needed = [_NONE]
        for connection in connections.tolist():
            rows = np.array(self._fetches(connection, -1, len(self._table))[::-1], np.int64)
            settled = int(np.argmax(np.append(np.isin(rows, waiting), True)))
            needed.append(rows[settled:])
            if settled:
                last = int(rows[settled - 1])
                since[connection] = (last, self.partitions(last, generation))
            elif connection in self._since:
                since[connection] = self._since[connection]
        self._since = since
        return np.sort(np.concatenate(needed))

    def _refresh(self, generation: int) -> None:
        if generation != self._generation:
            self._generation = generation
            self._last.clear()

    def _before(self, connection: int, number: int) -> tuple[int, Partitions | None]:
        """The newest row before `number` of which the answer is known, and that."""
        since = self._since.get(connection, (-1, None))
        last = self._last.get(connection, since)
        return last if last[0] < number else since if since[0] < number else (-1, None)

    def _fetches(self, connection: int, last: int, number: int) -> list[int]:
        """The rows of a connection that fetch, back from `number` to behind `last`: one more than are looked at."""
        rows = self._by_connection.rows(connection, self._generation)
        rows = rows[np.searchsorted(rows, last, side="right") : np.searchsorted(rows, number, side="right")]
        table = self._table
        fetches = (table.api_key.values[rows] == ApiKey.FETCH) & (table.version.values[rows] >= FIRST_VERSION)
        found: list[int] = rows[fetches & (table.request.values[rows] != NO_FRAME)][::-1][: MOST_REQUESTS + 1].tolist()
        return found

    def _request(self, row: int) -> Values:
        data, whole = self._frames.read(int(self._table.request.values[row]))
        return read(data, request_layout(ApiKey.FETCH, int(self._table.version.values[row])), whole).body


def _after(before: Partitions, request: Values) -> Partitions:
    """The set after a request."""
    found = {topic: set(numbers) for topic, numbers in before.items()} if is_incremental(request) else {}
    for topic, number in _named(request.get("topics"), "partition"):
        found.setdefault(topic, set()).add(number)
    for topic, number in _named(request.get("forgotten_topics_data"), None):
        found.get(topic, set()).discard(number)
    return {topic: numbers for topic, numbers in found.items() if numbers}


def _named(topics: object, field: str | None) -> Iterator[tuple[str, int]]:
    for topic in topics if isinstance(topics, list) else ():
        name = str(topic.get("topic") or topic.get("topic_id"))
        for partition in topic["partitions"]:
            yield name, partition if field is None else partition[field]
