"""How a producer packs records: batches, records and bytes in each, and what the records are, without keeping them.

What the records are is a sum of hashes by topic and by partition: the same records in another order, or in other
batches, have the same sums. Records without a key go to whichever partition the client likes; only those with one are
counted by partition.
"""

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dissector.protocol.message import Values
from dissector.protocol.records.batch import LEAST_RECORD, Batch
from dissector.protocol.records.compression import DecompressionError
from dissector.protocol.records.log_entries import LogEntryKind, split_entries
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.wire import WireError, uvarint

MAX_RECORD_BYTES: Final = 32 << 20
"""Bytes of batches of one side whose records are read; of what is behind them only the headers are."""
MAX_BATCHES: Final = 100_000
"""Batches whose sizes are kept."""
WRAP: Final = 1 << 64
CONTINUED: Final = 0x80
"""A varint's byte from this on has another behind it."""
NO_KEY: Final = 1
"""A length of -1, as a varint."""


@dataclass(slots=True)
class RecordSum:
    """Records, as a count and a sum of hashes."""

    records: int = 0
    total: int = 0

    def add(self, numbers: Sequence[int]) -> None:
        self.records += len(numbers)
        self.total = (self.total + sum(numbers)) % WRAP


@dataclass(slots=True)
class ProducedBatches:
    """What was produced on one side."""

    records: "array[int]" = field(default_factory=lambda: array("q"))
    """In each batch."""
    sizes: "array[int]" = field(default_factory=lambda: array("q"))
    """Bytes of each batch, on the wire."""
    per_request: "array[int]" = field(default_factory=lambda: array("q"))
    """Batches of each request."""
    waits: "array[int]" = field(default_factory=lambda: array("q"))
    """Milliseconds from a batch's first timestamp, the producer's own, to when it was sent."""
    codecs: Counter[str] = field(default_factory=Counter)
    topics: dict[str, RecordSum] = field(default_factory=dict)
    keyed: dict[tuple[str, int], RecordSum] = field(default_factory=dict)
    read: int = 0
    unread: int = 0
    """Batches whose records were not read: too many of them, or damaged."""

    def take(self, request: Values, names: Mapping[str, str], time_ns: int) -> None:
        """Add a Produce request; `names` are those of topic ids, `time_ns` is when it was sent."""
        count = 0
        for topic in _list(request.get("topic_data")):
            name = topic.get("name") or names.get(str(topic.get("topic_id")), str(topic.get("topic_id")))
            for partition in _list(topic.get("partition_data")):
                records = partition.get("records")
                if isinstance(records, bytes):
                    index = partition.get("index")
                    count += self._section(str(name), index if isinstance(index, int) else 0, records, time_ns)
        if len(self.per_request) < MAX_BATCHES:
            self.per_request.append(count)

    def _section(self, topic: str, partition: int, records: bytes, time_ns: int) -> int:
        count = 0
        for part in split_entries(records):
            if part.kind is LogEntryKind.BATCH:
                count += 1
                batch = Batch.read(records[part.start : part.end])
                if len(self.waits) < MAX_BATCHES and not batch.is_append_time:
                    self.waits.append(time_ns // 1_000_000 - batch.base_timestamp)
                self._batch(topic, partition, batch)
        return count

    def _batch(self, topic: str, partition: int, batch: Batch) -> None:
        self.codecs[batch.compression] += 1
        if len(self.records) < MAX_BATCHES:
            self.records.append(max(0, batch.records_count))
            self.sizes.append(len(batch.data))
        if self.read + len(batch.data) > MAX_RECORD_BYTES:
            self.unread += 1
            return
        self.read += len(batch.data)
        try:
            all_of_them, with_key = _hashed(batch.decompressed(frame_budget()), batch.records_count)
        except (DecompressionError, WireError):
            self.unread += 1
            return
        self.topics.setdefault(topic, RecordSum()).add(all_of_them)
        if with_key:
            self.keyed.setdefault((topic, partition), RecordSum()).add(with_key)


def _hashed(data: bytes, count: int) -> tuple[list[int], list[int]]:
    """A number for each record of a plain section, and for each that has a key: the same for the same key, value and
    headers, in one process. It is keyed, so nobody makes two records meet. Raises `WireError`.

    These three stand behind a record's two deltas, up to its end: no client writes the same in other bytes."""
    if count < 0 or count * LEAST_RECORD > len(data):
        raise WireError(f"{count} records can't be in {len(data)} bytes", 0)
    found: list[int] = []
    keyed: list[int] = []
    at = 0
    try:
        for _ in range(count):
            size, at = (data[at], at + 1) if data[at] < CONTINUED else uvarint(data, at)
            end = at + (size >> 1)
            at += 1  # the attributes
            while data[at] >= CONTINUED:
                at += 1
            at += 1
            while data[at] >= CONTINUED:
                at += 1
            at += 1
            if size & 1 or not at < end <= len(data):
                raise WireError("record runs past its section", at)
            found.append(hash(data[at:end]))
            if data[at] != NO_KEY:
                keyed.append(found[-1])
            at = end
    except IndexError:
        raise WireError("the section ends inside a record", len(data)) from None
    return found, keyed


def _list(value: object) -> list[Values]:
    return value if isinstance(value, list) else []
