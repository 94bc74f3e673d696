"""Rules on members whose group the coordinator keeps by epochs: of KIP-848, and of share groups (KIP-932)."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from dissector.analysis.conformance.events import MessageEvent
from dissector.analysis.conformance.message_columns import MessageColumns
from dissector.analysis.conformance.proving import NOTHING, latest, unless
from dissector.analysis.conformance.rule import Proof, RuleBook, RuleMemory, Verdict
from dissector.bulk.body_fields import NO_TEXT
from dissector.findings.framework.read_fields import REQUEST, RESPONSE
from dissector.protocol.kernel.shredding import numbered_rows
from dissector.protocol.schema.error_codes import ErrorCode

RULES: Final = RuleBook()
_FENCED: Final = frozenset((ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH))
_FIRST_HEARTBEAT: Final = (
    "member_epoch", "rebalance_timeout_ms", "subscribed_topic_names", "subscribed_topic_regex", "topic_partitions",
    "member_id",
)  # fmt: skip


@RULES.request("first-heartbeat", "KIP-848; ConsumerGroupHeartbeatRequest.json", {"ConsumerGroupHeartbeat"},
               reads=dict.fromkeys(f"request.{name}" for name in _FIRST_HEARTBEAT))  # fmt: skip
def first_heartbeat(event: MessageEvent) -> Iterator[Verdict]:
    """the first ConsumerGroupHeartbeat has the rebalance timeout, a subscription and no partitions."""
    if event.body.get("member_epoch") != 0:
        return
    body = event.body
    has_topics = body["subscribed_topic_names"] is not None or body.get("subscribed_topic_regex") is not None
    missing = [
        words for words, is_kept in (
            ("no rebalance_timeout_ms", body["rebalance_timeout_ms"] > 0),
            ("no subscription", has_topics),
            ("partitions", body["topic_partitions"] == []),
            ("no member_id", body["member_id"] or event.version == 0),
        ) if not is_kept
    ]  # fmt: skip
    yield Verdict(event, not missing, "", f"it has {', '.join(missing)}")


@RULES.memory("member-epoch", "KIP-848, KIP-932", {"ConsumerGroupHeartbeat", "ShareGroupHeartbeat"})
class MemberEpochs(RuleMemory):
    """a heartbeat has the member epoch of the last response; 0 after it was fenced; less than 0 to leave."""

    def __init__(self) -> None:
        self._epochs: dict[tuple[str, str], int] = {}

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """An epoch is that of the last response to the member, or 0."""
        sent = columns.texts(apis, ("group_id", "member_id"), side=REQUEST)
        asked = columns.numbers(apis, ("member_epoch",), side=REQUEST)["member_epoch"]
        answered = columns.numbers(apis, ("member_epoch", "error_code"), side=RESPONSE)
        given = columns.texts(apis, ("member_id",), side=RESPONSE)["member_id"]
        is_given = columns.is_response & (given != NO_TEXT) & (given != columns.empty_text)
        member = np.where(is_given, given, sent["member_id"])
        key = numbered_rows(sent["group_id"], member)[0].astype(np.int64)
        error = answered["error_code"]
        is_fenced = np.isin(error.values, list(_FENCED))
        tells = columns.is_response & error.is_there & ((error.values == ErrorCode.NONE) | is_fenced)
        before = latest(key, tells)
        expected = np.where(is_fenced, 0, answered["member_epoch"].values)[before]
        asks = columns.is_request & asked.is_there & (asked.values >= 0) & (before != NOTHING)
        is_odd = asks & (asked.values != expected) & (asked.values != 0)
        found = unless(asks.astype(np.int64), is_odd, key)
        return found._replace(open=found.open & columns.messages_of(columns.of(apis)))

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        epoch = event.body.get("member_epoch", 0)
        expected = self._epochs.get((event.body.get("group_id", ""), event.body.get("member_id", "")))
        if expected is not None and epoch >= 0:
            is_kept = epoch in (expected, 0)
            yield Verdict(event, is_kept, "member_epoch", f"epoch {epoch}, but the broker said {expected}")

    def response(self, event: MessageEvent) -> None:
        if not event.body:
            return
        member = event.body.get("member_id") or event.request.get("member_id", "")
        key = event.request.get("group_id", ""), member
        if event.error_code == ErrorCode.NONE:
            self._epochs[key] = event.body["member_epoch"]
        elif event.error_code in _FENCED:
            self._epochs[key] = 0


@RULES.memory("share-session-epoch", "KIP-932", {"ShareFetch", "ShareAcknowledge"})
class ShareSessions(RuleMemory):
    """each ShareFetch and ShareAcknowledge has the next share session epoch; the first acknowledges nothing."""

    def __init__(self) -> None:
        self._next: dict[tuple[int, str], int] = {}

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        epoch = event.body.get("share_session_epoch")
        if epoch is None:
            return
        expected = self._next.get((event.connection, event.body["member_id"]))
        if epoch == 0:
            partitions = (each for topic in event.body["topics"] for each in topic["partitions"])
            acknowledged = any(each["acknowledgement_batches"] for each in partitions)
            yield Verdict(event, not acknowledged, "topics", "the first request of a session acknowledges records")
        elif expected is not None and epoch > 0:
            yield Verdict(event, epoch == expected, "share_session_epoch", f"epoch {epoch}, not {expected}")

    def response(self, event: MessageEvent) -> None:
        epoch = event.request.get("share_session_epoch", -1)
        if event.error_code == ErrorCode.NONE and epoch >= 0:
            self._next[event.connection, event.request["member_id"]] = epoch + 1
