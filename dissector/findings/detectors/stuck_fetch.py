"""Consumers that fetch the same offset again and again, though there are records behind it."""

from collections.abc import Iterator
from typing import ClassVar, Final, cast

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.columns import is_in, tuples
from dissector.core.finding import Severity
from dissector.core.text import counted, duration
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.decoded_exchange import DecodedExchange, elements
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.fetched_partitions import FetchedPartitions
from dissector.findings.framework.open_findings import FindingSink, OpenFinding
from dissector.findings.framework.recurrence import BoundedStates
from dissector.protocol.records.entries import LOG_OVERHEAD, SIZE_AT, RecordsEntryKind, split_entries
from dissector.protocol.schema.api_keys import ApiKey

MANY: Final = 5
"""Fetches of one offset from which on it is looked at what the responses have."""
Partition = tuple[int, int, str, int]
"""Connection, version, topic, number: a client that fetches in several versions tries them."""


class _Run:
    """Fetches of one offset, one after the other."""

    def __init__(self) -> None:
        self.offset = -1
        self.count = 0
        self.first_ns = self.last_ns = 0
        self.words = ""
        self.finding: OpenFinding | None = None

    def message(self) -> str:
        """What is said."""
        within = duration(max(0, self.last_ns - self.first_ns))
        return self.words.format(times=f"{self.count:,} times within {within}")


class StuckFetch(ConnectionDetector):
    """Finds partitions whose next offset stays the same. The partitions of Fetches are compared in columns; a body is
    read where an offset has come `MANY` times."""

    apis: ClassVar = frozenset((ApiKey.FETCH,))
    examines_fetches: ClassVar = True
    explanation: ClassVar = Explanation(
        "stuck-fetch",
        "Same offset fetched repeatedly",
        Severity.ERROR,
        "A client fetched one offset of a partition at least five times on one connection, although records followed "
        "it: the responses have only the beginning of a message, or a batch that the client does not get past.",
        "The message is larger than the client's fetch limit (before Fetch v3, and with brokers that enforce the "
        "limit). Or the client can't read the batch: a codec that it does not know, a wrong checksum.",
        "If the message is truncated, raise max.partition.fetch.bytes and fetch.max.bytes (fetch.message.max.bytes in "
        "librdkafka and old clients) above message.max.bytes of the topic. Otherwise read the client's log, and look "
        "at the batch.",
    )

    def __init__(self, sink: FindingSink, context: FindingContext) -> None:
        super().__init__(sink, context)
        self._runs: BoundedStates[Partition, _Run] = BoundedStates(_Run)
        self._suspects: dict[int, list[tuple[Partition, _Run]]] = {}
        """By row, of this step: runs that became long there."""

    def examine_fetches(self, fetched: FetchedPartitions) -> None:
        """Find offsets that come again."""
        self._suspects = {}
        found = fetched.columns
        found = found.where(found.offset >= 0)
        connection = fetched.exchanges.connection[found.at]
        order = np.lexsort((found.at, found.partition, found.topic, connection))
        found, connection = found.where(order), connection[order]
        versions = fetched.exchanges.version[found.at]
        is_there = found.offset < found.high_watermark
        some = is_there & self._may_be_stuck(connection, found.topic, found.partition, found.offset)
        at = found.at[some]
        columns = (
            fetched.exchanges.row[at], fetched.exchanges.response_ns[at], connection[some], versions[some],
            found.topic[some], found.partition[some], found.offset[some],
        )  # fmt: skip
        for row, time_ns, client, version, topic, number, offset in tuples(*columns):
            key = client, version, fetched.topics[topic], number
            run = self._runs.of(key)
            if run.offset != offset:
                self._runs.forget(key)
                run = self._runs.of(key)
                run.offset, run.first_ns = offset, time_ns
            run.count, run.last_ns = run.count + 1, time_ns
            if run.finding is not None:
                run.finding.update(run.message())
            elif run.count == MANY:
                self._suspects.setdefault(row, []).append((key, run))

    def _may_be_stuck(self, connection: Int64, topic: Int64, partition: Int64, offset: Int64) -> Bool:
        """Return which of these fetches, sorted by partition, are neighbors of one with the same offset, or the first
        or last ones of a partition: those of other steps may be their neighbors."""
        edge = np.ones(len(offset) + 1, np.bool_)
        same = np.zeros(len(offset) + 1, np.bool_)
        if len(offset) > 1:
            edge[1:-1] = (np.diff(connection) != 0) | (np.diff(topic) != 0) | (np.diff(partition) != 0)
            same[1:-1] = ~edge[1:-1] & (np.diff(offset) == 0)
        near: Bool = edge[1:] | edge[:-1] | same[1:] | same[:-1]
        return near

    def needed(self, rows: ExaminedRows, _is_clean: Bool) -> Bool:
        """Only those where a run became long."""
        return is_in(rows.row, np.array(list(self._suspects), np.int64))

    def examine_exchange(self, exchange: DecodedExchange) -> None:
        """Look at what the response has of the partitions that are stuck."""
        for key, run in self._suspects.pop(exchange.row, ()):
            for path, asked, got in self._places(exchange, key):
                run.words = _words(key, run.offset, asked, got)
                if run.words:
                    run.finding = self.report(exchange.row, run.message(), path)

    def _places(self, exchange: DecodedExchange, key: Partition) -> Iterator[tuple[str, int, bytes]]:
        """Yield the path of a partition's records in the response, with the bytes that were asked for and that came."""
        asked = next(
            (
                cast(int, each.get("partition_max_bytes", 0))
                for topic in elements(exchange.request, "topics") if self.context.topic(topic) == key[2]
                for each in elements(topic, "partitions") if each.get("partition") == key[3]
            ), 0,
        )  # fmt: skip
        for n, topic in enumerate(elements(exchange.response, "responses")):
            for m, each in enumerate(elements(topic, "partitions")):
                records = each.get("records")
                if self.context.topic(topic) == key[2] and each.get("partition_index") == key[3]:
                    path = f"response.body.responses[{n}].partitions[{m}].records"
                    yield path, asked, records if isinstance(records, bytes) else b""


def _words(key: Partition, offset: int, asked: int, got: bytes) -> str:
    """What is said of a partition, but for how often; empty if its response has no records."""
    _, _, topic, number = key
    entries = [each.kind for each in split_entries(got)]
    if not entries:
        return ""
    braced = topic.replace("{", "{{").replace("}", "}}")
    words = f"{braced}[{number}]: offset {offset:,} was fetched {{times}}"
    if entries != [RecordsEntryKind.TRUNCATED]:
        return f"{words}, though the responses have records: the client does not get past them"
    size = int.from_bytes(got[SIZE_AT:LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD
    whole = f" of {counted(size, 'byte')}" if len(got) >= LOG_OVERHEAD and size > len(got) else ""
    return (
        f"{words}, and the responses have only the beginning of a message{whole}: it is larger than "
        f"{counted(asked, 'byte')} (partition_max_bytes); raise max.partition.fetch.bytes (fetch.message.max.bytes)"
    )
