"""Rules on Fetch and ListOffsets, for clients and for brokers."""

from collections.abc import Iterator
from typing import Final

from dissector.analysis.conformance.events import MessageEvent
from dissector.analysis.conformance.rule import ProtocolRule, RuleSide, Verdict, partitions, verdict
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.field_enums import FetchSessionEpoch

FETCH: Final = frozenset({"Fetch"})
MAX_EPOCH: Final = (1 << 31) - 1
FULL_FETCHES: Final = frozenset((FetchSessionEpoch.INITIAL, FetchSessionEpoch.FINAL))
"""Epochs of requests that name all partitions: in a new session, or in none."""
_SESSION_ERRORS: Final = frozenset(
    (
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    )
)
_SPECIAL_SINCE: Final = {-3: 7, -4: 8, -5: 9, -6: 11}
"""Special timestamps by the first version that has them (KIP-734, KIP-405, KIP-1005, KIP-1023)."""


class FetchSessionEpochs(ProtocolRule):
    """The requests of a fetch session are numbered."""

    code = "fetch-session-epoch"
    title = "each request of a fetch session has the next epoch"
    source = "KIP-227"
    apis = FETCH

    def __init__(self) -> None:
        self._next: dict[tuple[int, int], int] = {}

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        session, epoch = event.body.get("session_id", 0), event.body.get("session_epoch", FetchSessionEpoch.FINAL)
        if not session:
            if "session_id" in event.body:
                yield verdict(event, epoch in FULL_FETCHES, "session_epoch", f"epoch {epoch} of no session")
            return
        expected = self._next.get((event.connection, session))
        if expected is not None:
            is_kept = epoch == expected or epoch in FULL_FETCHES
            yield verdict(event, is_kept, "session_epoch", f"epoch {epoch} of session {session}, not {expected}")

    def response(self, event: MessageEvent) -> Iterator[Verdict]:
        session, epoch = event.body.get("session_id", 0), event.request.get("session_epoch", FetchSessionEpoch.FINAL)
        if event.error_code == ErrorCode.NONE and session and epoch != FetchSessionEpoch.FINAL:
            self._next[event.connection, session] = 1 if epoch == MAX_EPOCH else epoch + 1
        return iter(())


class LostSession(ProtocolRule):
    """After a session is lost, a client fetches all partitions."""

    code = "fetch-session-lost"
    title = "after a fetch session error the next request begins a new session or has none"
    source = "KIP-227"
    apis = FETCH

    def __init__(self) -> None:
        self._lost: set[int] = set()

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        if event.connection in self._lost and event.body:
            self._lost.discard(event.connection)
            epoch = event.body.get("session_epoch", FetchSessionEpoch.FINAL)
            yield verdict(event, epoch in FULL_FETCHES, "session_epoch", f"epoch {epoch} of a session that was lost")

    def response(self, event: MessageEvent) -> Iterator[Verdict]:
        if event.error_code in _SESSION_ERRORS:
            self._lost.add(event.connection)
        return iter(())


class FetchLimits(ProtocolRule):
    """Sizes and times of a fetch are not negative."""

    code = "fetch-limits"
    title = "max_wait_ms, min_bytes, max_bytes and partition_max_bytes are not negative"
    source = "FetchRequest.json"
    apis = FETCH

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        for name in ("max_wait_ms", "min_bytes", "max_bytes"):
            if name in event.body:
                yield verdict(event, event.body[name] >= 0, name, f"{name} is {event.body[name]}")
        for _, each, path in partitions(event.body, "topics"):
            size = each["partition_max_bytes"]
            yield verdict(event, size >= 0, f"{path}.partition_max_bytes", f"partition_max_bytes is {size}")


class IsolationLevel(ProtocolRule):
    """There are two isolation levels."""

    code = "isolation-level"
    title = "isolation_level is 0 or 1"
    source = "KIP-98; FetchRequest.json, ListOffsetsRequest.json"
    apis = frozenset({"Fetch", "ListOffsets"})

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        level = event.body.get("isolation_level")
        if level is not None:
            yield verdict(event, level in (0, 1), "isolation_level", f"isolation_level is {level}")


class OutOfRange(ProtocolRule):
    """After OFFSET_OUT_OF_RANGE a client asks for another offset."""

    code = "offset-out-of-range"
    title = "after OFFSET_OUT_OF_RANGE the same offset is not fetched again"
    source = "Kafka's consumer; auto.offset.reset"
    apis = FETCH

    def __init__(self) -> None:
        self._refused: dict[tuple[int, str, int], int] = {}

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        for topic, each, path in partitions(event.body, "topics"):
            refused = self._refused.get((event.connection, event.topic(topic), each["partition"]))
            if refused is not None:
                is_kept = each["fetch_offset"] != refused
                yield verdict(event, is_kept, f"{path}.fetch_offset", f"offset {refused} is out of range")

    def response(self, event: MessageEvent) -> Iterator[Verdict]:
        errors = {
            (event.topic(topic), each["partition_index"])
            for topic, each, _ in partitions(event.body, "responses") if each["error_code"] == 1
        }  # fmt: skip
        for topic, each, _ in partitions(event.request, "topics") if errors else ():
            if (event.topic(topic), each["partition"]) in errors:
                self._refused[event.connection, event.topic(topic), each["partition"]] = each["fetch_offset"]
        return iter(())


class SpecialTimestamps(ProtocolRule):
    """Special timestamps have their versions."""

    code = "list-offsets-timestamp"
    title = "a special timestamp is used only in versions that have it"
    source = "KIP-79, KIP-734, KIP-405, KIP-1005, KIP-1023; ListOffsetsRequest.json"
    apis = frozenset({"ListOffsets"})

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        for _, each, path in partitions(event.body, "topics"):
            time = each["timestamp"]
            is_kept = time >= -2 or event.version >= _SPECIAL_SINCE.get(time, 1 << 15)
            yield verdict(event, is_kept, f"{path}.timestamp", f"timestamp {time} in v{event.version}")


class Watermarks(ProtocolRule):
    """Offsets of a partition are in their order."""

    code = "watermarks"
    title = "last_stable_offset is not above high_watermark"
    source = "KIP-98; FetchResponse.json"
    side = RuleSide.BROKER
    apis = FETCH

    def response(self, event: MessageEvent) -> Iterator[Verdict]:
        for _, each, path in partitions(event.body, "responses"):
            high, stable = each["high_watermark"], each.get("last_stable_offset", -1)
            if each["error_code"] == 0 and high >= 0:
                words = f"last_stable_offset {stable}, high_watermark {high}"
                yield verdict(event, stable <= high, f"{path}.high_watermark", words)


RULES: Final = (FetchSessionEpochs, LostSession, FetchLimits, IsolationLevel, OutOfRange, SpecialTimestamps, Watermarks)
