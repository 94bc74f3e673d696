"""Timelines of transactional ids, with a phase for each transaction.

A transaction begins with the first request that adds to it after InitProducerId or the previous EndTxn; a request that
is refused to its producer begins none. It ends with EndTxn, or is aborted: by the next InitProducerId, or by the
coordinator when its producer was fenced or took too long. Brokers write markers after that, for the transaction that
ended last: since KIP-890 with another epoch, so epochs alone do not identify it.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from dissector.analysis.timelines.timeline import (
    MAX_TIMELINES,
    Phase,
    Timeline,
    TimelineEvent,
    body_of,
    event_of,
    format_partitions,
    names_in,
)
from dissector.exchange.info_column import first_error
from dissector.exchange.model import Exchange


class TransactionTimelines:
    """Timelines of transactions, by transactional id."""

    def __init__(self) -> None:
        self.timelines: dict[str, Timeline] = {}
        self._producers: dict[int, str] = {}
        """Transactional ids by producer id."""
        self._open: dict[str, Phase] = {}
        """The open transaction, by transactional id."""
        self._began_by: dict[str, tuple[object, object]] = {}
        """Id and epoch of the producer of the open transaction."""
        self._ended: dict[str, Phase] = {}
        self._counts: dict[str, int] = {}
        self._handlers: dict[str, Callable[[Exchange, Mapping[str, Any]], None]] = {
            "InitProducerId": self._init, "AddPartitionsToTxn": self._add_partitions, "Produce": self._produce,
            "AddOffsetsToTxn": self._add_offsets, "TxnOffsetCommit": self._commit_offsets, "EndTxn": self._end,
            "WriteTxnMarkers": self._markers,
        }  # fmt: skip

    @property
    def apis(self) -> frozenset[str]:
        """The relevant APIs."""
        return frozenset(self._handlers)

    def add(self, exchange: Exchange) -> None:
        """Add an exchange; they come in the order of rows."""
        handle = self._handlers.get(exchange.fields.api)
        if handle is not None and exchange.request is not None:
            handle(exchange, exchange.request.body)

    def _timeline(self, transactional_id: object) -> Timeline | None:
        if not isinstance(transactional_id, str) or not transactional_id:
            return None
        if transactional_id not in self.timelines:
            if len(self.timelines) >= MAX_TIMELINES:
                return None
            self.timelines[transactional_id] = Timeline(transactional_id, "transaction")
        return self.timelines[transactional_id]

    def _transaction(self, timeline: Timeline) -> Phase:
        """Return the open transaction; begin one if there is none."""
        phase = self._open.get(timeline.name)
        if phase is None:
            number = self._counts[timeline.name] = self._counts.get(timeline.name, 0) + 1
            phase = self._open[timeline.name] = timeline.begin(f"transaction {number}")
        return phase

    def _add_event(self, exchange: Exchange, transactional_id: object, words: str) -> None:
        """Add an event to the open transaction."""
        timeline = self._timeline(transactional_id)
        if timeline is not None:
            event = _event(exchange, timeline, words)
            timeline.add(event, self._phase_of(exchange, timeline, event))

    def _phase_of(self, exchange: Exchange, timeline: Timeline, event: TimelineEvent) -> Phase | None:
        """Return the open transaction; begin one unless the request was refused to its producer. A refusal of the
        producer that began the open one says that the coordinator aborts that."""
        producer = _producer(exchange)
        if event.error.partition(" ")[0] not in _REFUSED:
            phase = self._transaction(timeline)
            if producer is not None:
                self._began_by.setdefault(timeline.name, producer)
            return phase
        if timeline.name not in self._open:
            return None
        if producer is not None and producer == self._began_by.get(timeline.name):
            return self._end_open(timeline, "aborted: its producer was fenced")
        return self._open[timeline.name]

    def _end_open(self, timeline: Timeline, outcome: str) -> Phase:
        """Give the open transaction its outcome, and return it."""
        phase = self._ended[timeline.name] = self._open.pop(timeline.name)
        phase.title = f"{phase.title.partition(' · ')[0]} · {outcome}"
        self._began_by.pop(timeline.name, None)
        return phase

    def _init(self, exchange: Exchange, request: Mapping[str, Any]) -> None:
        timeline = self._timeline(request.get("transactional_id"))
        if timeline is None:
            return
        response = body_of(exchange.response)
        producer, words = response.get("producer_id"), ""
        if isinstance(producer, int) and producer >= 0:
            self._producers[producer] = timeline.name
            words = f"producer id {producer}, epoch {response.get('producer_epoch')}"
        if not timeline.phases or not first_error(exchange):
            if timeline.name in self._open and not request.get("keep_prepared_txn"):
                self._end_open(timeline, "aborted by InitProducerId")
            if not timeline.phases or timeline.phase.title != _STARTING:
                timeline.begin(_STARTING)
        timeline.add(_event(exchange, timeline, words))

    def _add_partitions(self, exchange: Exchange, request: Mapping[str, Any]) -> None:
        """Versions since 4 are between brokers, with a list of transactions (KIP-890)."""
        for each in request.get("transactions") or [request]:
            if each is request:
                name, topics, verb = request.get(f"{_OLD}transactional_id"), request.get(f"{_OLD}topics"), "adds"
            else:
                name, topics = each.get("transactional_id"), each.get("topics")
                verb = "verifies" if each.get("verify_only") else "adds"
            self._add_event(exchange, name, f"{verb} {_partitions(exchange, topics)}")

    def _produce(self, exchange: Exchange, request: Mapping[str, Any]) -> None:
        if request.get("transactional_id"):
            self._add_event(exchange, request["transactional_id"], _partitions(exchange, request.get("topic_data")))

    def _add_offsets(self, exchange: Exchange, request: Mapping[str, Any]) -> None:
        self._add_event(exchange, request.get("transactional_id"), f"of group {request.get('group_id')}")

    def _commit_offsets(self, exchange: Exchange, request: Mapping[str, Any]) -> None:
        words = f"of group {request.get('group_id')}: {_partitions(exchange, request.get('topics'))}"
        self._add_event(exchange, request.get("transactional_id"), words)

    def _end(self, exchange: Exchange, request: Mapping[str, Any]) -> None:
        timeline = self._timeline(request.get("transactional_id"))
        if timeline is None:
            return
        outcome = "commit" if request.get("committed") else "abort"
        words = f"{outcome}, epoch {request.get('producer_epoch')}"
        response = body_of(exchange.response)
        bumped = response.get("producer_epoch")
        if isinstance(bumped, int) and bumped >= 0 and bumped != request.get("producer_epoch"):
            words += f" → {bumped}"
        event = _event(exchange, timeline, words)
        timeline.add(event, self._phase_of(exchange, timeline, event))
        if not first_error(exchange):
            self._end_open(timeline, "committed" if request.get("committed") else "aborted")

    def _markers(self, exchange: Exchange, request: Mapping[str, Any]) -> None:
        for marker in request.get("markers") or []:
            timeline = self.timelines.get(self._producers.get(marker.get("producer_id"), ""))
            if timeline is not None:
                outcome = "commit" if marker.get("transaction_result") else "abort"
                words = (
                    f"{outcome}, epoch {marker.get('producer_epoch')}: {_partitions(exchange, marker.get('topics'))}"
                )
                ended = self._ended.get(timeline.name)
                if timeline.name in self._open and outcome == "abort" and (ended is None or "committed" in ended.title):
                    ended = self._end_open(timeline, "aborted by the coordinator")
                timeline.add(_event(exchange, timeline, words), ended)


_STARTING: Final = "start"
_REFUSED: Final = frozenset((
    "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "INVALID_PRODUCER_ID_MAPPING", "INVALID_TXN_STATE",
    "TRANSACTIONAL_ID_NOT_FOUND", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
))  # fmt: skip
"""Errors of a producer that may not add to a transaction, or end one."""
_OLD: Final = "v3_and_below_"
"""The prefix of fields of AddPartitionsToTxn that version 4 replaced."""


def _partitions(exchange: Exchange, topics: object) -> str:
    return format_partitions(topics, names_in(exchange))


def _producer(exchange: Exchange) -> tuple[object, object] | None:
    """Return the producer id and epoch of a request; None if it has none, as Produce outside its batches."""
    body = body_of(exchange.request)
    found = [body.get(name, body.get(_OLD + name)) for name in ("producer_id", "producer_epoch")]
    return None if None in found else (found[0], found[1])


def _event(exchange: Exchange, timeline: Timeline, words: str) -> TimelineEvent:
    row = exchange.fields
    return event_of(exchange, row.api, timeline.member(row.client_id or "", row.client_id), words)
