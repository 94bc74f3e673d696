"""What responses owe: each that is asked for is answered, in all APIs that take a list; ids are those that are pending.

An API is an entry of `ASKED`: where its request lists what it asks for, and where its response lists the answers.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from dissector.analysis.conformance.declared_fields import Reading, Silences, is_set
from dissector.analysis.conformance.events import Body, MessageEvent
from dissector.analysis.conformance.message_columns import MessageColumns
from dissector.analysis.conformance.rule import Proof, RuleBook, RuleMemory, RuleSide, Verdict
from dissector.analysis.conformance.rules.fetch import FULL_FETCHES
from dissector.core.arrays import Bool, Int64
from dissector.core.text import counted
from dissector.exchange.row_findings import NOT_PENDING, ORPHAN_OF_WHOLE
from dissector.protocol.schema.field_enums import FetchSessionEpoch

RULES: Final = RuleBook()
NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
"""The topic id of topics that are named."""


class Listed(NamedTuple):
    """An array of structures, or of plain values if it has no names."""

    array: str
    names: tuple[tuple[str, ...], ...] = ()
    """Ways in which an element is named: fields that together do so."""


_TOPIC: Final = (("name",), ("topic",), ("topic_id",))
_TOPICS: Final = Listed("topics", _TOPIC)
_INDEXES: Final = Listed("partitions", (("partition_index",), ("partition",)))
_RESULTS: Final = Listed("results_by_partition", (("partition_index",),))
_RESOURCE: Final = (("resource_type", "resource_name"),)
_GROUP: Final = (("group_id",),)
Path = tuple[Listed, ...]


class Asked(NamedTuple):
    """Where a request asks, and where its response answers."""

    request: Path
    response: Path


ASKED: Final[Mapping[str, tuple[Asked, ...]]] = {
    "Fetch": (Asked((_TOPICS, _INDEXES), (Listed("responses", _TOPIC), _INDEXES)),),
    "ListOffsets": (Asked((_TOPICS, _INDEXES), (_TOPICS, _INDEXES)),),
    "OffsetForLeaderEpoch": (Asked((_TOPICS, _INDEXES), (_TOPICS, _INDEXES)),),
    "Metadata": (Asked((_TOPICS,), (_TOPICS,)),),
    "OffsetCommit": (Asked((_TOPICS, _INDEXES), (_TOPICS, _INDEXES)),),
    "TxnOffsetCommit": (Asked((_TOPICS, _INDEXES), (_TOPICS, _INDEXES)),),
    "OffsetFetch": (
        Asked((_TOPICS, Listed("partition_indexes")), (_TOPICS, _INDEXES)),
        Asked((Listed("groups", _GROUP), _TOPICS, Listed("partition_indexes")),
              (Listed("groups", _GROUP), _TOPICS, _INDEXES)),
    ),
    "OffsetDelete": (Asked((_TOPICS, _INDEXES), (_TOPICS, _INDEXES)),),
    "DeleteRecords": (Asked((_TOPICS, _INDEXES), (_TOPICS, _INDEXES)),),
    "CreateTopics": (Asked((_TOPICS,), (_TOPICS,)),),
    "DeleteTopics": (
        Asked((Listed("topic_names"),), (Listed("responses", _TOPIC),)),
        Asked((_TOPICS,), (Listed("responses", _TOPIC),)),
    ),
    "CreatePartitions": (Asked((_TOPICS,), (Listed("results", _TOPIC),)),),
    "DescribeConfigs": (Asked((Listed("resources", _RESOURCE),), (Listed("results", _RESOURCE),)),),
    "AlterConfigs": (Asked((Listed("resources", _RESOURCE),), (Listed("responses", _RESOURCE),)),),
    "IncrementalAlterConfigs": (Asked((Listed("resources", _RESOURCE),), (Listed("responses", _RESOURCE),)),),
    "FindCoordinator": (Asked((Listed("coordinator_keys"),), (Listed("coordinators", (("key",),)),)),),
    "DescribeGroups": (Asked((Listed("groups"),), (Listed("groups", _GROUP),)),),
    "DeleteGroups": (Asked((Listed("groups_names"),), (Listed("results", _GROUP),)),),
    "ConsumerGroupDescribe": (Asked((Listed("group_ids"),), (Listed("groups", _GROUP),)),),
    "ShareGroupDescribe": (Asked((Listed("group_ids"),), (Listed("groups", _GROUP),)),),
    "StreamsGroupDescribe": (Asked((Listed("group_ids"),), (Listed("groups", _GROUP),)),),
    "AddPartitionsToTxn": (
        Asked((Listed("v3_and_below_topics", _TOPIC), Listed("partitions")),
              (Listed("results_by_topic_v3_and_below", _TOPIC), _RESULTS)),
        Asked((Listed("transactions", (("transactional_id",),)), _TOPICS, Listed("partitions")),
              (Listed("results_by_transaction", (("transactional_id",),)), Listed("topic_results", _TOPIC),
               _RESULTS)),
    ),
    "WriteTxnMarkers": (
        Asked((Listed("markers", (("producer_id",),)), _TOPICS, Listed("partition_indexes")),
              (Listed("markers", (("producer_id",),)), _TOPICS, _INDEXES)),
    ),
    "DescribeProducers": (Asked((_TOPICS, Listed("partition_indexes")), (_TOPICS, _INDEXES)),),
    "DescribeTransactions": (
        Asked((Listed("transactional_ids"),), (Listed("transaction_states", (("transactional_id",),)),)),
    ),
    "DescribeUserScramCredentials": (Asked((Listed("users", _TOPIC),), (Listed("results", (("user",),)),)),),
    "AlterPartitionReassignments": (Asked((_TOPICS, _INDEXES), (Listed("responses", _TOPIC), _INDEXES)),),
}  # fmt: skip
"""Produce has a rule of its own. APIs whose response has only what there is (reassignments, logs) owe none."""
Key = tuple[Any, ...]


def asked_for(body: Body, path: Path) -> set[Key]:
    """Return what a request asks for, each by the first of its names; nothing if it asks for all there is."""
    return {tuple(next(iter(step)) for step in steps) for steps in _elements(body, path) if all(steps)}


def _answers(body: Body, path: Path) -> tuple[set[Key], set[Key]]:
    """Return what a response answers, by all names of each; and what it refuses together, with an error above the
    partitions."""
    answered: set[Key] = set()
    for steps in _elements(body, path):
        keys: set[Key] = {()}
        for step in steps:
            keys = {(*key, name) for key in keys for name in step}
        answered |= keys
    return answered, set(_refused(body, path))


def _elements(body: Body, path: Path, before: tuple[list[Any], ...] = ()) -> Iterator[tuple[list[Any], ...]]:
    """Yield the elements at the end of a path, each as the names of it and of those that it is in."""
    first, *rest = path
    for element in body.get(first.array) or ():
        steps = (*before, _names(element, first))
        if rest:
            yield from _elements(element, tuple(rest), steps)
        else:
            yield steps


def _names(element: Any, listed: Listed) -> list[Any]:
    if not listed.names:
        return [element]
    if not isinstance(element, dict):
        return [element]  # older versions list names alone
    found = (tuple(element.get(each) for each in fields) for fields in listed.names)
    return [each if len(each) > 1 else each[0] for each in found if None not in each and each[0] not in ("", NO_ID)]


def _refused(body: Body, path: Path, before: Key = ()) -> Iterator[Key]:
    first, *rest = path
    for element in body.get(first.array) or () if rest else ():
        for name in _names(element, first):
            if element.get("error_code"):
                yield (*before, name)
            yield from _refused(element, tuple(rest), (*before, name))


def _is_incremental(epochs: Int64) -> Bool:
    return ~np.isin(epochs, list(FULL_FETCHES))


def _read() -> Iterator[tuple[str, Reading]]:
    """What decides whether a response is complete: names of what is asked and answered, and errors above them."""
    yield from (("response.error_code", None), ("response.throttle_time_ms", is_set))
    yield "request.session_epoch", Silences(_is_incremental)
    for asked in (each for api in ASKED.values() for each in api):
        for side, path in (("request", asked.request), ("response", asked.response)):
            place = side
            for listed in path:
                place = f"{place}.{listed.array}"
                yield place, None
                names = {name for together in listed.names for name in together}
                yield from ((f"{place}.{name}", None) for name in (*names, "error_code"))


@RULES.response("response-incomplete", "the response's schema; Kafka's KafkaApis", ASKED, side=RuleSide.BROKER,
                reads=dict(_read()))  # fmt: skip
def complete_response(event: MessageEvent) -> Iterator[Verdict]:
    """a response has all topics, partitions, groups and resources that its request asks for."""
    body, request = event.body, event.request
    if not body or not request or body.get("error_code") or not _owes_all(event):
        return
    for each in ASKED[event.api]:
        wanted = asked_for(request, each.request)
        if not wanted:
            continue
        answered, refused = _answers(body, each.response)
        missing = sorted(
            (key for key in wanted - answered if not any(key[: len(one)] == one for one in refused)), key=repr
        )
        words = f"{counted(len(missing), 'answer')} of {len(wanted):,} missing: {_shown(missing)}"
        yield Verdict(event, not missing, each.response[0].array, words)


def _owes_all(event: MessageEvent) -> bool:
    """Whether a response has all that is asked for: not in a fetch session, which tells what changed alone (KIP-227),
    nor if a Fetch is throttled, which gets an empty response (KIP-219)."""
    if event.api != "Fetch":
        return True
    if event.body.get("throttle_time_ms") and not event.body.get("responses"):
        return False
    return event.request.get("session_epoch", FetchSessionEpoch.FINAL) in FULL_FETCHES


def _shown(missing: Iterable[Key]) -> str:
    shown = ["-".join(str(part) for part in key) for key in missing]
    more = f" and {len(shown) - 3:,} more" if len(shown) > 3 else ""
    return ", ".join(shown[:3]) + more


@RULES.memory("response-id", "ResponseHeader.json; Kafka's NetworkClient", side=RuleSide.BROKER)
class ResponseIds(RuleMemory):
    """a response has the correlation id of a pending request."""

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """A response with a request has its id. One without may answer a request that was not captured."""
        return Proof(columns.messages_of(columns.answers_none), columns.is_response.astype(np.int64))

    def response(self, event: MessageEvent) -> tuple[Verdict]:
        return (Verdict(event, True, "", ""),)

    def orphan(self, event: MessageEvent) -> Iterator[Verdict]:
        for found in event.exchange.row_findings:
            if found.code == NOT_PENDING or found == ORPHAN_OF_WHOLE:
                yield Verdict(event, False, "", found.message)
