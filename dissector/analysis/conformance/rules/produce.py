"""Rules on Produce requests and their batches."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from dissector.analysis.conformance.events import Body, MessageEvent
from dissector.analysis.conformance.rule import ProtocolRule, RuleSide, Verdict, partitions, verdict
from dissector.analysis.records import NO_PRODUCER
from dissector.protocol.records.batch import Batch
from dissector.protocol.records.entries import RecordsEntryKind, split_entries
from dissector.protocol.schema.error_codes import ErrorCode

PRODUCE: Final = frozenset({"Produce"})
ZSTD: Final = 4
ZSTD_SINCE: Final = 7
IN_FLIGHT: Final = 5


class SentBatch(NamedTuple):
    """A batch of magic 2 in a request."""

    topic: str
    partition: int
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
        SentBatch(event.topic(topic), partition["index"], path, batch)
        for topic, partition, path in produced(event.message.body)
        for batch in batches_in(partition["records"] or b"")
    )


def batches_in(data: bytes) -> list[Batch]:
    """Return the whole batches of a `records` field."""
    return [
        Batch.read(data[entry.start : entry.end])
        for entry in split_entries(data)
        if entry.kind is RecordsEntryKind.BATCH
    ]


class Acks(ProtocolRule):
    """acks has a value that brokers know."""

    code = "acks-value"
    title = "acks is 0, 1 or -1"
    source = "ProduceRequest.json; error INVALID_REQUIRED_ACKS"
    apis = PRODUCE

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        if event.body:
            acks = event.body["acks"]
            yield verdict(event, acks in (-1, 0, 1), "acks", f"acks is {acks}")


class OneBatch(ProtocolRule):
    """Since version 3 a partition has exactly one batch, of magic 2."""

    code = "one-batch-a-partition"
    title = "since v3 a partition of a Produce request has exactly one batch, of magic 2"
    source = "KIP-98; Kafka's ProduceRequest"
    apis = PRODUCE

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        if event.version < 3:
            return
        for _, partition, path in produced(event.message.body):
            kinds = [entry.kind for entry in split_entries(partition["records"] or b"")]
            words = f"{len(kinds)} entries: {', '.join(kind.value for kind in kinds[:3]) or 'none'}"
            yield verdict(event, kinds == [RecordsEntryKind.BATCH], path, words)


class Crc(ProtocolRule):
    """The CRC of a batch is that of its bytes."""

    code = "batch-crc"
    title = "a batch has the CRC-32C of its bytes"
    source = "KIP-98, the record batch"
    apis = PRODUCE

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        for each in batches(event):
            if not event.message.masked:
                yield verdict(
                    event, each.batch.crc_valid, each.path, f"CRC {each.batch.crc:#010x} is not that of the batch"
                )


class Counts(ProtocolRule):
    """The header's offsets are those of its records."""

    code = "batch-offsets"
    title = "a produced batch counts from offset 0: last_offset_delta is its number of records less 1"
    source = "KIP-98; Kafka's LogValidator"
    apis = PRODUCE

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        for each in batches(event):
            delta, count = each.batch.last_offset_delta, each.batch.records_count
            yield verdict(
                event, count > 0 and delta == count - 1, each.path, f"last_offset_delta {delta} of {count} records"
            )


class KnownCodec(ProtocolRule):
    """A batch is compressed by a codec that the version has."""

    code = "batch-codec"
    title = "a batch has a known codec; zstd since Produce v7"
    source = "KIP-110"
    apis = PRODUCE

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        for each in batches(event):
            codec = each.batch.codec
            is_kept = codec < ZSTD or (codec == ZSTD and event.version >= ZSTD_SINCE)
            yield verdict(event, is_kept, each.path, f"{each.batch.compression} in v{event.version}")


class AttributesOfClients(ProtocolRule):
    """Clients leave to brokers what is theirs."""

    code = "batch-attributes"
    title = "a producer sends no control batch and no LogAppendTime timestamps"
    source = "KIP-98, KIP-32"
    apis = PRODUCE

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        for each in batches(event):
            marks = {"control": each.batch.is_control, "LogAppendTime": each.batch.is_append_time}
            found = [name for name, is_set in marks.items() if is_set]
            yield verdict(event, not found, each.path, f"a batch with {' and '.join(found)}")


class IdempotentAcks(ProtocolRule):
    """Idempotence needs all replicas."""

    code = "idempotent-acks"
    title = "batches with a producer id are sent with acks=-1"
    source = "KIP-98"
    apis = PRODUCE

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        if any(each.batch.producer_id != NO_PRODUCER for each in batches(event)):
            yield verdict(
                event, event.body["acks"] == -1, "acks", f"acks is {event.body['acks']}, and a batch has a producer id"
            )


class IdempotentInFlight(ProtocolRule):
    """A broker remembers five batches of a producer."""

    code = "idempotent-in-flight"
    title = "an idempotent producer has at most 5 requests in flight on a connection"
    source = "KIP-98; max.in.flight.requests.per.connection of Kafka's producer"
    apis = PRODUCE

    def __init__(self) -> None:
        self._open: dict[int, int] = {}

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        if event.exchange.response is None:
            return
        self._open[event.connection] = count = self._open.get(event.connection, 0) + 1
        if any(each.batch.producer_id != NO_PRODUCER for each in batches(event)):
            yield verdict(event, count <= IN_FLIGHT, "", f"{count} Produce requests are in flight")

    def response(self, event: MessageEvent) -> Iterator[Verdict]:
        self._open[event.connection] = self._open.get(event.connection, 1) - 1
        return iter(())


class Sequences(ProtocolRule):
    """Batches of a producer are numbered without holes."""

    code = "sequence-numbers"
    title = "a producer numbers the records of a partition without gaps; a new epoch begins at 0"
    source = "KIP-98, KIP-360; error OUT_OF_ORDER_SEQUENCE_NUMBER"
    apis = PRODUCE

    def __init__(self) -> None:
        self._next: dict[tuple[int, str, int], tuple[int, int]] = {}

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        for topic, partition, path, batch in batches(event):
            if batch.producer_id == NO_PRODUCER:
                continue
            key = batch.producer_id, topic, partition
            epoch, expected = self._next.get(key, (None, 0))
            first = batch.base_sequence
            if epoch == batch.producer_epoch:
                yield verdict(event, first <= expected, path, f"sequence {first} after {expected - 1}")
            elif epoch is not None:
                yield verdict(event, first == 0, path, f"sequence {first} begins epoch {batch.producer_epoch}")
            after = (first + batch.records_count) % (1 << 31)
            if epoch != batch.producer_epoch or first >= expected:
                self._next[key] = batch.producer_epoch, after


class ProducerEpochs(ProtocolRule):
    """The epoch of a producer never goes back."""

    code = "producer-epoch"
    title = "the epoch of a producer id never goes down"
    source = "KIP-98, KIP-360"
    apis = PRODUCE

    def __init__(self) -> None:
        self._epochs: dict[tuple[int, int], int] = {}

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        for _, _, path, batch in batches(event):
            if batch.producer_id == NO_PRODUCER:
                continue
            key = event.connection, batch.producer_id
            last = self._epochs.get(key, -1)
            yield verdict(event, batch.producer_epoch >= last, path, f"epoch {batch.producer_epoch} after {last}")
            self._epochs[key] = max(last, batch.producer_epoch)


class FencedProducer(ProtocolRule):
    """A producer that was fenced stops."""

    code = "fenced-producer"
    title = "after PRODUCER_FENCED or INVALID_PRODUCER_EPOCH nothing is produced with that epoch"
    source = "KIP-98, KIP-360, KIP-588"
    apis = PRODUCE
    _FENCED: Final = frozenset((ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED))

    def __init__(self) -> None:
        self._fenced: set[tuple[int, int]] = set()

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        for _, _, path, batch in batches(event):
            if (batch.producer_id, batch.producer_epoch) in self._fenced:
                yield verdict(
                    event, False, path, f"producer {batch.producer_id}, epoch {batch.producer_epoch} is fenced"
                )

    def response(self, event: MessageEvent) -> Iterator[Verdict]:
        if not any(error in self._FENCED for _, _, error in produce_errors(event.body)):
            return
        yield verdict(event, True, "", "")
        for _, partition, _ in produced(event.request):
            self._fenced |= {
                (each.producer_id, each.producer_epoch) for each in batches_in(partition["records"] or b"")
                if each.producer_id != NO_PRODUCER
            }  # fmt: skip


class TooLarge(ProtocolRule):
    """A batch that is too large is not sent again as it is."""

    code = "fatal-error-retried"
    title = "a batch that was rejected for good is not sent again unchanged"
    source = (
        "errors MESSAGE_TOO_LARGE, INVALID_RECORD, INVALID_REQUIRED_ACKS, TOPIC_AUTHORIZATION_FAILED: not retriable"
    )
    apis = PRODUCE
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

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        for _, partition, path in produced(event.message.body):
            refused = self._refused.get((event.connection, hash(partition["records"])))
            if refused is not None:
                yield verdict(event, False, path, f"the batch of exchange {refused:,}, which was refused for good")

    def response(self, event: MessageEvent) -> Iterator[Verdict]:
        errors = {(topic, index) for topic, index, error in produce_errors(event.body) if error in self._FATAL}
        if not errors:
            return
        yield verdict(event, True, "", "")
        for topic, partition, _ in produced(event.request):
            if (_key(topic), partition["index"]) in errors and len(self._refused) < 10_000:
                self._refused[event.connection, hash(partition["records"])] = event.number


class ProducePartitions(ProtocolRule):
    """A broker answers for each partition that was asked."""

    code = "produce-partitions"
    title = "a Produce response has the partitions of its request"
    source = "ProduceResponse.json"
    side = RuleSide.BROKER
    apis = PRODUCE

    def response(self, event: MessageEvent) -> Iterator[Verdict]:
        if not event.body or not event.request:
            return
        requested = {(_key(topic), each["index"]) for topic, each, _ in produced(event.request)}
        found = {(topic, index) for topic, index, _ in produce_errors(event.body)}
        words = f"{len(found)} partitions for {len(requested)} that were asked"
        yield verdict(event, requested == found, "responses", words)


def produce_errors(body: Body) -> Iterator[tuple[Any, int, int]]:
    """Yield the topic, the partition and the error of each partition of a response."""
    for topic, partition, _ in partitions(body, "responses", "partition_responses"):
        yield _key(topic), partition["index"], partition["error_code"]


def _key(topic: Body) -> Any:
    return topic.get("name") or topic.get("topic_id")


RULES: Final = (
    Acks, OneBatch, Crc, Counts, KnownCodec, AttributesOfClients, IdempotentAcks, IdempotentInFlight, Sequences,
    ProducerEpochs, FencedProducer, TooLarge, ProducePartitions,
)  # fmt: skip
