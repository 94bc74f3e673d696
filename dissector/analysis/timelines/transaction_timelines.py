"""What exchanges say of transactions: by transactional id, a phase a transaction.

A transaction begins with the first request after InitProducerId, or after the EndTxn before, that adds to it; it ends
with EndTxn. Brokers write markers behind that, to the transaction that ended last: since KIP-890 with an epoch of its
own, so epochs alone can't tell.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from dissector.analysis.timelines.partition_text import format_partitions
from dissector.analysis.timelines.timeline import MAX_TIMELINES, Phase, Timeline, TimelineEvent
from dissector.exchange.info_column import first_error
from dissector.exchange.model import Exchange


class TransactionTimelines:
    """Timelines of transactions, by transactional id."""

    def __init__(self) -> None:
        self.timelines: dict[str, Timeline] = {}
        self._producers: dict[int, str] = {}
        """Transactional ids by producer id."""
        self._open: dict[str, Phase] = {}
        """The transaction that is not ended, by transactional id."""
        self._ended: dict[str, Phase] = {}
        self._counts: dict[str, int] = {}
        self._take: dict[str, Callable[[Exchange, Mapping[str, Any]], None]] = {
            "InitProducerId": self._init, "AddPartitionsToTxn": self._add_partitions, "Produce": self._produce,
            "AddOffsetsToTxn": self._add_offsets, "TxnOffsetCommit": self._commit_offsets, "EndTxn": self._end,
            "WriteTxnMarkers": self._markers,
        }  # fmt: skip

    @property
    def apis(self) -> frozenset[str]:
        """What tells something of a transaction."""
        return frozenset(self._take)

    def take(self, exchange: Exchange) -> None:
        """Learn from an exchange; they come in the order of rows."""
        take = self._take.get(exchange.fields.api)
        if take is not None and exchange.request is not None:
            take(exchange, exchange.request.body)

    def _timeline(self, transactional_id: object) -> Timeline | None:
        if not isinstance(transactional_id, str) or not transactional_id:
            return None
        if transactional_id not in self.timelines:
            if len(self.timelines) >= MAX_TIMELINES:
                return None
            self.timelines[transactional_id] = Timeline(transactional_id, "transaction")
        return self.timelines[transactional_id]

    def _transaction(self, timeline: Timeline) -> Phase:
        """The transaction that lasts; a new one where the last was ended."""
        phase = self._open.get(timeline.name)
        if phase is None:
            number = self._counts[timeline.name] = self._counts.get(timeline.name, 0) + 1
            phase = self._open[timeline.name] = timeline.begin(f"transaction {number}")
        return phase

    def _note(self, exchange: Exchange, transactional_id: object, words: str) -> None:
        """An event of the transaction that lasts."""
        timeline = self._timeline(transactional_id)
        if timeline is not None:
            timeline.add(_event(exchange, timeline, words), self._transaction(timeline))

    def _init(self, exchange: Exchange, asked: Mapping[str, Any]) -> None:
        timeline = self._timeline(asked.get("transactional_id"))
        if timeline is None:
            return
        answer = exchange.response.body if exchange.response is not None else {}
        producer, words = answer.get("producer_id"), ""
        if isinstance(producer, int) and producer >= 0:
            self._producers[producer] = timeline.name
            words = f"producer id {producer}, epoch {answer.get('producer_epoch')}"
        if not timeline.phases or not first_error(exchange):
            self._open.pop(timeline.name, None)
            if not timeline.phases or timeline.phase.title != _STARTING:
                timeline.begin(_STARTING)
        timeline.add(_event(exchange, timeline, words))

    def _add_partitions(self, exchange: Exchange, asked: Mapping[str, Any]) -> None:
        """Version 4 on is between brokers, and for several transactions at once (KIP-890)."""
        for each in asked.get("transactions") or [asked]:
            if each is asked:
                name, topics, verb = asked.get(f"{_OLD}transactional_id"), asked.get(f"{_OLD}topics"), "adds"
            else:
                name, topics = each.get("transactional_id"), each.get("topics")
                verb = "verifies" if each.get("verify_only") else "adds"
            self._note(exchange, name, f"{verb} {_partitions(exchange, topics)}")

    def _produce(self, exchange: Exchange, asked: Mapping[str, Any]) -> None:
        if asked.get("transactional_id"):
            self._note(exchange, asked["transactional_id"], _partitions(exchange, asked.get("topic_data")))

    def _add_offsets(self, exchange: Exchange, asked: Mapping[str, Any]) -> None:
        self._note(exchange, asked.get("transactional_id"), f"of group {asked.get('group_id')}")

    def _commit_offsets(self, exchange: Exchange, asked: Mapping[str, Any]) -> None:
        words = f"of group {asked.get('group_id')}: {_partitions(exchange, asked.get('topics'))}"
        self._note(exchange, asked.get("transactional_id"), words)

    def _end(self, exchange: Exchange, asked: Mapping[str, Any]) -> None:
        timeline = self._timeline(asked.get("transactional_id"))
        if timeline is None:
            return
        phase = self._transaction(timeline)
        outcome = "commit" if asked.get("committed") else "abort"
        words = f"{outcome}, epoch {asked.get('producer_epoch')}"
        answer = exchange.response.body if exchange.response is not None else {}
        bumped = answer.get("producer_epoch")
        if isinstance(bumped, int) and bumped >= 0 and bumped != asked.get("producer_epoch"):
            words += f" → {bumped}"
        timeline.add(_event(exchange, timeline, words), phase)
        if not first_error(exchange):
            ended = "committed" if asked.get("committed") else "aborted"
            phase.title = f"{phase.title.partition(' · ')[0]} · {ended}"
            self._ended[timeline.name] = phase
            self._open.pop(timeline.name, None)

    def _markers(self, exchange: Exchange, asked: Mapping[str, Any]) -> None:
        for marker in asked.get("markers") or []:
            timeline = self.timelines.get(self._producers.get(marker.get("producer_id"), ""))
            if timeline is not None:
                outcome = "commit" if marker.get("transaction_result") else "abort"
                words = (
                    f"{outcome}, epoch {marker.get('producer_epoch')}: {_partitions(exchange, marker.get('topics'))}"
                )
                timeline.add(_event(exchange, timeline, words), self._ended.get(timeline.name))


_STARTING: Final = "start"
_OLD: Final = "v3_and_below_"
"""What fields of AddPartitionsToTxn that version 4 replaced begin with."""


def _partitions(exchange: Exchange, topics: object) -> str:
    names = exchange.request.context.topic_names if exchange.request is not None else {}
    return format_partitions(topics, names)


def _event(exchange: Exchange, timeline: Timeline, words: str) -> TimelineEvent:
    facts = exchange.fields
    error = first_error(exchange) if exchange.response is not None else "unanswered"
    who = timeline.member(facts.client_id or "", facts.client_id)
    return TimelineEvent(facts.number - 1, facts.time_ns, facts.api, who, words, error)
