"""Rules on the records of Produce requests and Fetch responses, for all formats of them."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from dissector.analysis.conformance.declared_fields import OfRecords, is_negative
from dissector.analysis.conformance.events import Body, MessageEvent
from dissector.analysis.conformance.rule import RuleBook, RuleSide, Verdict, partitions
from dissector.analysis.conformance.rules.produce import RECORDS, produced
from dissector.core.text import counted
from dissector.protocol.kernel.record_tests import have_messages
from dissector.protocol.records.compression import DecompressionError
from dissector.protocol.records.entries import MAGIC_AT, RecordsEntryKind, split_entries
from dissector.protocol.records.legacy import LegacyRecord, whole_messages
from dissector.protocol.records.to_json import frame_budget
from dissector.protocol.wire import WireError

RULES: Final = RuleBook()
FETCH: Final = frozenset({"Fetch"})
PRODUCE: Final = frozenset({"Produce"})
_NEWEST_MAGIC: Final = {"Produce": ((2, 0), (3, 1)), "Fetch": ((2, 0), (4, 1))}
"""By API: before this version, this magic is the newest (KIP-32, KIP-98)."""
NEWEST: Final = 2
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
    """a fetched partition without records has none, and not null."""
    for partition, path in fetched(event.message.body):
        yield Verdict(event, partition["records"] is not None, path, "null, which clients refuse: write 0 bytes")


def newest_magic(api: str, version: int) -> int:
    """Return the newest magic that a version of Produce or Fetch may have."""
    return next((magic for before, magic in _NEWEST_MAGIC[api] if version < before), NEWEST)


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
                words = _offset_words(data[entry.start : entry.end], is_produced=event.is_request)
                if words is not None:
                    yield Verdict(event, not words, path, words)


def _offset_words(data: bytes, *, is_produced: bool) -> str | None:
    """Return what is wrong with the offsets in a wrapper; empty if nothing is, None if it is no wrapper."""
    try:
        wrapper = LegacyRecord.read(data)
        if not wrapper.codec:
            return None
        budget = frame_budget()
        plain = budget.decompressed(wrapper.codec, wrapper.value or b"", magic=wrapper.magic)
        parts = budget.admitted(split_entries(plain), len(wrapper.value or b""))
        offsets = [LegacyRecord.read(part).offset for part in whole_messages(plain, parts)]
    except (WireError, DecompressionError):
        return None  # `bad-compression` and `bad-record` are findings of their own
    return _words(wrapper, offsets, is_produced=is_produced) if offsets else None


def _words(wrapper: LegacyRecord, offsets: list[int], *, is_produced: bool) -> str:
    count, first, last = len(offsets), offsets[0], offsets[-1]
    rises = all(before < after for before, after in pairwise(offsets))
    if not rises and not (is_produced and wrapper.magic == 0):
        return f"offsets of {counted(count, 'inner message')} do not rise"
    if wrapper.magic == 0:
        is_kept = is_produced or last == wrapper.offset
        return "" if is_kept else f"the last inner offset is {last:,}, the wrapper's {wrapper.offset:,}"
    if is_produced:
        is_kept = offsets == list(range(count))
        return "" if is_kept else f"inner offsets from {first:,} to {last:,}: relative ones begin at 0"
    if last > wrapper.offset:
        return f"the last inner offset is {last:,}, above the wrapper's {wrapper.offset:,}"
    # Compaction removes messages, and the base is never below 0: absolute offsets show by a first that is too large.
    is_absolute = last == wrapper.offset and first >= count > 0
    return f"inner offsets from {first:,} to {last:,} are absolute" if is_absolute else ""


@RULES.request("produced-inner-offsets", "KIP-31", PRODUCE, reads={RECORDS: OfRecords(have_messages)})
def produced_offsets(event: MessageEvent) -> Iterator[Verdict]:
    """messages inside a compressed one of magic 1 count their offsets from 0."""
    return _inner_offsets(event)


@RULES.response(
    "fetched-inner-offsets", "KIP-31", FETCH, side=RuleSide.BROKER, reads={FETCHED: OfRecords(have_messages)}
)
def fetched_offsets(event: MessageEvent) -> Iterator[Verdict]:
    """messages inside a compressed one have offsets relative to it in magic 1, and absolute ones in magic 0."""
    return _inner_offsets(event)
