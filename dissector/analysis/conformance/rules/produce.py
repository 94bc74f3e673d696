"""Rules on Produce requests and their batches."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from dissector.analysis.conformance.batch_columns import batches_in
from dissector.analysis.conformance.declared_fields import OfRecords, is_one_of
from dissector.analysis.conformance.events import Body, MessageEvent
from dissector.analysis.conformance.message_columns import MessageColumns
from dissector.analysis.conformance.proving import of_requests, running, since, unless
from dissector.analysis.conformance.rule import Proof, RuleBook, RuleMemory, RuleSide, Verdict, partitions
from dissector.bulk.single_batches import SingleBatchColumns, single_batches
from dissector.core.arrays import Bool, Int64, UInt64
from dissector.protocol.kernel.piece_tests import have_batches, have_other_checksums
from dissector.protocol.records.batch import NO_PRODUCER, Batch
from dissector.protocol.records.entries import RecordsEntryKind, split_entries
from dissector.protocol.records.format_rules import ZSTD_SINCE
from dissector.protocol.schema.error_codes import ErrorCode

RULES: Final = RuleBook()
PRODUCE: Final = frozenset({"Produce"})
ZSTD: Final = 4
IN_FLIGHT: Final = 5
_SEQUENCES: Final = 1 << 31
"""Sequence numbers count on from 0 there."""
_RUN_BITS: Final = 33
"""A sequence number and a count that is added to it, of 32 bits each, have so many."""


_ERROR: Final = "response.responses.partition_responses.error_code"
RECORDS: Final = "request.topic_data.partition_data.records"
TOPIC: Final = ("name", "topic_id")


class SentBatch(NamedTuple):
    """A batch of magic 2 in a request."""

    topic: Body
    """The elements that it is in, for rules that read their names."""
    partition: Body
    path: str
    batch: Batch


def produced(body: Body) -> Iterator[tuple[Body, Body, str]]:
    """Yield topic, partition and the path of its records of each partition of a Produce request."""
    for topic, partition, path in partitions(body, "topic_data", "partition_data"):
        yield topic, partition, f"{path}.records"


def batches(event: MessageEvent) -> tuple[SentBatch, ...]:
    """Return the batches of a Produce request."""
    return event.once(_batches)


def _batches(event: MessageEvent) -> tuple[SentBatch, ...]:
    return tuple(
        SentBatch(topic, partition, path, batch)
        for topic, partition, path in produced(event.message.body)
        for batch in batches_in(partition["records"] or b"")
    )


def _counts_otherwise(addresses: UInt64, sizes: Int64) -> Bool:
    """Which fields have batches other than one whose numbers fit."""
    headers, are_batches = single_batches(addresses, sizes)
    count = headers["records_count"].astype(np.int64)
    others = ~are_batches
    others[others] = have_batches(addresses[others], sizes[others])
    others[are_batches] = (count <= 0) | (headers["last_offset_delta"] != count - 1)
    return others


@RULES.request("acks-value", "ProduceRequest.json; error INVALID_REQUIRED_ACKS", PRODUCE, reads={"request.acks": None})
def acks(event: MessageEvent) -> Iterator[Verdict]:
    """acks is 0, 1 or -1."""
    if event.body:
        acks = event.body["acks"]
        yield Verdict(event, acks in (-1, 0, 1), "acks", f"acks is {acks}")


@RULES.request("one-batch-a-partition", "KIP-98; Kafka's ProduceRequest", PRODUCE, reads={RECORDS: None})
def one_batch(event: MessageEvent) -> Iterator[Verdict]:
    """since v3 a partition of a Produce request has exactly one batch, of magic 2."""
    if event.version < 3:
        return
    for _, partition, path in produced(event.message.body):
        kinds = [entry.kind for entry in split_entries(partition["records"] or b"")]
        words = f"{len(kinds)} entries: {', '.join(kind.value for kind in kinds[:3]) or 'none'}"
        yield Verdict(event, kinds == [RecordsEntryKind.BATCH], path, words)


@RULES.request("batch-crc", "KIP-98, the record batch", PRODUCE, reads={RECORDS: OfRecords(have_other_checksums)})
def crc(event: MessageEvent) -> Iterator[Verdict]:
    """a batch has the CRC-32C of its bytes."""
    for each in batches(event):
        if not event.message.masked:
            yield Verdict(
                event, each.batch.crc_valid, each.path, f"CRC {each.batch.crc:#010x} is not that of the batch"
            )


@RULES.request("batch-offsets", "KIP-98; Kafka's LogValidator", PRODUCE, reads={RECORDS: OfRecords(_counts_otherwise)})
def counts(event: MessageEvent) -> Iterator[Verdict]:
    """a produced batch counts from offset 0: last_offset_delta is its number of records minus 1."""
    for each in batches(event):
        delta, count = each.batch.last_offset_delta, each.batch.records_count
        yield Verdict(
            event, count > 0 and delta == count - 1, each.path, f"last_offset_delta {delta} of {count} records"
        )


@RULES.request("batch-codec", "KIP-110", PRODUCE, reads={RECORDS: None})
def known_codec(event: MessageEvent) -> Iterator[Verdict]:
    """a batch has a known codec; zstd since Produce v7."""
    for each in batches(event):
        codec = each.batch.codec
        is_kept = codec < ZSTD or (codec == ZSTD and event.version >= ZSTD_SINCE)
        yield Verdict(event, is_kept, each.path, f"{each.batch.compression} in v{event.version}")


@RULES.request("batch-attributes", "KIP-98, KIP-32", PRODUCE, reads={RECORDS: None})
def attributes_of_clients(event: MessageEvent) -> Iterator[Verdict]:
    """a producer sends no control batch and no LogAppendTime timestamps."""
    for each in batches(event):
        marks = {"control": each.batch.is_control, "LogAppendTime": each.batch.is_append_time}
        found = [name for name, is_set in marks.items() if is_set]
        yield Verdict(event, not found, each.path, f"a batch with {' and '.join(found)}")


@RULES.request("idempotent-acks", "KIP-98", PRODUCE, reads={RECORDS: None, "request.acks": None})
def idempotent_acks(event: MessageEvent) -> Iterator[Verdict]:
    """batches with a producer id are sent with acks=-1."""
    if any(each.batch.producer_id != NO_PRODUCER for each in batches(event)):
        yield Verdict(
            event, event.body["acks"] == -1, "acks", f"acks is {event.body['acks']}, and a batch has a producer id"
        )


@RULES.memory("idempotent-in-flight", "KIP-98; max.in.flight.requests.per.connection of Kafka's producer", PRODUCE)
class IdempotentInFlight(RuleMemory):
    """an idempotent producer has at most 5 requests in flight on a connection."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """The requests of a connection that wait are counted in columns."""
        sent = columns.batches
        counted = columns.messages_of(columns.of(apis) & columns.is_answered)
        change = np.where(counted, np.where(columns.is_request, 1, -1), 0)
        waiting = running(columns.connection, change)
        has_producer = np.zeros(len(columns.rows), np.bool_)
        has_producer[sent.of_producers.columns.at] = True
        says = columns.is_request & columns.messages_of(has_producer & columns.is_answered)
        unclear = columns.of(apis) & (sent.is_odd | (columns.is_answered & ~columns.is_readable))
        is_odd = (says & (waiting > IN_FLIGHT)) | columns.messages_of(unclear)
        found = unless(says.astype(np.int64), is_odd, columns.connection)
        return found._replace(open=found.open & columns.messages_of(columns.of(apis)))

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        if event.exchange.response is None:
            return
        self._open[event.connection] = count = self._open.get(event.connection, 0) + 1
        if any(each.batch.producer_id != NO_PRODUCER for each in batches(event)):
            yield Verdict(event, count <= IN_FLIGHT, "", f"{count} Produce requests are in flight")

    def response(self, event: MessageEvent) -> None:
        self._open[event.connection] = self._open.get(event.connection, 1) - 1


def _continues(sent: SingleBatchColumns, is_first: Bool) -> Bool:
    """Which batches go on where the newest one before them ended, were sent before, or begin an epoch at 0."""
    of_epoch = ~is_first & (np.diff(sent.producer_epoch, prepend=0) != 0)
    begins = is_first | of_epoch
    first, after = sent.base_sequence, sent.base_sequence + sent.records_count
    base = np.cumsum(begins) << _RUN_BITS
    newest = np.maximum.accumulate(base + after) - base  # since the last one that begins
    before = np.concatenate([[0], newest[:-1]])
    follows: Bool = np.where(begins, is_first | (first == 0), (first == before) | (after <= before))
    return follows & (first >= 0) & (sent.records_count >= 0) & (after < _SEQUENCES)


def _is_no_older(sent: SingleBatchColumns, is_first: Bool) -> Bool:
    """Which batches have no lower epoch than the one before them."""
    found: Bool = is_first | (np.diff(sent.producer_epoch, prepend=0) >= 0)
    return found


@RULES.memory("sequence-numbers", "KIP-98, KIP-360; error OUT_OF_ORDER_SEQUENCE_NUMBER", PRODUCE)
class Sequences(RuleMemory):
    """a producer numbers the records of a partition without gaps; a new epoch begins at 0."""

    def __init__(self) -> None:
        self._next: dict[tuple[int, str, int], tuple[int, int]] = {}

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """A batch follows the one before it of its producer and partition, or begins another epoch."""
        sent = columns.batches.of_producers
        keys = sent.columns.producer_id, sent.columns.topic, sent.columns.partition
        breaks = np.zeros(len(sent.columns.at), np.bool_)
        return of_requests(columns, *sent.kept(keys, _continues, breaks, counts_first=False))

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        for topic, partition, path, batch in batches(event):
            if batch.producer_id == NO_PRODUCER:
                continue
            key = batch.producer_id, event.topic(topic), partition["index"]
            epoch, expected = self._next.get(key, (None, 0))
            first = batch.base_sequence
            if epoch == batch.producer_epoch:
                yield Verdict(event, first <= expected, path, f"sequence {first} after {expected - 1}")
            elif epoch is not None:
                yield Verdict(event, first == 0, path, f"sequence {first} begins epoch {batch.producer_epoch}")
            after = (first + batch.records_count) % _SEQUENCES
            if epoch != batch.producer_epoch or first >= expected:
                self._next[key] = batch.producer_epoch, after


@RULES.memory("producer-epoch", "KIP-98, KIP-360", PRODUCE)
class ProducerEpochs(RuleMemory):
    """the epoch of a producer id never decreases."""

    def __init__(self) -> None:
        self._epochs: dict[tuple[int, int], int] = {}

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """The epoch of a batch is not below that of the one before it of its producer."""
        sent = columns.batches.of_producers
        keys = columns.found.connection[sent.columns.at], sent.columns.producer_id
        breaks = sent.columns.producer_epoch < -1
        return of_requests(columns, *sent.kept(keys, _is_no_older, breaks, counts_first=True))

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        for _, _, path, batch in batches(event):
            if batch.producer_id == NO_PRODUCER:
                continue
            key = event.connection, batch.producer_id
            last = self._epochs.get(key, -1)
            yield Verdict(event, batch.producer_epoch >= last, path, f"epoch {batch.producer_epoch} after {last}")
            self._epochs[key] = max(last, batch.producer_epoch)


@RULES.memory("fenced-producer", "KIP-98, KIP-360, KIP-588", PRODUCE)
class FencedProducer(RuleMemory):
    """after PRODUCER_FENCED or INVALID_PRODUCER_EPOCH nothing is produced with that epoch."""

    _FENCED: Final = frozenset((ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED))

    def __init__(self) -> None:
        self._fenced: set[tuple[int, int]] = set()

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """It begins with an error."""
        fenced = columns.tested(apis, {_ERROR: is_one_of(*cls._FENCED)})
        return since(columns, fenced, apis, of_connection=False)

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        for _, _, path, batch in batches(event):
            if (batch.producer_id, batch.producer_epoch) in self._fenced:
                yield Verdict(
                    event, False, path, f"producer {batch.producer_id}, epoch {batch.producer_epoch} is fenced"
                )

    def response(self, event: MessageEvent) -> Iterator[Verdict]:
        if not any(error in self._FENCED for _, _, error in produce_errors(event.body)):
            return
        yield Verdict(event, True, "", "")
        for _, partition, _ in produced(event.request):
            self._fenced |= {
                (each.producer_id, each.producer_epoch) for each in batches_in(partition["records"] or b"")
                if each.producer_id != NO_PRODUCER
            }  # fmt: skip


@RULES.memory(
    "fatal-error-retried",
    "errors MESSAGE_TOO_LARGE, INVALID_RECORD, INVALID_REQUIRED_ACKS, TOPIC_AUTHORIZATION_FAILED: not retriable",
    PRODUCE,
)
class TooLarge(RuleMemory):
    """a batch that was rejected for good is not sent again unchanged."""

    _FATAL: Final = frozenset(
        (
            ErrorCode.MESSAGE_TOO_LARGE,
            ErrorCode.RECORD_LIST_TOO_LARGE,
            ErrorCode.INVALID_REQUIRED_ACKS,
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            ErrorCode.INVALID_RECORD,
        )
    )

    def __init__(self) -> None:
        self._refused: dict[tuple[int, int], int] = {}

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """It begins with an error."""
        return since(columns, columns.tested(apis, {_ERROR: is_one_of(*cls._FATAL)}), apis, of_connection=False)

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        for _, partition, path in produced(event.message.body):
            refused = self._refused.get((event.connection, hash(partition["records"])))
            if refused is not None:
                yield Verdict(event, False, path, f"the batch of exchange {refused:,}, which was refused for good")

    def response(self, event: MessageEvent) -> Iterator[Verdict]:
        errors = {(topic, index) for topic, index, error in produce_errors(event.body) if error in self._FATAL}
        if not errors:
            return
        yield Verdict(event, True, "", "")
        for topic, partition, _ in produced(event.request):
            if (_key(topic), partition["index"]) in errors and len(self._refused) < 10_000:
                self._refused[event.connection, hash(partition["records"])] = event.number


@RULES.response(
    "produce-partitions",
    "ProduceResponse.json",
    PRODUCE,
    side=RuleSide.BROKER,
    reads={
        **dict.fromkeys(f"request.topic_data.{name}" for name in (*TOPIC, "partition_data", "partition_data.index")),
        **dict.fromkeys(
            f"response.responses.{name}" for name in (*TOPIC, "partition_responses", "partition_responses.index")
        ),
    },
)
def produce_partitions(event: MessageEvent) -> Iterator[Verdict]:
    """a Produce response has the partitions of its request."""
    if not event.body or not event.request:
        return
    requested = {(_key(topic), each["index"]) for topic, each, _ in produced(event.request)}
    found = {(topic, index) for topic, index, _ in produce_errors(event.body)}
    words = f"{len(found)} partitions for {len(requested)} that were asked"
    yield Verdict(event, requested == found, "responses", words)


def produce_errors(body: Body) -> Iterator[tuple[Any, int, int]]:
    """Yield the topic, the partition and the error of each partition of a response."""
    for topic, partition, _ in partitions(body, "responses", "partition_responses"):
        yield _key(topic), partition["index"], partition["error_code"]


def _key(topic: Body) -> Any:
    return topic.get("name") or topic.get("topic_id")
