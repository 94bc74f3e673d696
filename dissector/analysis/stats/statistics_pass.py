"""Count a capture that has been read, in one pass: first the index, then bodies, then the bytes of fields.

The pass has steps, so that a screen can draw the counts so far, and stop. Both the index
and bodies are counted in columns; bodies that need a careful look are decoded, which takes most of the time.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from dissector.analysis.stats.body_counts import BodyCounts
from dissector.analysis.stats.column_counts import count_by_group
from dissector.analysis.stats.counts import (
    MAX_KEYS,
    ApiVersion,
    ClientSoftware,
    Statistics,
    StatsConnection,
    VersionSpan,
    VersionUse,
    widen_span,
)
from dissector.analysis.stats.field_bytes import ExchangeSampler, trace_fields
from dissector.analysis.stats.latency_parts import count_parts
from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.core.columns import ValueNumbers, tuples
from dissector.index.exchange_table import RowKind
from dissector.index.index_columns import ENTRY, IndexColumns

ROWS_PER_STEP: Final = 1 << 14
"""Rows of the index counted in one step."""
BODIES_PER_STEP: Final = 1 << 14
"""Rows whose bodies are counted together, if someone waits for each step."""


class StatisticsProgress(NamedTuple):
    """Rows counted in the index plus rows whose bodies were read."""

    done: int
    total: int


class StatisticsPass:
    """Counts the rows of a capture, or those given (from 0, ascending), into `statistics`."""

    def __init__(self, capture: Capture, rows: Int64 | None = None) -> None:
        self._capture = capture
        self._rows = rows
        self._count = len(capture) if rows is None else len(rows)
        self._clients = ValueNumbers[ClientSoftware]()
        self._servers = ValueNumbers[str]()
        self._advertised: dict[int, tuple[Mapping[int, tuple[int, int]], dict[int, VersionSpan]]] = {}
        """Advertised versions by identity, kept here so that an identity stays unique; and the same as spans."""
        self._counted: set[tuple[str, int]] = set()
        """Those that were counted, by server and identity."""
        self._sampler = ExchangeSampler()
        self.statistics = Statistics()

    def steps(self, bodies: int = BODIES_PER_STEP) -> Iterator[StatisticsProgress]:
        """Count. `statistics` grows with each step and is complete after the last. The bodies of so many rows are
        counted together."""
        total = 2 * self._count
        done = 0
        for rows in self._row_batches(ROWS_PER_STEP):
            self._count_index(rows)
            done += len(rows)
            yield StatisticsProgress(done, total)
        counts = BodyCounts(self._capture, self.statistics)
        for rows in self._row_batches(bodies):
            found = self._capture.index.numbers(rows)
            which = found.is_exchange
            found = found.where(which)
            for _ in counts.add(rows[which], found):
                yield StatisticsProgress(done, total)
            self._count_failed(found.where(counts.has_error))
            done += len(rows)
            yield StatisticsProgress(done, total)
        del counts  # what it knows of bodies is much
        for _ in trace_fields(self._capture, self._sampler.rows(), self.statistics.fields):
            yield StatisticsProgress(total, total)

    def _row_batches(self, size: int) -> Iterator[Int64]:
        for start in range(0, self._count, size):
            stop = min(start + size, self._count)
            yield np.arange(start, stop) if self._rows is None else self._rows[start:stop]

    def _count_index(self, rows: Int64) -> None:
        """Count the columns of the index."""
        statistics = self.statistics
        found = self._capture.index.numbers(rows)
        for kind, count in tuples(*np.unique(found.kind, return_counts=True)):
            name = "entry" if kind == ENTRY else RowKind(kind).name.lower()
            statistics.kinds[name] = statistics.kinds.get(name, 0) + count
        which = found.is_exchange
        found, rows = found.where(which), rows[which]
        if not len(rows):
            return
        for _, counts in count_by_group(np.zeros(len(rows), np.int64), found):
            statistics.total.merge(counts)
        for number, counts in count_by_group(found.connection, found):
            statistics.connections.add(self._connection(number), counts)
        apis = found.api_key << 16 | found.version & 0xFFFF
        for number, counts in count_by_group(apis, found):
            statistics.apis.add(_api_version(number), counts)
        for number, parts in count_parts(apis, found):
            statistics.parts.of(_api_version(number)).merge(parts)
        clients, servers = self._ends(found)
        for number, counts in count_by_group(clients, found):
            statistics.clients.add(self._clients.values[number], counts)
        self._count_versions(clients, servers, found)
        self._sampler.add(rows, apis, found, statistics.fields)

    def _connection(self, number: int) -> StatsConnection:
        return StatsConnection(number, *self._capture.connections.ends(number))

    def _ends(self, found: IndexColumns) -> tuple[Int64, Int64]:
        """Return the client and the server of each row, as numbers; add the servers' advertised versions."""
        pairs, inverse = np.unique(found.connection << 32 | found.client_id, return_inverse=True)
        clients, servers = [], []
        for pair in pairs.tolist():
            connection, client_id = pair >> 32, pair & 0xFFFFFFFF
            software = self._capture.connections.software(connection)
            clients.append(self._clients.of(ClientSoftware(self._capture.index.client_id(client_id), *software)))
            server = self._capture.connections.ends(connection)[1]
            servers.append(self._servers.of(server))
            self._add_advertised(server, self._capture.connections.advertised_versions(connection))
        return np.array(clients, np.int64)[inverse], np.array(servers, np.int64)[inverse]

    def _add_advertised(self, server: str, advertised: Mapping[int, tuple[int, int]]) -> None:
        if (server, id(advertised)) in self._counted:  # for another connection
            return
        self._counted.add((server, id(advertised)))
        _, spans = self._advertised.setdefault(id(advertised), (advertised, {}))
        if len(spans) < len(advertised):
            spans.update((key, VersionSpan(low, high)) for key, (low, high) in advertised.items())
        of_servers = self.statistics.advertised_versions
        known = of_servers.get(server)
        if known is None and len(of_servers) < MAX_KEYS:
            of_servers[server] = spans  # of all servers that advertise the same
        elif known is not None and known != spans:
            of_servers[server] = wider = dict(known)
            for key, span in spans.items():
                widen_span(wider, key, span)

    def _count_versions(self, clients: Int64, servers: Int64, found: IndexColumns) -> None:
        """Count the versions that clients use, by server."""
        has_api = found.api_key >= 0
        found, clients, servers = found.where(has_api), clients[has_api], servers[has_api]
        pairs, pair = np.unique(clients << 32 | servers, return_inverse=True)
        for number, counts in count_by_group(pair << 32 | found.api_key << 16 | found.version & 0xFFFF, found):
            client, server = divmod(int(pairs[number >> 32]), 1 << 32)
            key, version = number >> 16 & 0xFFFF, _signed(number & 0xFFFF)
            use = VersionUse(self._clients.values[client], self._servers.values[server], key, version)
            self.statistics.used_versions.add(use, counts)

    def _count_failed(self, found: IndexColumns) -> None:
        """Count rows whose response has an error."""
        statistics = self.statistics
        statistics.total.errors += len(found.kind)
        for number, count in _frequencies(found.api_key << 16 | found.version & 0xFFFF):
            statistics.apis.of(_api_version(number)).errors += count
        for number, count in _frequencies(self._ends(found)[0]):
            statistics.clients.of(self._clients.values[number]).errors += count
        for number, count in _frequencies(found.connection):
            statistics.connections.of(self._connection(number)).errors += count


def _api_version(number: int) -> ApiVersion:
    return ApiVersion(number >> 16, _signed(number & 0xFFFF))


def _signed(number: int) -> int:
    """Return the int16 with these 16 bits."""
    return (number ^ 0x8000) - 0x8000


def _frequencies(numbers: Int64) -> Iterator[tuple[int, int]]:
    different, counts = np.unique(numbers, return_counts=True)
    return tuples(different, counts)
