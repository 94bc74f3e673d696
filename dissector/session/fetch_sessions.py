"""What an incremental Fetch asks for: its session's partitions, not only those that it names (KIP-227).

A Fetch with epoch 0 begins a session with all of its partitions; later ones name what is new and what is forgotten, and
most name nothing. The set is worked out by going back to where the session began, and forward from there.

Invariant: the way back is bounded; where it is longer, or the beginning was not captured, the set is not known.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dissector.protocol.message import Values, read, request_shape
from dissector.session.frames import FrameTable
from dissector.session.table import NO_FRAME, ExchangeTable

FETCH: Final = 1
FIRST_VERSION: Final = 7
MOST_REQUESTS: Final = 5_000
"""How many requests of a session are read for one answer."""

Partitions = dict[str, set[int]]
"""Partitions by topic, by name or by id as the request has it."""


def is_incremental(request: Mapping[str, Any]) -> bool:
    """Whether a Fetch leans on earlier ones."""
    epoch = request.get("session_epoch")
    return isinstance(epoch, int) and epoch > 0


class FetchSessions:
    """Answers for one capture; remembers the last answer of each connection, from which the next one follows."""

    def __init__(self, frames: FrameTable, table: ExchangeTable) -> None:
        self._frames = frames
        self._table = table
        self._rows: dict[int, npt.NDArray[np.int64]] = {}
        self._generation = -1
        self._last: dict[int, tuple[int, Partitions]] = {}

    def partitions(self, number: int, generation: int) -> Partitions | None:
        """What row `number`, an incremental Fetch, asks for; None where its session's beginning is not known."""
        if generation != self._generation:
            self._generation, self._rows, self._last = generation, {}, {}
        connection = int(self._table.connection.values[number])
        rows = self._of_connection(connection)
        at = int(np.searchsorted(rows, number))
        start, found = self._from_last(connection, rows, at)
        requests: list[Values] = []
        for row in rows[max(start, at - MOST_REQUESTS) : at + 1][::-1].tolist():
            requests.append(self._request(row))
            if not is_incremental(requests[-1]):
                found = {}
                break
        if found is None:
            return None
        for request in reversed(requests):
            found = _after(found, request)
        self._last[connection] = (at, found)
        return {topic: set(numbers) for topic, numbers in found.items()}

    def _from_last(self, connection: int, rows: npt.NDArray[np.int64], at: int) -> tuple[int, Partitions | None]:
        """Where to begin: behind the last answer, if it was for an earlier request; else at the first."""
        last = self._last.get(connection)
        return (last[0] + 1, last[1]) if last is not None and last[0] < at else (0, None)

    def _of_connection(self, connection: int) -> npt.NDArray[np.int64]:
        if connection not in self._rows:
            table = self._table
            fetches = (table.connection.values == connection) & (table.api_key.values == FETCH)
            fetches &= (table.version.values >= FIRST_VERSION) & (table.request.values != NO_FRAME)
            self._rows[connection] = np.flatnonzero(fetches)
        return self._rows[connection]

    def _request(self, row: int) -> Values:
        data, whole = self._frames.read(int(self._table.request.values[row]))
        return read(data, request_shape(FETCH, int(self._table.version.values[row])), whole).body


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
