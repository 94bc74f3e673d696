"""How a producer batches records: batches per request, records and bytes per batch, and a checksum of the records.

The checksum is a sum of hashes by topic and by partition: the same records in another order, or in other batches, have
the same sums. The client chooses the partition of a record without a key; only records with a key are summed by
partition.

Records are those that the broker has, not those that were sent: a batch that it refused counts for nothing here, and of
one that was sent again because no response came, one counts.

Invariant: requests that need a careful look are decoded, and add what they would by columns.
"""

from array import array
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np

from dissector.analysis.diff.kept_numbers import extend, no_numbers
from dissector.bulk.record_columns import RecordsFields
from dissector.capture_session import Capture
from dissector.core.arrays import Bool, Int64
from dissector.exchange.model import ExchangeMessage
from dissector.index.index_columns import IndexColumns
from dissector.protocol.message import Values
from dissector.protocol.records.batch import LOG_APPEND_TIME
from dissector.protocol.records.columns import ENTRY, KINDS, BatchError, Entries, split_fields
from dissector.protocol.records.compression import CODEC_MASK, codec_name
from dissector.protocol.records.entries import RecordsEntryKind
from dissector.protocol.records.record_sums import RecordSummation, Sums

MAX_RECORD_BYTES: Final = 32 << 20
"""Bytes of batches of one side whose records are read; of further batches only the headers are."""
MAX_BATCHES: Final = 100_000
"""Batches whose sizes are kept."""
TOGETHER_BYTES: Final = 8 << 20
"""Bytes of requests whose records are copied together, unless one has more."""
STEP_ENTRIES: Final = 4_096
STEP_BYTES: Final = 1 << 20
"""What is summed up together: what a processor's cache holds."""
WRAP: Final = 1 << 64
NEVER_MS: Final = (1 << 63) - 1
LONGEST_WAIT_MS: Final = 150_000
"""Beyond Java's default of linger.ms and delivery.timeout.ms together a record is not sent."""
MIN_BATCHES: Final = 20
NS_PER_MS: Final = 1_000_000
BATCH: Final = KINDS.index(RecordsEntryKind.BATCH)
MESSAGE: Final = KINDS.index(RecordsEntryKind.MESSAGE)
MESSAGE_ATTRIBUTES: Final = 17
"""Where a message of magic 0 or 1 has its attributes (KIP-31)."""


@dataclass(slots=True)
class RecordSum:
    """Records as a count and a sum of hashes."""

    records: int = 0
    total: int = 0

    def add(self, records: int, total: int) -> None:
        self.records += records
        self.total = (self.total + total) % WRAP


class RepeatableBatch(NamedTuple):
    """A batch, by what a client sends again: where to, and its records."""

    topic: str
    partition: int
    records: int
    total: int


class ProduceOutcomes(NamedTuple):
    """What became of Produce requests, `(n,)`."""

    is_answered: Bool
    """Whether a response came, or none was asked for."""
    may_refuse: Bool
    """Whether the response may have an error."""

    def where(self, places: Int64) -> "ProduceOutcomes":
        return ProduceOutcomes(self.is_answered[places], self.may_refuse[places])


class _Requests(NamedTuple):
    """What is known of some Produce requests besides their batches."""

    times_ms: Int64
    is_answered: Bool
    refused: frozenset[tuple[int, str, int]]
    """The place of a request, topic and partition of what was refused."""


@dataclass(slots=True)
class ProducedBatches:
    """The batches that one side produced. Codecs and times are of all that were sent; records, sizes and sums are of
    those that the broker did not refuse."""

    records: "array[int]" = field(default_factory=no_numbers)
    """Records of each batch."""
    sizes: "array[int]" = field(default_factory=no_numbers)
    """Bytes of each batch, on the wire."""
    per_request: "array[int]" = field(default_factory=no_numbers)
    """Batches of each request."""
    waits_ms: "array[int]" = field(default_factory=no_numbers)
    """From a batch's first timestamp, set by the producer, to its request."""
    lingers_ms: "array[int]" = field(default_factory=no_numbers)
    """The same, of batches whose first record came when all before it was sent: only a producer that lingers lets these
    wait. The first batch of a partition may wait for metadata, and one behind a queue for its turn."""
    overtaken: "array[int]" = field(default_factory=no_numbers)
    """Bytes of each batch that was sent when the next record for its partition had come: most have no room for it."""
    codecs: Counter[str] = field(default_factory=Counter)
    topics: dict[str, RecordSum] = field(default_factory=dict)
    keyed: dict[tuple[str, int], RecordSum] = field(default_factory=dict)
    read_bytes: int = 0
    unread: int = 0
    """Batches whose records were not read: beyond `MAX_RECORD_BYTES`, or damaged."""
    unanswered: set[RepeatableBatch] = field(default_factory=set)
    """Batches of requests without a response that were not sent again with one so far."""
    _last_sent: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    """The time of the last request, in milliseconds, and the bytes of its batch, by topic and partition."""
    _summation: RecordSummation = field(default_factory=RecordSummation, compare=False)

    def without(self, topics: Collection[str]) -> "ProducedBatches":
        """Return the same without the sums of some topics."""
        keyed = {place: each for place, each in self.keyed.items() if place[0] not in topics}
        return replace(self, topics={each: of for each, of in self.topics.items() if each not in topics}, keyed=keyed)

    def finish(self) -> None:
        """Forget what only further requests would need."""
        self._last_sent.clear()
        self._summation = RecordSummation()

    def add_requests(self, capture: Capture, rows: Int64, found: IndexColumns, outcomes: ProduceOutcomes) -> None:
        """Add Produce requests: rows of a capture, ascending, their columns, and what became of them."""
        turns = np.cumsum(found.request_size) // TOGETHER_BYTES
        for some in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(turns)) + 1):
            if len(some):
                self._add_requests(capture, rows[some], found.request_time_ns[some] // NS_PER_MS, outcomes.where(some))

    def _add_requests(self, capture: Capture, rows: Int64, times_ms: Int64, outcomes: ProduceOutcomes) -> None:
        is_read = np.zeros(len(rows), np.bool_)
        batches = np.zeros(len(rows), np.int64)
        refused = frozenset(
            (at, *place)
            for at in np.flatnonzero(outcomes.may_refuse).tolist()
            for place in _refused(capture.exchange_for_now(int(rows[at])).response)
        )
        requests = _Requests(times_ms, outcomes.is_answered, refused)
        for fields in capture.messages.produced_records(rows, lambda places: is_read.__setitem__(places, True)):
            batches += self._add_fields(fields, requests)
        for at in np.flatnonzero(~is_read).tolist():
            request = capture.exchange_for_now(int(rows[at])).request
            assert request is not None
            batches += self._add_fields(_decoded_fields(request, at), requests)
        extend(self.per_request, batches, MAX_BATCHES)

    def _add_fields(self, fields: RecordsFields, requests: _Requests) -> Int64:
        """Add the batches of `records` fields; return how many each request has."""
        times_ms = requests.times_ms
        counts = np.zeros(len(times_ms), np.int64)
        entries = np.empty(STEP_ENTRIES, ENTRY)
        of_all = range(len(fields.starts))
        is_accepted = self._accepted(fields, requests)
        for step in split_fields(fields.data, fields.starts, fields.ends, of_all, entries, STEP_BYTES):
            batches = _where(step, step["kind"] == BATCH)
            of_request = fields.row[batches["field"]]
            counts += np.bincount(of_request, minlength=len(counts))
            messages = step[step["kind"] == MESSAGE]
            codecs = np.append(batches["attributes"], fields.data[messages["start"] + MESSAGE_ATTRIBUTES]) & CODEC_MASK
            for codec, count in enumerate(np.bincount(codecs).tolist()):
                self.codecs.update({codec_name(codec): count} if count else {})
            is_create_time = batches["attributes"] & LOG_APPEND_TIME == 0
            waits_ms = times_ms[of_request] - batches["base_timestamp"]
            extend(self.waits_ms, waits_ms[is_create_time], MAX_BATCHES)
            self._add_lingers(fields, _where(batches, is_create_time), waits_ms[is_create_time], times_ms)
            batches = _where(batches, is_accepted[batches["field"]])
            sizes = batches["end"] - batches["start"]
            extend(self.records, np.maximum(batches["records_count"], 0), MAX_BATCHES)
            extend(self.sizes, sizes, MAX_BATCHES)
            is_read = np.cumsum(sizes) <= MAX_RECORD_BYTES - self.read_bytes
            self.read_bytes += int(sizes[is_read].sum())
            self.unread += len(batches) - int(is_read.sum())
            self._add_records(fields, _where(batches, is_read), requests.is_answered)
        return counts

    def _add_lingers(self, fields: RecordsFields, batches: Entries, waits_ms: Int64, times_ms: Int64) -> None:
        """Add the waits of batches whose first record came after the last request for their partition, and the bytes of
        what that request sent if it came before."""
        at = batches["field"]
        place = fields.topic[at].astype(np.int64) << 32 | fields.partition[at] & 0xFFFFFFFF
        sent_ms = times_ms[fields.row[at]]
        order = np.argsort(place, kind="stable")
        firsts = np.flatnonzero(np.diff(place[order], prepend=-1))
        sizes = (batches["end"] - batches["start"])[order]
        before_ms, size_before = np.roll(sent_ms[order], 1), np.roll(sizes, 1)
        for n, last in zip(firsts.tolist(), np.append(firsts, len(order))[1:].tolist(), strict=True):
            first = at[order[n]]
            name = fields.names[int(fields.topic[first])], int(fields.partition[first])
            before_ms[n], size_before[n] = self._last_sent.get(name, (NEVER_MS, 0))
            if name in self._last_sent or len(self._last_sent) < MAX_BATCHES:
                self._last_sent[name] = int(sent_ms[order[last - 1]]), int(sizes[last - 1])
        first_ms = batches["base_timestamp"][order]
        is_known = (waits_ms[order] >= 0) & (waits_ms[order] <= LONGEST_WAIT_MS)
        extend(self.lingers_ms, waits_ms[np.sort(order[is_known & (first_ms >= before_ms)])], MAX_BATCHES)
        is_overtaken = is_known & (first_ms <= before_ms) & (before_ms < NEVER_MS)
        extend(self.overtaken, size_before[is_overtaken], MAX_BATCHES)

    @staticmethod
    def _accepted(fields: RecordsFields, requests: _Requests) -> Bool:
        """Return which `records` fields were not refused."""
        is_accepted = np.ones(len(fields.row), np.bool_)
        if requests.refused:
            rows = {row for row, _, _ in requests.refused}
            for at in np.flatnonzero(np.isin(fields.row, list(rows))).tolist():
                place = int(fields.row[at]), fields.names[int(fields.topic[at])], int(fields.partition[at])
                is_accepted[at] = place not in requests.refused
        return is_accepted

    def _add_records(self, fields: RecordsFields, batches: Entries, is_answered: Bool) -> None:
        """Add the sums of the records of batches, by topic and by partition."""
        sums = self._summation.sums(fields.data, batches)
        is_good = batches["error"] == BatchError.NONE
        self.unread += int((~is_good).sum())
        is_good &= self._are_new(fields, batches, sums, is_answered[fields.row[batches["field"]]])
        batches, sums = _where(batches, is_good), sums[is_good]
        topics, partitions = fields.topic[batches["field"]], fields.partition[batches["field"]]
        for topic, which in _groups(topics.astype(np.int64)):
            records, total = batches["records_count"][which], sums["records"][which]
            self.topics.setdefault(fields.names[topic], RecordSum()).add(int(records.sum()), int(total.sum()))
            has_keys = which[sums["keyed_count"][which] > 0]
            for partition, some in _groups(partitions[has_keys]):
                keyed = sums[has_keys[some]]
                sum_of_keyed = self.keyed.setdefault((fields.names[topic], partition), RecordSum())
                sum_of_keyed.add(int(keyed["keyed_count"].sum()), int(keyed["keyed"].sum()))

    def _are_new(self, fields: RecordsFields, batches: Entries, sums: Sums, is_answered: Bool) -> Bool:
        """Return which batches are not sent again because an equal one had no response."""
        is_new = np.ones(len(batches), np.bool_)
        if not self.unanswered and is_answered.all():  # nearly always
            return is_new
        for at in range(len(batches)):
            place = int(batches["field"][at])
            batch = RepeatableBatch(
                fields.names[int(fields.topic[place])], int(fields.partition[place]),
                int(batches["records_count"][at]), int(sums["records"][at]),
            )  # fmt: skip
            if batch in self.unanswered:
                is_new[at] = False
                if is_answered[at]:
                    self.unanswered.remove(batch)
            elif not is_answered[at] and len(self.unanswered) < MAX_BATCHES:
                self.unanswered.add(batch)
        return is_new


def _refused(response: ExchangeMessage | None) -> Iterator[tuple[str, int]]:
    """Yield topic and partition of what a Produce response refuses."""
    for topic in _list(response.body.get("responses")) if response is not None else ():
        for partition in _list(topic.get("partition_responses")):
            index = partition.get("index")
            if partition.get("error_code") and isinstance(index, int):
                assert response is not None
                yield topic_of(topic, response), index


def topic_of(topic: Values, message: ExchangeMessage) -> str:
    """Return the name of a topic in a message, or its id if no name is known."""
    topic_id = str(topic.get("topic_id"))
    return str(topic.get("name") or message.context.topic_names.get(topic_id, topic_id))


def _decoded_fields(request: ExchangeMessage, at: int) -> RecordsFields:
    """Return the `records` fields of one request, decoded, which is at a place among others."""
    topics: list[str] = []
    of_field: list[tuple[int, int]] = []
    parts: list[bytes] = []
    for topic in _list(request.body.get("topic_data")):
        for partition in _list(topic.get("partition_data")):
            records, index = partition.get("records"), partition.get("index")
            if isinstance(records, bytes) and records:
                of_field.append((len(topics), index if isinstance(index, int) else 0))
                parts.append(records)
        topics.append(topic_of(topic, request))
    ends = np.cumsum(np.array([len(each) for each in parts], np.int64))
    numbers, partitions = np.array(of_field, np.int64).reshape(-1, 2).T
    data = np.frombuffer(b"".join(parts), np.uint8)
    starts = np.append(np.zeros(1, np.int64), ends)[:-1]
    return RecordsFields(data, starts, ends, np.full(len(ends), at), numbers.astype(np.int32), partitions, topics)


def _list(value: object) -> list[Values]:
    return value if isinstance(value, list) else []


def _where(batches: Entries, chosen: Bool) -> Entries:
    """Return some batches; all of them, which is what nearly always is chosen, without a copy of their wide rows."""
    return batches if chosen.all() else batches[chosen]


def _groups(numbers: Int64) -> list[tuple[int, Int64]]:
    """Return each distinct number, in the order of appearance, with its places."""
    if len(numbers) and (numbers == numbers[0]).all():  # nearly always
        return [(int(numbers[0]), np.arange(len(numbers)))]
    distinct, first = np.unique(numbers, return_index=True)
    return [(number, np.flatnonzero(numbers == number)) for number in distinct[np.argsort(first)].tolist()]
