"""Rules on the records of Produce requests and Fetch responses, for all formats of them."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from dissector.analysis.conformance.declared_fields import OfRecords, is_negative
from dissector.analysis.conformance.events import Body, MessageEvent
from dissector.analysis.conformance.rule import RuleBook, RuleSide, Verdict, partitions
from dissector.analysis.conformance.rules.produce import RECORDS, produced
from dissector.protocol.kernel.piece_tests import have_wrappers
from dissector.protocol.records.entries import MAGIC_AT, RecordsEntryKind, split_entries
from dissector.protocol.records.format_rules import NEWEST, inner_offset_words, newest_magic

RULES: Final = RuleBook()
FETCH: Final = frozenset({"Fetch"})
PRODUCE: Final = frozenset({"Produce"})
FETCHED: Final = "response.responses.partitions.records"


class _RecordsField(NamedTuple):
    """The records of a partition, and where they are."""

    path: str
    data: bytes


def fetched(body: Body) -> Iterator[tuple[Body, str]]:
    """Yield each partition of a Fetch response, and the path of its records."""
    for _, partition, path in partitions(body, "responses"):
        yield partition, f"{path}.records"


def _records(event: MessageEvent) -> Iterator[_RecordsField]:
    body = event.message.body
    found = ((each, path) for _, each, path in produced(body)) if event.is_request else fetched(body)
    for partition, path in found:
        if partition["records"]:
            yield _RecordsField(path, partition["records"])


@RULES.response("fetch-records-null", "librdkafka, sarama: clients that refuse null; Kafka's FetchResponse", FETCH,
                side=RuleSide.BROKER, reads={FETCHED: is_negative})  # fmt: skip
def no_null(event: MessageEvent) -> Iterator[Verdict]:
    """a fetched partition without records has an empty records field, not null."""
    for partition, path in fetched(event.message.body):
        yield Verdict(event, partition["records"] is not None, path, "null, which clients refuse: write 0 bytes")


def _magics(event: MessageEvent) -> Iterator[Verdict]:
    newest = newest_magic(event.api, event.version)
    if newest == NEWEST:
        return  # all magics are allowed
    for path, data in _records(event):
        entries = [each for each in split_entries(data) if each.kind in _KNOWN]
        magics = {data[each.start + MAGIC_AT] for each in entries}
        words = f"magic {max(magics, default=0)} in v{event.version}, whose newest is {newest}"
        if magics:
            yield Verdict(event, max(magics) <= newest, path, words)


_KNOWN: Final = frozenset((RecordsEntryKind.BATCH, RecordsEntryKind.MESSAGE))


@RULES.request("produce-magic", "KIP-32, KIP-98; Kafka's ProduceRequest", PRODUCE, reads={RECORDS: None})
def produced_magic(event: MessageEvent) -> Iterator[Verdict]:
    """before Produce v3 records have magic 1 at most, before v2 magic 0."""
    return _magics(event)


@RULES.response("fetch-magic", "KIP-32, KIP-98; Kafka's KafkaApis converts down", FETCH, side=RuleSide.BROKER,
                reads={FETCHED: None})  # fmt: skip
def fetched_magic(event: MessageEvent) -> Iterator[Verdict]:
    """before Fetch v4 records have magic 1 at most, before v2 magic 0."""
    return _magics(event)


def _inner_offsets(event: MessageEvent) -> Iterator[Verdict]:
    for path, data in _records(event):
        for entry in split_entries(data):
            if entry.kind is RecordsEntryKind.MESSAGE:
                words = inner_offset_words(data[entry.start : entry.end], is_produced=event.is_request)
                if words is not None:
                    yield Verdict(event, not words, path, words)


@RULES.request("produced-inner-offsets", "KIP-31", PRODUCE, reads={RECORDS: OfRecords(have_wrappers)})
def produced_offsets(event: MessageEvent) -> Iterator[Verdict]:
    """messages inside a compressed one of magic 1 count their offsets from 0."""
    return _inner_offsets(event)


@RULES.response(
    "fetched-inner-offsets", "KIP-31", FETCH, side=RuleSide.BROKER, reads={FETCHED: OfRecords(have_wrappers)}
)
def fetched_offsets(event: MessageEvent) -> Iterator[Verdict]:
    """messages inside a compressed one have offsets relative to it in magic 1, and absolute ones in magic 0."""
    return _inner_offsets(event)
