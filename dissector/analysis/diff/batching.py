"""How a producer batches records: batches per request, records and bytes per batch, and a checksum of the records.

The checksum is a sum of hashes by topic and by partition: the same records in another order, or in other batches, have
the same sums. The client chooses the partition of a record without a key; only records with a key are summed by
partition.
"""

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dissector.protocol.message import Values
from dissector.protocol.records.batch import Batch
from dissector.protocol.records.compression import DecompressionError
from dissector.protocol.records.entries import LEAST_RECORD, RecordsEntryKind, split_entries
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.wire import WireError, uvarint

MAX_RECORD_BYTES: Final = 32 << 20
"""Bytes of batches of one side whose records are read; of further batches only the headers are."""
MAX_BATCHES: Final = 100_000
"""Batches whose sizes are kept."""
WRAP: Final = 1 << 64
CONTINUATION_BIT: Final = 0x80
"""Set in each byte of a varint but the last."""
NO_KEY: Final = 1
"""A key length of -1 as a varint."""


@dataclass(slots=True)
class RecordSum:
    """Records as a count and a sum of hashes."""

    records: int = 0
    total: int = 0

    def add(self, numbers: Sequence[int]) -> None:
        self.records += len(numbers)
        self.total = (self.total + sum(numbers)) % WRAP


@dataclass(slots=True)
class ProducedBatches:
    """The batches that one side produced."""

    records: "array[int]" = field(default_factory=lambda: array("q"))
    """Records of each batch."""
    sizes: "array[int]" = field(default_factory=lambda: array("q"))
    """Bytes of each batch, on the wire."""
    per_request: "array[int]" = field(default_factory=lambda: array("q"))
    """Batches of each request."""
    waits_ms: "array[int]" = field(default_factory=lambda: array("q"))
    """From a batch's first timestamp, set by the producer, to its request."""
    codecs: Counter[str] = field(default_factory=Counter)
    topics: dict[str, RecordSum] = field(default_factory=dict)
    keyed: dict[tuple[str, int], RecordSum] = field(default_factory=dict)
    read_bytes: int = 0
    unread: int = 0
    """Batches whose records were not read: beyond `MAX_RECORD_BYTES`, or damaged."""

    def add_request(self, request: Values, names: Mapping[str, str], time_ns: int) -> None:
        """Add a Produce request; `names` are the names of topic ids, `time_ns` is the request's time."""
        count = 0
        for topic in _list(request.get("topic_data")):
            name = topic.get("name") or names.get(str(topic.get("topic_id")), str(topic.get("topic_id")))
            for partition in _list(topic.get("partition_data")):
                records = partition.get("records")
                if isinstance(records, bytes):
                    index = partition.get("index")
                    count += self._add_records(str(name), index if isinstance(index, int) else 0, records, time_ns)
        if len(self.per_request) < MAX_BATCHES:
            self.per_request.append(count)

    def _add_records(self, topic: str, partition: int, records: bytes, time_ns: int) -> int:
        count = 0
        for part in split_entries(records):
            if part.kind is RecordsEntryKind.BATCH:
                count += 1
                batch = Batch.read(records[part.start : part.end])
                if len(self.waits_ms) < MAX_BATCHES and not batch.is_append_time:
                    self.waits_ms.append(time_ns // 1_000_000 - batch.base_timestamp)
                self._add_batch(topic, partition, batch)
        return count

    def _add_batch(self, topic: str, partition: int, batch: Batch) -> None:
        self.codecs[batch.compression] += 1
        if len(self.records) < MAX_BATCHES:
            self.records.append(max(0, batch.records_count))
            self.sizes.append(len(batch.data))
        if self.read_bytes + len(batch.data) > MAX_RECORD_BYTES:
            self.unread += 1
            return
        self.read_bytes += len(batch.data)
        try:
            hashes, keyed_hashes = _record_hashes(batch.decompressed(frame_budget()), batch.records_count)
        except (DecompressionError, WireError):
            self.unread += 1
            return
        self.topics.setdefault(topic, RecordSum()).add(hashes)
        if keyed_hashes:
            self.keyed.setdefault((topic, partition), RecordSum()).add(keyed_hashes)


def _record_hashes(data: bytes, count: int) -> tuple[list[int], list[int]]:
    """Return a hash for each record of an uncompressed batch, and for each record with a key.

    Hashes are equal for equal key, value and headers within one process; they are keyed, so that nobody can craft
    collisions. Raises `WireError`.

    Key, value and headers follow a record's two deltas, up to its end: no client encodes equal ones in other bytes.
    """
    if count < 0 or count * LEAST_RECORD > len(data):
        raise WireError(f"{count} records can't be in {len(data)} bytes", 0)
    found: list[int] = []
    keyed: list[int] = []
    at = 0
    try:
        for _ in range(count):
            size, at = (data[at], at + 1) if data[at] < CONTINUATION_BIT else uvarint(data, at)
            end = at + (size >> 1)
            at += 1  # the attributes
            while data[at] >= CONTINUATION_BIT:
                at += 1
            at += 1
            while data[at] >= CONTINUATION_BIT:
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
