"""The sequence diagram of rows: which messages clients and brokers sent to each other, and when.

A lane is a client (its client id and the host that it runs on) or a broker (its address, and its node id where the
conversations tell it). An event is one frame on its way from one lane to another.

Invariants:
  * every frame of the chosen rows is exactly one event; entries of Kafka's files, and connections that are not Kafka,
    have none;
  * events are in the order of time; those of the same time in the order of rows, a request before its response;
  * what the index has is worked out at once; words are decoded when an event is looked at. So a million rows cost as
    much as their columns.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from dissector.capture_session import Capture
from dissector.core.arrays import Bool, Int32, Int64
from dissector.core.columns import ValueNumbers
from dissector.core.finding import Severity
from dissector.exchange.info_column import first_error, info
from dissector.exchange.model import Exchange
from dissector.index.exchange_table import Flag
from dissector.index.index_columns import IndexColumns

_EXCHANGE: Final = "exchange"


class Lane(NamedTuple):
    """A client or a broker. Texts are as on the wire: not cleaned."""

    name: str
    """A client id, or a broker's node."""
    address: str
    """A client's host, a broker's `host:port`."""
    is_client: bool


class SequenceEvent(NamedTuple):
    """A frame from one lane to another. Texts are as on the wire: not cleaned."""

    number: int
    """Its row, from 0."""
    time_ns: int
    is_request: bool
    source: int
    """The number of the lane that sent it; `target` of the one that it went to."""
    target: int
    connection: int
    label: str
    """``Fetch v12``; or the kind of a row that is no exchange, such as ``gap``."""
    words: str
    """Its info text."""
    latency_ns: int | None
    """From the request to the response; None if either is missing."""
    error: str
    """The first error in a response; empty for none, and for requests."""
    severity: Severity | None
    """The worst of the exchange's findings: an error that is a step of the protocol is a note."""
    depth: int
    """Requests of these rows in flight on the connection: including this one, or before this response."""


@dataclass(frozen=True, slots=True, eq=False)
class SequenceDiagram:
    """Lanes and events: columns from the index, `(events,)` each; `event` decodes the texts."""

    capture: Capture
    lanes: tuple[Lane, ...]
    rows: Int32
    """The row of each event, from 0."""
    time_ns: Int64
    is_request: Bool
    source: Int32
    target: Int32
    depth: Int32
    partner: Int32
    """The other event of the same exchange; -1 for none."""

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[SequenceEvent]:
        return (self.event(at) for at in range(len(self)))

    def event(self, at: int) -> SequenceEvent:
        """Return event `at`, from 0, with its texts."""
        number, is_request = int(self.rows[at]), bool(self.is_request[at])
        exchange = self.capture.exchange_for_now(number)
        row = exchange.row
        label = row.api if row.kind == _EXCHANGE else row.kind
        error = "" if is_request else first_error(exchange)
        return SequenceEvent(
            number, int(self.time_ns[at]), is_request, int(self.source[at]), int(self.target[at]), row.connection,
            label if row.version is None else f"{label} v{row.version}",
            _words(exchange, is_request), row.latency_ns, error, row.severity, int(self.depth[at]),
        )  # fmt: skip


def sequence_diagram(capture: Capture, rows: Iterable[int]) -> SequenceDiagram:
    """Return the diagram of these rows, from 0, of a capture that has been read."""
    chosen = np.unique(rows if isinstance(rows, np.ndarray) else np.fromiter(rows, np.int64))
    found = capture.index.numbers(chosen)
    which = found.kind >= 0
    if not which.all():  # else all columns would be there twice
        found, chosen = found.where(which), chosen[which]
    lanes, client, server = _lanes(capture, found)
    row, is_request, time_ns = _events(found)
    source = np.where(is_request, client[row], server[row])
    return SequenceDiagram(
        capture, lanes, chosen[row].astype(np.int32), time_ns, is_request, source, client[row] + server[row] - source,
        _depth(found, row, is_request), _partners(row),
    )  # fmt: skip


def _events(found: IndexColumns) -> tuple[Int32, Bool, Int64]:
    """For each event the place of its row, whether it is the request, and its time; in order."""
    there = np.stack((found.request_size >= 0, found.response_size >= 0), axis=1)
    row, side = (each.astype(np.int32) for each in np.nonzero(there))
    time_ns = np.stack((found.request_time_ns, found.response_time_ns), axis=1)[there]
    order = np.argsort(time_ns, kind="stable")
    return row[order], side[order] == 0, time_ns[order]


def _words(exchange: Exchange, is_request: bool) -> str:
    """Return the info text of one side of an exchange."""
    message = exchange.request if is_request else exchange.response
    if message is None or exchange.fields.kind != _EXCHANGE:
        return exchange.row.info
    names = message.context.topic_names
    return info(message, None, [], names) if is_request else info(None, message, exchange.row_findings, names)


def _lanes(capture: Capture, found: IndexColumns) -> tuple[tuple[Lane, ...], Int32, Int32]:
    """The lanes, clients first, in the order of their first rows; the client's and the server's of each row."""
    nodes = {address: node for node, address in capture.connections.nodes.items()}
    clients, servers = ValueNumbers[Lane](), ValueNumbers[Lane]()
    pairs, first, inverse = np.unique(
        found.connection << 32 | _client_ids(found), return_index=True, return_inverse=True
    )
    columns = np.empty((2, len(pairs)), np.int32)
    for at in np.argsort(first).tolist():
        connection, client_id = divmod(int(pairs[at]), 1 << 32)
        client, server = capture.connections.ends(connection)
        node = nodes.get(server)
        columns[0, at] = clients.of(Lane(capture.index.client_id(client_id) or "", client.rpartition(":")[0], True))
        columns[1, at] = servers.of(Lane("" if node is None else f"node {node}", server, False))
    columns[1] += len(clients.values)
    return (*clients.values, *servers.values), columns[0][inverse], columns[1][inverse]


def _client_ids(found: IndexColumns) -> Int64:
    """The client id of each row; where there is no request, the first that its connection has."""
    asks = found.is_exchange & (found.request_size >= 0)
    connections, first = np.unique(found.connection[asks], return_index=True)
    known = np.append(found.client_id[asks][first], 0)
    at = np.searchsorted(connections, found.connection)
    has = np.append(connections, -1)[at] == found.connection
    ids: Int64 = np.where(asks, found.client_id, np.where(has, known[at], 0))
    return ids


def _depth(found: IndexColumns, row: Int32, is_request: Bool) -> Int32:
    """How many requests each event's connection has in flight."""
    waits = found.is_exchange & (found.request_size >= 0) & (found.flags & Flag.NO_RESPONSE_EXPECTED == 0)
    step = np.where(waits[row], np.where(is_request, 1, -1), 0).astype(np.int32)
    connection = found.connection[row]
    order = np.argsort(connection, kind="stable")
    connection, steps = connection[order], step[order]
    sums = np.cumsum(steps, dtype=np.int32)
    first = np.flatnonzero(np.diff(connection, prepend=-1))
    sums -= np.repeat(sums[first] - steps[first], np.diff(np.append(first, len(order))))
    depth = np.empty(len(row), np.int32)
    depth[order] = sums
    return depth + np.where(is_request, 0, waits[row]).astype(np.int32)


def _partners(row: Int32) -> Int32:
    """Where the other event of each row stands."""
    partner = np.full(len(row), -1, np.int32)
    order = np.argsort(row, kind="stable").astype(np.int32)
    same = np.flatnonzero(np.diff(row[order]) == 0)
    partner[order[same]], partner[order[same + 1]] = order[same + 1], order[same]
    return partner
