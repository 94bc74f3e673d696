"""Ids and epochs that a broker gave when the requests were recorded, and those that another one gives in their place.

Learned from each response beside the recorded one: member ids and generations, producer ids and epochs, Fetch sessions,
telemetry subscriptions. Ids of topics and epochs of leaders are those of the cluster that is asked.
"""

from collections.abc import Mapping
from typing import Any, Final

import google_crc32c

from dissector.protocol.codec.writer import ZERO_UUID
from dissector.protocol.message import Values
from dissector.recorded_server.exchanges import RecordedExchange

_NAMED: Final = frozenset(("member_id", "producer_id", "session_id", "client_instance_id", "subscription_id"))
"""Fields with an id that stands for the same wherever it is."""
_MEMBER_EPOCHS: Final = frozenset(("generation_id", "member_epoch", "generation_id_or_member_epoch"))
_LEADER_EPOCHS: Final = frozenset(("current_leader_epoch", "last_fetched_epoch"))
_NO_ID: Final = frozenset((None, "", 0, -1, ZERO_UUID))
_MAGIC_AT, _CRC_AT, _CRC_FROM, _PRODUCER_AT, _EPOCH_AT, _BATCH = 16, 17, 21, 43, 51, 61
_SIZED: Final = 12


class OwnIds:
    """What stands for what."""

    def __init__(self, topics: Mapping[str, str]) -> None:
        """`topics` are the recorded names of topics by id."""
        self._names = topics
        self.topic_ids: dict[str, str] = {}
        """Those of the cluster that is asked, by name."""
        self.leader_epochs: dict[tuple[str, int], int] = {}
        """Those of the cluster that is asked, by topic and partition."""
        self._ids: dict[tuple[str, object], Any] = {}
        self._epochs: dict[tuple[str, object, int], int] = {}
        """By the kind of epoch, whose it is, and the recorded one."""

    def learn(self, recorded: RecordedExchange, answered: Values) -> None:
        """Take ids and epochs of the response to a request."""
        theirs = recorded.answered
        for name in _NAMED:
            if theirs.get(name) not in _NO_ID and answered.get(name) not in _NO_ID:
                self._ids[name, theirs[name]] = answered[name]
        group = recorded.asked.get("group_id")
        for name in ("generation_id", "member_epoch"):
            if group is not None and theirs.get(name, -1) > 0 and answered.get(name, -1) > 0:
                self._epochs["member", group, theirs[name]] = answered[name]
        producer = theirs.get("producer_id", recorded.asked.get("producer_id"))
        if theirs.get("producer_epoch", -1) >= 0 and answered.get("producer_epoch", -1) >= 0:
            self._epochs["producer", producer, theirs["producer_epoch"]] = answered["producer_epoch"]
        for topic in answered.get("topics") or ():
            if isinstance(topic, dict) and topic.get("name") and topic.get("topic_id") not in _NO_ID:
                self.topic_ids[topic["name"]] = topic["topic_id"]

    def request(self, asked: Values) -> Values:
        """Return the values of a request with ids that the broker knows."""
        return self._struct(asked, {"group_id": None, "topic": None})

    def _struct(self, values: Mapping[str, Any], around: Mapping[str, Any]) -> Values:
        here = {
            "group_id": values.get("group_id", around["group_id"]),
            "topic": self._topic(values) or around["topic"],
            "producer_id": values.get("producer_id", around.get("producer_id")),
            "partition": values.get("partition", values.get("partition_index")),
        }
        return {name: self._value(name, value, here) for name, value in values.items()}

    def _value(self, name: str, value: Any, here: Mapping[str, Any]) -> Any:
        if isinstance(value, dict):
            return self._struct(value, here)
        if isinstance(value, list):
            return [self._struct(each, here) if isinstance(each, dict) else self._value(name, each, here)
                    for each in value]  # fmt: skip
        if name == "topic_id" and isinstance(value, str):
            return self.topic_ids.get(self._names.get(value, ""), value)
        if name == "records" and isinstance(value, bytes):
            return self._records(value)
        if name in _NAMED:
            return self._ids.get((name, value), value)
        if name == "reason" and isinstance(value, str):
            return self._reason(value)
        return self._epoch(name, value, here) if isinstance(value, int) and value >= 0 else value

    def _epoch(self, name: str, value: int, here: Mapping[str, Any]) -> int:
        if name in _MEMBER_EPOCHS:
            return self._epochs.get(("member", here["group_id"], value), value)
        if name == "producer_epoch":
            return self._epochs.get(("producer", here["producer_id"], value), value)
        if name in _LEADER_EPOCHS:
            current = self.leader_epochs.get((here["topic"], here["partition"]), value)
            return current if name == "current_leader_epoch" else min(value, current)
        return value

    def _topic(self, values: Mapping[str, Any]) -> str | None:
        name = values.get("topic") or values.get("name") or self._names.get(str(values.get("topic_id")))
        return name if isinstance(name, str) else None

    def _reason(self, reason: str) -> str:
        """Put a member's id into the reason for which it joins or leaves (KIP-800): Java's ends with it."""
        first, _, last = reason.rpartition(": ")
        own = self._ids.get(("member_id", last))
        return f"{first}: {own}" if first and own is not None else reason

    def _records(self, records: bytes) -> bytes:
        """Put the producer's id and epoch into record batches (magic 2), and their checksums right."""
        made: bytearray | None = None
        at = 0
        while at + _BATCH <= len(records) and records[at + _MAGIC_AT] == 2:
            end = at + _SIZED + int.from_bytes(records[at + 8 : at + _SIZED], "big", signed=True)
            if not at + _BATCH <= end <= len(records):
                break
            producer = int.from_bytes(records[at + _PRODUCER_AT : at + _EPOCH_AT], "big", signed=True)
            epoch = int.from_bytes(records[at + _EPOCH_AT : at + _EPOCH_AT + 2], "big", signed=True)
            own = self._ids.get(("producer_id", producer), producer)
            own_epoch = self._epochs.get(("producer", producer, epoch), epoch)
            if producer >= 0 and (own, own_epoch) != (producer, epoch):
                made = bytearray(records) if made is None else made
                made[at + _PRODUCER_AT : at + _EPOCH_AT] = own.to_bytes(8, "big", signed=True)
                made[at + _EPOCH_AT : at + _EPOCH_AT + 2] = own_epoch.to_bytes(2, "big", signed=True)
                crc = google_crc32c.value(bytes(made[at + _CRC_FROM : end]))
                made[at + _CRC_AT : at + _CRC_FROM] = crc.to_bytes(4, "big")
            at = end
        return records if made is None else bytes(made)
