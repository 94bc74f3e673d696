"""Rules on Fetch and ListOffsets, for clients and for brokers."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from dissector.analysis.conformance.declared_fields import is_negative, is_one_of
from dissector.analysis.conformance.events import MessageEvent
from dissector.analysis.conformance.message_columns import MessageColumns
from dissector.analysis.conformance.proving import latest, since, unless
from dissector.analysis.conformance.rule import Proof, RuleBook, RuleMemory, RuleSide, Verdict, partitions
from dissector.core.arrays import Bool, Int64
from dissector.findings.framework.read_fields import SIDES
from dissector.protocol.kernel.shredding import numbered_rows
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.field_enums import FetchSessionEpoch

RULES: Final = RuleBook()
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
_SESSION: Final = ("session_id", "session_epoch", "error_code")
_LIMITS: Final = ("max_wait_ms", "min_bytes", "max_bytes")
_PARTITION: Final = "response.responses.partitions"
_SPECIAL_SINCE: Final = {-3: 7, -4: 8, -5: 9, -6: 11}
"""Special timestamps by the first version that has them (KIP-734, KIP-405, KIP-1005, KIP-1023)."""


def _is_special(timestamps: Int64) -> Bool:
    """Which timestamps not all versions have."""
    return timestamps < -2


@RULES.memory("fetch-session-epoch", "KIP-227", FETCH)
class FetchSessionEpochs(RuleMemory):
    """each request of a fetch session has the next epoch."""

    def __init__(self) -> None:
        self._next: dict[tuple[int, int], int] = {}

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """The epoch of a request is the one after that of the last request of its session that was answered."""
        sent, received = (columns.numbers(apis, _SESSION, side=side) for side in SIDES)
        session = np.where(columns.is_request, sent["session_id"].values, received["session_id"].values)
        epoch = sent["session_epoch"].values
        is_full = np.isin(epoch, list(FULL_FETCHES))
        answers = (
            columns.is_response & received["session_id"].is_there & (session != 0) & (epoch != FetchSessionEpoch.FINAL)
        )
        answers &= received["error_code"].values == ErrorCode.NONE
        keys = numbered_rows(columns.connection, session)[0].astype(np.int64)
        before = latest(keys, answers)
        expected = np.where(epoch[before] == MAX_EPOCH, 1, epoch[before] + 1)
        asks = columns.is_request & sent["session_id"].is_there & ((session == 0) | (before >= 0))
        is_odd = asks & ~is_full & ((session == 0) | (epoch != expected))
        of_api = columns.messages_of(columns.of(apis))
        found = unless(asks.astype(np.int64), is_odd, columns.connection)
        return found._replace(open=found.open & of_api)

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        session, epoch = event.body.get("session_id", 0), event.body.get("session_epoch", FetchSessionEpoch.FINAL)
        if not session:
            if "session_id" in event.body:
                yield Verdict(event, epoch in FULL_FETCHES, "session_epoch", f"epoch {epoch} of no session")
            return
        expected = self._next.get((event.connection, session))
        if expected is not None:
            is_kept = epoch == expected or epoch in FULL_FETCHES
            yield Verdict(event, is_kept, "session_epoch", f"epoch {epoch} of session {session}, not {expected}")

    def response(self, event: MessageEvent) -> None:
        session, epoch = event.body.get("session_id", 0), event.request.get("session_epoch", FetchSessionEpoch.FINAL)
        if event.error_code == ErrorCode.NONE and session and epoch != FetchSessionEpoch.FINAL:
            self._next[event.connection, session] = 1 if epoch == MAX_EPOCH else epoch + 1


@RULES.memory("fetch-session-lost", "KIP-227", FETCH)
class LostSession(RuleMemory):
    """after a fetch session error the next request begins a new session or has none."""

    def __init__(self) -> None:
        self._lost: set[int] = set()

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """It begins with an error."""
        return since(columns, columns.tested(apis, {"response.error_code": is_one_of(*_SESSION_ERRORS)}), apis)

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        if event.connection in self._lost and event.body:
            self._lost.discard(event.connection)
            epoch = event.body.get("session_epoch", FetchSessionEpoch.FINAL)
            yield Verdict(event, epoch in FULL_FETCHES, "session_epoch", f"epoch {epoch} of a session that was lost")

    def response(self, event: MessageEvent) -> None:
        if event.error_code in _SESSION_ERRORS:
            self._lost.add(event.connection)


@RULES.request("fetch-limits", "FetchRequest.json", FETCH, reads=dict.fromkeys(
    (*(f"request.{name}" for name in _LIMITS), "request.topics.partitions.partition_max_bytes"), is_negative
))  # fmt: skip
def fetch_limits(event: MessageEvent) -> Iterator[Verdict]:
    """max_wait_ms, min_bytes, max_bytes and partition_max_bytes are not negative."""
    for name in _LIMITS:
        if name in event.body:
            yield Verdict(event, event.body[name] >= 0, name, f"{name} is {event.body[name]}")
    for _, each, path in partitions(event.body, "topics"):
        size = each["partition_max_bytes"]
        yield Verdict(event, size >= 0, f"{path}.partition_max_bytes", f"partition_max_bytes is {size}")


@RULES.request("isolation-level", "KIP-98; FetchRequest.json, ListOffsetsRequest.json", {"Fetch", "ListOffsets"},
               reads={"request.isolation_level": None})  # fmt: skip
def isolation_level(event: MessageEvent) -> Iterator[Verdict]:
    """isolation_level is 0 or 1."""
    level = event.body.get("isolation_level")
    if level is not None:
        yield Verdict(event, level in (0, 1), "isolation_level", f"isolation_level is {level}")


@RULES.memory("offset-out-of-range", "Kafka's consumer; auto.offset.reset", FETCH)
class OutOfRange(RuleMemory):
    """after OFFSET_OUT_OF_RANGE the same offset is not fetched again."""

    def __init__(self) -> None:
        self._refused: dict[tuple[int, str, int], int] = {}

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """It begins with an error."""
        out_of_range = is_one_of(ErrorCode.OFFSET_OUT_OF_RANGE)
        return since(columns, columns.tested(apis, {f"{_PARTITION}.error_code": out_of_range}), apis)

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        for topic, each, path in partitions(event.body, "topics"):
            refused = self._refused.get((event.connection, event.topic(topic), each["partition"]))
            if refused is not None:
                is_kept = each["fetch_offset"] != refused
                yield Verdict(event, is_kept, f"{path}.fetch_offset", f"offset {refused} is out of range")

    def response(self, event: MessageEvent) -> None:
        errors = {
            (event.topic(topic), each["partition_index"])
            for topic, each, _ in partitions(event.body, "responses") if each["error_code"] == 1
        }  # fmt: skip
        for topic, each, _ in partitions(event.request, "topics") if errors else ():
            if (event.topic(topic), each["partition"]) in errors:
                self._refused[event.connection, event.topic(topic), each["partition"]] = each["fetch_offset"]


@RULES.request(
    "list-offsets-timestamp",
    "KIP-79, KIP-734, KIP-405, KIP-1005, KIP-1023; ListOffsetsRequest.json",
    {"ListOffsets"},
    reads={"request.topics.partitions.timestamp": _is_special},
)
def special_timestamps(event: MessageEvent) -> Iterator[Verdict]:
    """a special timestamp is used only in versions that have it."""
    for _, each, path in partitions(event.body, "topics"):
        time = each["timestamp"]
        is_kept = time >= -2 or event.version >= _SPECIAL_SINCE.get(time, 1 << 15)
        yield Verdict(event, is_kept, f"{path}.timestamp", f"timestamp {time} in v{event.version}")


def _is_unknown(error: Int64, high: Int64) -> Bool:
    """Of which partitions without an error the high watermark is not known."""
    is_unknown: Bool = (error == ErrorCode.NONE) & (high < 0)
    return is_unknown


def _is_beyond(error: Int64, high: Int64, stable: Int64) -> Bool:
    """Of which partitions without an error the last stable offset is above the high watermark."""
    is_beyond: Bool = (error == ErrorCode.NONE) & (stable > high)
    return is_beyond


@RULES.response(
    "watermarks",
    "KIP-98; FetchResponse.json",
    FETCH,
    side=RuleSide.BROKER,
    reads={
        f"{_PARTITION}.error_code": None,
        (f"{_PARTITION}.error_code", f"{_PARTITION}.high_watermark"): _is_unknown,
        tuple(f"{_PARTITION}.{name}" for name in ("error_code", "high_watermark", "last_stable_offset")): _is_beyond,
    },
)
def watermarks(event: MessageEvent) -> Iterator[Verdict]:
    """last_stable_offset is not above high_watermark."""
    for _, each, path in partitions(event.body, "responses"):
        high, stable = each["high_watermark"], each.get("last_stable_offset", -1)
        if each["error_code"] == 0 and high >= 0:
            words = f"last_stable_offset {stable}, high_watermark {high}"
            yield Verdict(event, stable <= high, f"{path}.high_watermark", words)
