"""What became of the connections to each broker: those that carried nothing, clients that connect again and again, the
longest silence while requests waited. Without bodies, from the index and from what TCP shows.

Times are in nanoseconds since the epoch. A connection counts for a broker if a row of the capture, of whatever kind,
shows that the broker speaks there; so a port that has nothing to do with Kafka does not.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.index.index_columns import ENTRY
from dissector.protocol.schema.api_groups import WAITING
from dissector.protocol.schema.api_keys import ApiKey

ROWS_AT_ONCE: Final = 1 << 16
STORM: Final = 10
STORM_NS: Final = 30 * 10**9
"""So many connections of a client, each after one of its earlier ones was closed, within this time are a storm."""
UNUSED_NS: Final = 10**9
"""An open connection is called unused if it has been there for so long."""
MOST_UNUSED: Final = 100
"""Unused connections of a broker that are named."""
_GREETING: Final = np.array(
    [ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, -1], np.int64
)  # fmt: skip
"""APIs that do nothing but prepare a connection for others; -1 of a row without one."""


class Reconnections(NamedTuple):
    """A client that connects again and again."""

    client: str
    """Its client id, or its host's address where no message of it has one."""
    attempts: int
    """Connections that it opened after an earlier one was closed, within `span_ns`."""
    span_ns: int
    connections: tuple[int, ...]
    """Those of them that have rows, ascending."""


class UnusedConnection(NamedTuple):
    """A connection that no request for anything came on."""

    number: int
    client: str
    """`host:port`."""
    begin_ns: int
    end_ns: int
    """When it was closed, else its last packet or, of one that is open, the last of the capture."""
    is_closed: bool
    is_silent: bool
    """Whether nothing came at all, and not only ApiVersions or a login."""


class Silence(NamedTuple):
    """The longest time in which a broker sent no response to anybody though a request waited that it should answer at
    once."""

    length_ns: int
    row: int
    """The request, from 0."""


class BrokerConnections(NamedTuple):
    """The connections to one broker."""

    server: str
    """`host:port`."""
    connections: int
    refused: int
    """Of these, connections that were not accepted."""
    unused: int
    unanswered: int
    """Requests without the response that they expect."""
    silence: Silence | None
    storm: Reconnections | None
    """The largest."""
    unused_connections: tuple[UnusedConnection, ...]
    """At most `MOST_UNUSED`."""


class _WaitingRequests(NamedTuple):
    """Columns of requests that expect a response, `(n,)` each."""

    row: Int64
    connection: Int64
    sent_ns: Int64
    answered_ns: Int64
    """0 where it was not."""
    waits: Int64
    """1 where the response may wait on purpose."""


def broker_connections(capture: Capture) -> list[BrokerConnections]:
    """Return what became of the connections to each broker, the brokers with the most connections first."""
    requests, used, clients = _columns(capture)
    connections = capture.connections
    ends = {number: connections.ends(number) for number in used}
    servers = {server for _, server in ends.values()}
    captured = range(capture.rows.files + 1, capture.rows.files + 1 + len(connections))
    for number in captured:
        if number not in ends and (both := connections.ends(number))[1] in servers:
            ends[number] = both
    of_server: dict[str, list[int]] = {}
    for number, (_, server) in sorted(ends.items()):
        of_server.setdefault(server, []).append(number)
    refused = set(connections.refused()) - used.keys()
    last_ns = max((connections.last_time_ns(number) or 0 for number in captured), default=0)
    found = []
    for server, numbers in of_server.items():
        own = np.isin(requests.connection, np.array(numbers, np.int64))
        mine = _WaitingRequests(*(column[own] for column in requests))
        not_accepted = refused.intersection(numbers)
        opened = [number for number in numbers if number not in not_accepted]
        unused = list(_unused(capture, opened, used, ends, last_ns))
        found.append(
            BrokerConnections(
                server, len(numbers), len(not_accepted), len(unused), int((mine.answered_ns == 0).sum()),
                _silence(capture, mine, last_ns), _storm(capture, numbers, used, ends, clients),
                tuple(unused[:MOST_UNUSED]),
            )
        )  # fmt: skip
    return sorted(found, key=lambda each: -each.connections)


def _columns(capture: Capture) -> tuple[_WaitingRequests, dict[int, bool], dict[int, str]]:
    """Return the requests; the connections that rows show, and whether one of these is more than a greeting; and client
    ids by connection."""
    parts: list[list[Int64]] = []
    used: dict[int, bool] = {}
    clients: dict[int, str] = {}
    waiting = np.array(sorted(WAITING), np.int64)
    for start in range(0, len(capture), ROWS_AT_ONCE):
        rows = np.arange(start, min(start + ROWS_AT_ONCE, len(capture)), dtype=np.int64)
        found = capture.index.numbers(rows)
        of_network = found.kind != ENTRY
        found, rows = found.where(of_network), rows[of_network]
        works = ~(found.is_exchange & np.isin(found.api_key, _GREETING))
        for number in np.unique(found.connection).tolist():
            used.setdefault(number, False)
        used.update(dict.fromkeys(np.unique(found.connection[works]).tolist(), True))
        named = found.client_id > 0
        numbers, at = np.unique(found.connection[named], return_index=True)
        for number, client in zip(numbers.tolist(), found.client_id[named][at].tolist(), strict=True):
            if number not in clients and (text := capture.index.client_id(client)):
                clients[number] = text
        asks = found.is_exchange & found.expects_response & (found.request_size >= 0)
        found, rows = found.where(asks), rows[asks]
        answered = np.where(found.has_latency, found.response_time_ns, 0)
        waits = np.isin(found.api_key, waiting).astype(np.int64)
        parts.append([rows, found.connection, found.request_time_ns + found.request_transfer_ns, answered, waits])
    empty = [np.zeros(0, np.int64)] * len(_WaitingRequests._fields)
    return (
        _WaitingRequests(*(np.concatenate(column) for column in zip(*(parts or [empty]), strict=True))),
        used,
        clients,
    )


def _unused(
    capture: Capture, numbers: list[int], used: dict[int, bool], ends: dict[int, tuple[str, str]], last_ns: int
) -> Iterator[UnusedConnection]:
    for number in numbers:
        if used.get(number) or not capture.connections.is_opened(number):  # it may have been used before
            continue
        begin_ns = capture.connections.first_time_ns(number) or 0
        closed = capture.connections.closed(number)
        end_ns = last_ns if closed is None else closed[0]
        if closed is not None or end_ns - begin_ns >= UNUSED_NS:
            yield UnusedConnection(
                number, ends[number][0], begin_ns, end_ns, closed is not None, is_silent=number not in used
            )


def _silence(capture: Capture, requests: _WaitingRequests, last_ns: int) -> Silence | None:
    """Of the requests of one broker: from each to the next response to any of them, or to the end."""
    answers = np.sort(requests.answered_ns[requests.answered_ns > 0])
    due = requests.waits == 0
    rows, numbers, sent_ns = requests.row[due], requests.connection[due], requests.sent_ns[due]
    if not len(rows):
        return None
    closed = {each: capture.connections.closed(each) for each in np.unique(numbers).tolist()}
    ends = {each: last_ns if at is None else min(at[0], last_ns) for each, at in closed.items()}
    end_ns = np.array([ends[each] for each in numbers.tolist()], np.int64)
    later = np.append(answers, np.iinfo(np.int64).max)[np.searchsorted(answers, sent_ns)]
    lengths = np.minimum(later, end_ns) - sent_ns
    at = int(lengths.argmax())
    return Silence(int(lengths[at]), int(rows[at])) if lengths[at] > 0 else None


def _storm(
    capture: Capture,
    numbers: list[int],
    used: dict[int, bool],
    ends: dict[int, tuple[str, str]],
    clients: dict[int, str],
) -> Reconnections | None:
    """The largest storm of a client of one broker."""
    of_client: dict[str, list[int]] = {}
    for number in numbers:
        of_client.setdefault(clients.get(number) or ends[number][0].rpartition(":")[0], []).append(number)
    storms = (_storm_of(capture, client, own, used) for client, own in of_client.items() if len(own) > STORM)
    return max(filter(None, storms), key=lambda each: each.attempts, default=None)


def _storm_of(capture: Capture, client: str, numbers: list[int], used: dict[int, bool]) -> Reconnections | None:
    again: list[tuple[int, int]] = []
    first_closed = 1 << 62
    for number in numbers:
        begin_ns = capture.connections.first_time_ns(number) or 0
        if begin_ns >= first_closed:
            again.append((begin_ns, number))
        closed = capture.connections.closed(number)
        first_closed = first_closed if closed is None else min(first_closed, closed[0])
    times = np.array([time_ns for time_ns, _ in again], np.int64)
    begun = np.arange(1, len(again) + 1) - np.searchsorted(times, times - STORM_NS)
    if begun.max(initial=0) < STORM:
        return None
    last = int(begun.argmax())
    own = again[last + 1 - int(begun[last]) : last + 1]
    with_rows = tuple(number for _, number in own if number in used)
    return Reconnections(client, len(own), own[-1][0] - own[0][0], with_rows)
