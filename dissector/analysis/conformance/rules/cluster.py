"""Rules on topics, transactions, and what brokers say of their cluster."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from dissector.analysis.conformance.declared_fields import Reads, SideFields
from dissector.analysis.conformance.events import Body, MessageEvent
from dissector.analysis.conformance.message_columns import NO_KEY, MessageColumns
from dissector.analysis.conformance.proving import running, unless
from dissector.analysis.conformance.rule import Proof, RuleBook, RuleMemory, RuleSide, Verdict, partitions
from dissector.analysis.conformance.rules.produce import RECORDS, batches
from dissector.bulk.body_fields import NO_TEXT
from dissector.core.arrays import Bool, Int64
from dissector.exchange.model import Exchange
from dissector.findings.framework.read_fields import REQUEST
from dissector.protocol.embedded.topics import NO_TOPIC_ID
from dissector.protocol.records.batch import NO_PRODUCER, TRANSACTIONAL

RULES: Final = RuleBook()
_PARTITION: Final = "response.topics.partitions"
METADATA: Final = frozenset({"Metadata"})
ADDED_BY_BROKERS: Final = 12
"""The version of Produce since which brokers add partitions to transactions themselves (KIP-890)."""


ADDS: Final = frozenset({"AddPartitionsToTxn"})
ENDS: Final = frozenset({"EndTxn", "InitProducerId"})
"""Requests with which a transaction has no partitions any more."""
_ID: Final = "transactional_id"
_ADDED_TO: Final[Reads] = {"request.transactions.transactional_id": None, f"request.v3_and_below_{_ID}": None}
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@RULES.request("topic-name", "Kafka's Topic; error INVALID_TOPIC_EXCEPTION", {"CreateTopics"},
               reads={"request.topics.name": None})  # fmt: skip
def topic_names(event: MessageEvent) -> Iterator[Verdict]:
    """a topic to create has 1 to 249 letters, digits, dots, underscores and dashes."""
    for n, topic in enumerate(event.body.get("topics", ())):
        name = topic["name"]
        is_kept = bool(_LEGAL.fullmatch(name)) and name not in (".", "..")
        yield Verdict(event, is_kept, f"topics[{n}].name", f"{name[:60]!r} is refused by brokers")


@RULES.request("topic-id", "KIP-516", {"Produce", "Fetch"},
               reads={"request.topic_data.topic_id": None, "request.topics.topic_id": None})  # fmt: skip
def topic_ids(event: MessageEvent) -> Iterator[Verdict]:
    """Produce and Fetch since v13 name topics by ids that are not zero."""
    name = "topic_data" if event.api == "Produce" else "topics"
    for n, topic in enumerate(event.body.get(name, ())):
        if "topic_id" in topic and event.version >= 13:
            yield Verdict(event, topic["topic_id"] != NO_TOPIC_ID, f"{name}[{n}].topic_id", "the id is zero")


@RULES.request("transactional-batch", "KIP-98; Kafka's KafkaApis", {"Produce"},
               reads={RECORDS: None, "request.transactional_id": None})  # fmt: skip
def transactional_batches(event: MessageEvent) -> Iterator[Verdict]:
    """a Produce request with a transactional batch has a transactional id, and the batch has a producer id."""
    for each in batches(event):
        if each.batch.is_transactional:
            is_kept = event.body.get("transactional_id") is not None and each.batch.producer_id != NO_PRODUCER
            yield Verdict(event, is_kept, "transactional_id", "it is missing, or the batch has no producer id")


def _adding(columns: MessageColumns, names: Int64) -> Bool:
    """Which AddPartitionsToTxn exchanges may name some transactions: of those that name the same one is decoded."""
    found = columns.of(ADDS).copy()
    exchanges = np.flatnonzero(found)
    keys = columns.keys(ADDS, SideFields.of(_ADDED_TO, REQUEST))[exchanges]
    different, first, which = np.unique(keys, return_index=True, return_inverse=True)
    is_open = different == NO_KEY
    for at, exchange in zip(np.argsort(first).tolist(), columns.decoded(exchanges[np.sort(first)]), strict=True):
        ids = [columns.text(str(each["transactional_id"])) for each in _additions(_body(exchange))]
        is_open[at] |= np.isin(ids, names).any()
    found[exchanges] = is_open[which]
    return found


def _body(exchange: Exchange) -> Body:
    return MessageEvent.of(exchange, is_request=True).body


def _additions(body: Body) -> Sequence[Body]:
    """The transactions to which a request adds partitions, each with its topics."""
    old = {
        "transactional_id": body.get("v3_and_below_transactional_id"), "topics": body.get("v3_and_below_topics", ()),
    }  # fmt: skip
    return body.get("transactions") or (old,)


@RULES.memory("partition-not-added", "KIP-98, KIP-890", {"Produce", "AddPartitionsToTxn", "EndTxn", "InitProducerId"})
class PartitionsAdded(RuleMemory):
    """before Produce v12, a partition is added to the transaction before a transactional batch goes to it."""

    def __init__(self) -> None:
        self._added: dict[str, set[tuple[str, int]]] = {}

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """It is about transactional batches, and what is said of their transactions."""
        sent = columns.batches
        with_some = sent.is_odd.copy()
        with_some[sent.columns.at[sent.columns.attributes & TRANSACTIONAL != 0]] = True
        with_some &= columns.found.version < ADDED_BY_BROKERS
        if not with_some.any():
            return Proof.nothing(columns)
        name = columns.texts(apis, (_ID,), side=REQUEST)[_ID]
        name[name == NO_TEXT] = columns.text("None")
        batches_of = columns.messages_of(with_some)
        chosen = np.unique(name[batches_of & columns.is_request])
        ends = columns.messages_of(columns.of(ENDS)) & np.isin(name, chosen)
        return Proof(batches_of | ends | columns.messages_of(_adding(columns, chosen)))

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        if event.api == "AddPartitionsToTxn":
            for each in _additions(event.body):
                known = self._added.setdefault(str(each["transactional_id"]), set())
                known |= {(topic["name"], n) for topic in each["topics"] for n in topic["partitions"]}
        elif event.api == "Produce" and event.version < ADDED_BY_BROKERS:
            known = self._added.get(str(event.body.get("transactional_id")), set())
            for topic, partition, path, batch in batches(event):
                if batch.is_transactional:
                    name, index = event.topic(topic), partition["index"]
                    yield Verdict(event, (name, index) in known, path, f"{name} partition {index} is not added")
        elif event.api in ENDS:
            self._added.pop(str(event.body.get("transactional_id")), None)


@RULES.memory("transaction-end-in-flight", "KIP-98; Kafka's TransactionManager", {"Produce", "EndTxn"})
class EndInFlight(RuleMemory):
    """EndTxn is sent only after all Produce requests of the transaction have their responses."""

    def __init__(self) -> None:
        self._open: dict[str, set[int]] = {}

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """The Produce requests of a transaction that wait when it ends are counted in columns."""
        ends = columns.of({"EndTxn"})
        if not ends.any():
            return Proof.nothing(columns)
        name = columns.texts(apis, (_ID,), side=REQUEST)[_ID]
        is_named = name != NO_TEXT
        produces = is_named & columns.messages_of(~ends)
        received = produces & columns.is_response
        waiting = running(name, (produces & columns.is_request).astype(np.int64) - received)
        asks = is_named & columns.is_request & columns.messages_of(ends)
        unclear = received & columns.messages_of(~columns.is_readable)
        found = unless(asks.astype(np.int64), (asks & (waiting > 0)) | unclear, name)
        return found._replace(open=found.open & is_named)

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        name = str(event.body.get("transactional_id"))
        if event.api == "EndTxn":
            waiting = self._open.get(name, set())
            yield Verdict(event, not waiting, "", f"{len(waiting)} Produce requests wait for their response")
        elif event.body.get("transactional_id") is not None:
            self._open.setdefault(name, set()).add(event.number)

    def response(self, event: MessageEvent) -> None:
        self._open.get(str(event.request.get("transactional_id")), set()).discard(event.number)


@RULES.response(
    "leader-listed",
    "MetadataResponse.json; error LEADER_NOT_AVAILABLE",
    METADATA,
    side=RuleSide.BROKER,
    reads={"response.brokers.node_id": None, f"{_PARTITION}.error_code": None, f"{_PARTITION}.leader_id": None},
)
def leaders_listed(event: MessageEvent) -> Iterator[Verdict]:
    """a partition without an error has a leader among the brokers of the response."""
    brokers = {each["node_id"] for each in event.body.get("brokers", ())}
    for _, each, path in partitions(event.body, "topics"):
        if each["error_code"] == 0:
            leader = each["leader_id"]
            yield Verdict(event, leader in brokers, f"{path}.leader_id", f"leader {leader} is not listed")


@RULES.response("isr-nodes", "MetadataResponse.json", METADATA, side=RuleSide.BROKER,
                reads={f"{_PARTITION}.replica_nodes": None, f"{_PARTITION}.isr_nodes": None})  # fmt: skip
def replicas_in_sync(event: MessageEvent) -> Iterator[Verdict]:
    """the in-sync replicas are among the replicas, and no node is listed twice."""
    for _, each, path in partitions(event.body, "topics"):
        replicas, in_sync = each["replica_nodes"], each["isr_nodes"]
        is_kept = set(in_sync) <= set(replicas) and len(set(replicas)) == len(replicas)
        yield Verdict(event, is_kept, f"{path}.isr_nodes", f"{in_sync} of {replicas}")
