"""What one side does under one matching key: rows, versions, the values of each field, times.

Few messages differ, so they wait to be read with all that are equal. Memory is bounded: a field has at most
`MAX_VALUES` different values, a key at most `MAX_PATHS` paths with labels and `MAX_INTERVALS` times of each kind.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from dissector.analysis.diff.compared_values import ComparedValue, EntityName, Placeholder
from dissector.analysis.diff.kept_numbers import extend, no_numbers
from dissector.analysis.diff.message_contents import UNNUMBERED, MessageContents
from dissector.analysis.diff.message_leaves import UNLABELED, ElementLabel, Leaf, LeafPath
from dissector.core.arrays import Int64
from dissector.core.columns import tuples
from dissector.index.index_columns import IndexColumns

MAX_VALUES: Final = 64
MAX_PATHS: Final = 5_000
MAX_INTERVALS: Final = 10_000
FieldPlace = tuple[str, LeafPath]
"""``request`` or ``response``, and the path in its body."""
NEVER_SENT: Final = -1
Texts = npt.NDArray[np.object_]
MORE_VALUES: Final = Placeholder("more values")


@dataclass(slots=True)
class Retries:
    """Exchanges whose response has a retriable error."""

    counts: dict[str, int] = field(default_factory=dict)
    """How many, by the error's name."""
    backoffs_ns: "array[int]" = field(default_factory=no_numbers)
    """From such a response to the next request."""
    failed_ns: dict[int, int] = field(default_factory=dict)
    """The time of a retriable error that no request has followed yet, by the number of the client id: what another
    client of the same program requests is no retry."""

    def add(self, errors: Sequence[str], found: IndexColumns) -> None:
        """Add exchanges with the names of their retriable errors, which are empty for the others."""
        columns = (each.tolist() for each in (found.client_id, found.request_time_ns, found.latency_ns))
        for error, client, request_ns, latency_ns in zip(errors, *columns, strict=True):
            failed_ns = self.failed_ns.get(client, 0)
            if failed_ns and request_ns >= failed_ns and len(self.backoffs_ns) < MAX_INTERVALS:
                self.backoffs_ns.append(request_ns - failed_ns)
                del self.failed_ns[client]
            if error:
                self.counts[error] = self.counts.get(error, 0) + 1
                if client in self.failed_ns or len(self.failed_ns) < MAX_INTERVALS:
                    self.failed_ns[client] = request_ns + latency_ns


@dataclass(slots=True)
class PendingMessage:
    """A message that waits to be read: its part, its leaves, its first row, how often it was sent."""

    part: str
    leaves: Sequence[Leaf]
    first: int
    count: int


@dataclass(slots=True)
class KeyProfile:
    """All exchanges of one side with one matching key."""

    rows: "array[int]" = field(default_factory=no_numbers)
    versions: Counter[int] = field(default_factory=Counter)
    fields: dict[FieldPlace, Counter[ComparedValue]] = field(default_factory=dict)
    first_rows: dict[FieldPlace, int] = field(default_factory=dict)
    """The first row that has a field."""
    intervals_ns: "array[int]" = field(default_factory=no_numbers)
    """From one request to the next on the same connection, unless its member joined its group between them."""
    latencies_ns: "array[int]" = field(default_factory=no_numbers)
    retries: Retries = field(default_factory=Retries)
    last_request: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By connection: its time in nanoseconds, and how often the member had joined by then. Forgotten at the end."""
    connections: int = 0
    """How many have such a request, at the end."""
    lost: "array[int]" = field(default_factory=no_numbers)
    """Rows whose connection was closed before the response came."""
    pending: dict[tuple[str, int], PendingMessage] = field(default_factory=dict)
    """By part and number of the content, or row of a message without one."""

    @property
    def retry_count(self) -> int:
        return sum(self.retries.counts.values())

    def add_rows(self, rows: Int64, found: IndexColumns, errors: Texts, joins: Int64) -> None:
        """Add exchanges: their rows, ascending, the columns of these, the names of their retriable errors, and how
        often the member on their connection has joined its group."""
        extend(self.rows, rows)
        if len(self.intervals_ns) < MAX_INTERVALS:
            extend(self.intervals_ns, self._intervals(found, joins), MAX_INTERVALS)
        extend(self.latencies_ns, found.latency_ns[found.has_latency], MAX_INTERVALS)
        if self.retries.failed_ns or (errors != "").any():
            self.retries.add(errors.tolist(), found)

    def _intervals(self, found: IndexColumns, joins: Int64) -> Int64:
        """Return the time since the last request on the same connection, of each request that has one before it."""
        order = np.argsort(found.connection, kind="stable")
        connections, times_ns, joins = found.connection[order], found.request_time_ns[order], joins[order]
        firsts = np.flatnonzero(np.diff(connections, prepend=-1))
        before_ns, joins_before = np.roll(times_ns, 1), np.roll(joins, 1)
        lasts = np.append(firsts[1:], len(order)) - 1
        known = self.last_request
        before_ns[firsts], joins_before[firsts] = 0, NEVER_SENT
        is_known = np.array([each in known for each in connections[firsts].tolist()], np.bool_)
        for at, connection in tuples(firsts[is_known], connections[firsts[is_known]]):
            before_ns[at], joins_before[at] = known[connection]
        last = tuples(times_ns[lasts], joins[lasts])
        known.update(zip(connections[lasts].tolist(), last, strict=True))
        intervals = np.empty(len(order), np.int64)
        intervals[order] = times_ns - before_ns
        is_interval = np.empty(len(order), np.bool_)
        is_interval[order] = joins_before == joins
        return intervals[is_interval]

    def add_messages(self, contents: MessageContents, number: int, first: int, count: int) -> None:
        """Add messages of equal content, the first of them in the row `first`, to those that wait to be read."""
        place = contents.part, number if number != UNNUMBERED else -1 - first
        if place in self.pending:
            self.pending[place].count += count
        else:
            leaves = contents.of(number, first).leaves
            self.pending[place] = PendingMessage(contents.part, leaves, first, count)

    def finish(self, add_name: Callable[[EntityName], None]) -> None:
        """Read what waits, and forget what only further exchanges would need."""
        self.read_pending(add_name)
        self.connections = len(self.last_request)
        self.last_request.clear()

    def read_pending(self, add_name: Callable[[EntityName], None]) -> None:
        """Add the leaves of the messages that wait to be read; `add_name` gets the names in them."""
        for message in self.pending.values():
            for path, value in message.leaves:  # the innermost loop: inlined, not a function
                values = self.fields.get((message.part, path))
                if values is None:
                    values = self._add_field((message.part, path), message.first, add_name)
                if value in values:
                    values[value] += message.count
                    continue
                if isinstance(value, EntityName):
                    add_name(value)
                values[value if len(values) < MAX_VALUES else MORE_VALUES] += message.count
        self.pending.clear()

    def _add_field(
        self, place: FieldPlace, first_row: int, add_name: Callable[[EntityName], None]
    ) -> Counter[ComparedValue]:
        """Add a field; without labels if the key has too many of them."""
        for step in place[1]:
            if isinstance(step, ElementLabel) and isinstance(step.value, EntityName):
                add_name(step.value)
        if len(self.fields) >= MAX_PATHS:
            place = (place[0], tuple(UNLABELED if isinstance(step, ElementLabel) else step for step in place[1]))
        self.first_rows.setdefault(place, first_row)
        return self.fields.setdefault(place, Counter())
