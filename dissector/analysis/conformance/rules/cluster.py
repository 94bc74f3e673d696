"""Rules on topics, transactions, and what brokers say of their cluster."""

import re
from collections.abc import Iterator
from typing import ClassVar, Final

from dissector.analysis.conformance.events import MessageEvent
from dissector.analysis.conformance.rule import ProtocolRule, RuleSide, Verdict, partitions, verdict
from dissector.analysis.conformance.rules.produce import batches
from dissector.analysis.records import NO_PRODUCER
from dissector.protocol.embedded.topics import NO_TOPIC_ID

METADATA: Final = frozenset({"Metadata"})
ADDED_BY_BROKERS: Final = 12
"""The version of Produce since which brokers add partitions to transactions themselves (KIP-890)."""


class TopicNames(ProtocolRule):
    """Topics to create have legal names."""

    code = "topic-name"
    title = "a topic to create has 1 to 249 letters, digits, dots, underscores and dashes"
    source = "Kafka's Topic; error INVALID_TOPIC_EXCEPTION"
    apis = frozenset({"CreateTopics"})
    _LEGAL: ClassVar = re.compile(r"[a-zA-Z0-9._-]{1,249}")

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        for n, topic in enumerate(event.body.get("topics", ())):
            name = topic["name"]
            is_kept = bool(self._LEGAL.fullmatch(name)) and name not in (".", "..")
            yield verdict(event, is_kept, f"topics[{n}].name", f"{name[:60]!r} is refused by brokers")


class TopicIds(ProtocolRule):
    """Where a topic is named by its id, the id is not zero."""

    code = "topic-id"
    title = "Produce and Fetch since v13 name topics by ids that are not zero"
    source = "KIP-516"
    apis = frozenset({"Produce", "Fetch"})

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        name = "topic_data" if event.api == "Produce" else "topics"
        for n, topic in enumerate(event.body.get(name, ())):
            if "topic_id" in topic and event.version >= 13:
                yield verdict(event, topic["topic_id"] != NO_TOPIC_ID, f"{name}[{n}].topic_id", "the id is zero")


class TransactionalBatches(ProtocolRule):
    """A transactional batch is sent under a transactional id."""

    code = "transactional-batch"
    title = "a Produce request with a transactional batch has a transactional id, and the batch has a producer id"
    source = "KIP-98; Kafka's KafkaApis"
    apis = frozenset({"Produce"})

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        for each in batches(event):
            if each.batch.is_transactional:
                is_kept = event.body.get("transactional_id") is not None and each.batch.producer_id != NO_PRODUCER
                yield verdict(event, is_kept, "transactional_id", "it is missing, or the batch has no producer id")


class PartitionsAdded(ProtocolRule):
    """A partition is added to a transaction before it is written to."""

    code = "partition-not-added"
    title = "before Produce v12, a partition is added to the transaction before a transactional batch goes to it"
    source = "KIP-98, KIP-890"
    apis = frozenset({"Produce", "AddPartitionsToTxn", "EndTxn", "InitProducerId"})

    def __init__(self) -> None:
        self._added: dict[str, set[tuple[str, int]]] = {}

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        if event.api == "AddPartitionsToTxn":
            old = {
                "transactional_id": event.body.get("v3_and_below_transactional_id"),
                "topics": event.body.get("v3_and_below_topics", ()),
            }
            for each in event.body.get("transactions") or (old,):
                known = self._added.setdefault(str(each["transactional_id"]), set())
                known |= {(topic["name"], n) for topic in each["topics"] for n in topic["partitions"]}
        elif event.api == "Produce" and event.version < ADDED_BY_BROKERS:
            known = self._added.get(str(event.body.get("transactional_id")), set())
            for topic, partition, path, batch in batches(event):
                if batch.is_transactional:
                    yield verdict(
                        event, (topic, partition) in known, path, f"{topic} partition {partition} is not added"
                    )
        elif event.api in ("EndTxn", "InitProducerId"):
            self._added.pop(str(event.body.get("transactional_id")), None)


class EndInFlight(ProtocolRule):
    """A transaction ends when its batches are written."""

    code = "transaction-end-in-flight"
    title = "EndTxn is sent only after all Produce requests of the transaction have their responses"
    source = "KIP-98; Kafka's TransactionManager"
    apis = frozenset({"Produce", "EndTxn"})

    def __init__(self) -> None:
        self._open: dict[str, set[int]] = {}

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        name = str(event.body.get("transactional_id"))
        if event.api == "EndTxn":
            waiting = self._open.get(name, set())
            yield verdict(event, not waiting, "", f"{len(waiting)} Produce requests wait for their response")
        elif event.body.get("transactional_id") is not None:
            self._open.setdefault(name, set()).add(event.number)

    def response(self, event: MessageEvent) -> Iterator[Verdict]:
        self._open.get(str(event.request.get("transactional_id")), set()).discard(event.number)
        return iter(())


class LeadersListed(ProtocolRule):
    """Leaders are brokers of the same answer."""

    code = "leader-listed"
    title = "a partition without an error has a leader among the brokers of the response"
    source = "MetadataResponse.json; error LEADER_NOT_AVAILABLE"
    side = RuleSide.BROKER
    apis = METADATA

    def response(self, event: MessageEvent) -> Iterator[Verdict]:
        brokers = {each["node_id"] for each in event.body.get("brokers", ())}
        for _, each, path in partitions(event.body, "topics"):
            if each["error_code"] == 0:
                leader = each["leader_id"]
                yield verdict(event, leader in brokers, f"{path}.leader_id", f"leader {leader} is not listed")


class ReplicasInSync(ProtocolRule):
    """Replicas in sync are replicas."""

    code = "isr-nodes"
    title = "the in-sync replicas are among the replicas, and no node is listed twice"
    source = "MetadataResponse.json"
    side = RuleSide.BROKER
    apis = METADATA

    def response(self, event: MessageEvent) -> Iterator[Verdict]:
        for _, each, path in partitions(event.body, "topics"):
            replicas, in_sync = each["replica_nodes"], each["isr_nodes"]
            is_kept = set(in_sync) <= set(replicas) and len(set(replicas)) == len(replicas)
            yield verdict(event, is_kept, f"{path}.isr_nodes", f"{in_sync} of {replicas}")


RULES: Final = (
    TopicNames, TopicIds, TransactionalBatches, PartitionsAdded, EndInFlight, LeadersListed, ReplicasInSync,
)  # fmt: skip
