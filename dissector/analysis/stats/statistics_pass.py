"""Count a capture that has been read, in one pass: first the index, then bodies, then the bytes of fields.

The pass has steps, so that a screen can draw the counts so far, and stop. The index is counted in columns, a million
rows in about a second; decoding bodies, the second part, takes most of the time.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from dissector.analysis.stats.column_counts import count_by_group
from dissector.analysis.stats.counts import (
    MAX_KEYS,
    ApiError,
    ApiVersion,
    ClientSoftware,
    StatsConnection,
    TopicPartition,
    VersionSpan,
    VersionUse,
    widen_span,
)
from dissector.analysis.stats.exchange_sampler import ExchangeSampler
from dissector.analysis.stats.field_bytes import MessageKind, paths_of
from dissector.analysis.stats.statistics import Statistics
from dissector.analysis.stats.topic_mentions import topic_mentions
from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.core.columns import ValueNumbers
from dissector.exchange.info_column import ERROR_CODES, ERROR_RESPONSE
from dissector.exchange.model import Exchange
from dissector.index.exchange_table import RowKind
from dissector.index.index_columns import ENTRY, IndexColumns
from dissector.protocol.codec.structs import structs_with
from dissector.protocol.schema.waiting import WAITING

ROWS_PER_STEP: Final = 1 << 16
"""Rows of the index counted in one step."""
EXCHANGES_PER_STEP: Final = 256
"""Exchanges decoded in one step."""
_EXCHANGE: Final = RowKind.EXCHANGE.name.lower()


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
        self._advertised: dict[tuple[str, int], Mapping[int, tuple[int, int]]] = {}
        """Counted advertised versions, by server and identity; kept here so that an identity stays unique."""
        self._sampler = ExchangeSampler()
        self.statistics = Statistics()

    def steps(self) -> Iterator[StatisticsProgress]:
        """Count. `statistics` grows with each step and is complete after the last."""
        total = 2 * self._count
        done = 0
        for rows in self._row_batches():
            self._count_index(rows)
            done += len(rows)
            yield StatisticsProgress(done, total)
        for some in self._exchange_batches():
            for exchange in some:
                self._count_body(exchange)
            done += len(some)
            yield StatisticsProgress(done, total)
        for number in self._sampler.rows():
            self._trace(self._capture.exchange(number))
            yield StatisticsProgress(total, total)

    def _row_batches(self) -> Iterator[Int64]:
        for start in range(0, self._count, ROWS_PER_STEP):
            stop = min(start + ROWS_PER_STEP, self._count)
            yield np.arange(start, stop) if self._rows is None else self._rows[start:stop]

    def _exchange_batches(self) -> Iterator[list[Exchange]]:
        """Yield the rows, decoded on demand; consecutive rows are looked up together."""
        for rows in self._row_batches():
            for run in np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1):
                for start in range(0, len(run), EXCHANGES_PER_STEP):
                    some = run[start : start + EXCHANGES_PER_STEP]
                    yield list(self._capture.at(range(int(some[0]), int(some[-1]) + 1)))

    def _count_index(self, rows: Int64) -> None:
        """Count the columns of the index."""
        statistics = self.statistics
        found = self._capture.index_columns(rows)
        for kind, count in zip(*(column.tolist() for column in np.unique(found.kind, return_counts=True)), strict=True):
            name = "entry" if kind == ENTRY else RowKind(kind).name.lower()
            statistics.kinds[name] = statistics.kinds.get(name, 0) + count
        which = found.is_exchange
        found, rows = found.where(which), rows[which]
        if not len(rows):
            return
        for _, counts in count_by_group(np.zeros(len(rows), np.int64), found):
            statistics.total.merge(counts)
        for number, counts in count_by_group(found.connection, found):
            statistics.connections.of(self._connection(number)).merge(counts)
        apis = found.api_key << 16 | found.version & 0xFFFF
        for number, counts in count_by_group(apis, found):
            statistics.apis.of(_api_version(number)).merge(counts)
        clients, servers = self._ends(found)
        for number, counts in count_by_group(clients, found):
            statistics.clients.of(self._clients.values[number]).merge(counts)
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
        if (server, id(advertised)) in self._advertised:  # already counted for another connection
            return
        self._advertised[server, id(advertised)] = advertised
        if server in self.statistics.advertised_versions or len(self.statistics.advertised_versions) < MAX_KEYS:
            known = self.statistics.advertised_versions.setdefault(server, {})
            for key, (low, high) in advertised.items():
                widen_span(known, key, VersionSpan(low, high))

    def _count_versions(self, clients: Int64, servers: Int64, found: IndexColumns) -> None:
        """Count the versions that clients use, by server."""
        has_api = found.api_key >= 0
        found, clients, servers = found.where(has_api), clients[has_api], servers[has_api]
        pairs, pair = np.unique(clients << 32 | servers, return_inverse=True)
        for number, counts in count_by_group(pair << 32 | found.api_key << 16 | found.version & 0xFFFF, found):
            client, server = divmod(int(pairs[number >> 32]), 1 << 32)
            key, version = number >> 16 & 0xFFFF, _signed(number & 0xFFFF)
            use = VersionUse(self._clients.values[client], self._servers.values[server], key, version)
            self.statistics.used_versions.of(use).merge(counts)

    def _count_body(self, exchange: Exchange) -> None:
        """Count errors, topics and partitions of a body."""
        row = exchange.fields
        if row.kind != _EXCHANGE:
            return
        statistics = self.statistics
        has_api = exchange.request is not None and exchange.api_key is not None
        api = ApiVersion(exchange.api_key or 0, row.version or 0) if has_api else ApiVersion(-1, -1)
        codes = _error_codes(exchange)
        if codes:
            client = ClientSoftware(row.client_id, *self._capture.connections.software(row.connection))
            for counts in (
                statistics.total, statistics.apis.of(api), statistics.clients.of(client),
                statistics.connections.of(StatsConnection(row.connection, row.client, row.server)),
            ):  # fmt: skip
                counts.errors += 1
        may_wait = exchange.api_key in WAITING
        for code in codes:
            sizes = row.request_size or 0, row.response_size or 0
            statistics.errors.of(ApiError(api.api_key, code)).add(*sizes, True, row.latency_ns, waits=may_wait)
        for about, (out, back, error) in record_bytes_by_topic(exchange).items():
            counts = statistics.topics.of(about) if isinstance(about, str) else statistics.partitions.of(about)
            counts.add(out, back, error, row.latency_ns, waits=may_wait)

    def _trace(self, exchange: Exchange) -> None:
        """Trace a sampled exchange."""
        has_request = exchange.request is not None
        version = exchange.fields.version if has_request else None
        for side in ("request", "response"):
            message = getattr(exchange, side)
            if message is not None:
                kind = MessageKind(exchange.api_key if has_request and exchange.api_key is not None else -1,
                                   -1 if version is None else version, side)  # fmt: skip
                self.statistics.fields.of(kind).add_traced(message.size, paths_of(message))


def _api_version(number: int) -> ApiVersion:
    return ApiVersion(number >> 16, _signed(number & 0xFFFF))


def _signed(number: int) -> int:
    """Return the int16 with these 16 bits."""
    return (number ^ 0x8000) - 0x8000


def _error_codes(exchange: Exchange) -> set[int]:
    """Return the distinct error codes of a response; the finding says whether it has any."""
    response = exchange.response
    if response is None or not any(each.code == ERROR_RESPONSE for each in exchange.row_findings):
        return set()
    structs = structs_with(response.layout, response.body, ERROR_CODES)
    return {code for struct in structs for name in ERROR_CODES if isinstance(code := struct.get(name), int) and code}


def record_bytes_by_topic(exchange: Exchange) -> dict[str | TopicPartition, tuple[int, int, bool]]:
    """Return the bytes of records out and in, and whether there is an error, by each topic and partition that an
    exchange mentions or that its fetch session has."""
    found: dict[str | TopicPartition, tuple[int, int, bool]] = {}
    for topic, numbers in (exchange.fetched or {}).items():
        found[topic] = (0, 0, False)
        found |= {TopicPartition(topic, number): (0, 0, False) for number in numbers}
    for message, out in ((exchange.request, True), (exchange.response, False)):
        for each in () if message is None else topic_mentions(message):
            mentions: list[str | TopicPartition] = [each.topic]
            if each.partition is not None:
                mentions.append(TopicPartition(each.topic, each.partition))
            for key in mentions:
                sent, got, error = found.get(key, (0, 0, False))
                sent, got = (sent + each.bytes, got) if out else (sent, got + each.bytes)
                found[key] = sent, got, error or bool(each.error)
    return found
