"""Answers Fetch by offsets: whatever a client fetches in whatever steps, it gets the recorded batches from there on.

A client has sessions of its own (KIP-227), with all partitions and offsets in them. Where a recorded request asked for
the same partitions from the same offsets, its response is the answer; elsewhere one is made of what was recorded of
each partition. Errors that were recorded come once, in their turn.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from dissector.protocol.codec.writer import ZERO_UUID
from dissector.protocol.message import Values
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.recorded_server.exchanges import RecordedExchange

MOST_SESSIONS: Final = 1_000
"""Sessions that are held; the oldest are forgotten past it, as brokers do."""
FINAL_EPOCH: Final = -1
_HEAD: Final = struct.Struct(">qiib")
"""Base offset, size, leader epoch or checksum, magic."""
_LAST_DELTA: Final = struct.Struct(">i")
_LAST_DELTA_AT: Final = 23
_SIZED: Final = 12
_FIRST_MAGIC_1, _FIRST_MAGIC_2 = 2, 4
"""Versions of Fetch from which on clients read these formats."""

Place = tuple[str, int]
"""A topic by its name, and a partition."""
Offsets = dict[Place, int]


class OffsetSpan(NamedTuple):
    """A record batch or a message in bytes of records."""

    start: int
    last: int
    """The offset of its last record."""
    magic: int


@dataclass(slots=True)
class FetchedPart:
    """What a recorded response has of one partition."""

    exchange: RecordedExchange
    values: Values
    batches: list[OffsetSpan]


@dataclass(slots=True)
class FetchAnswer:
    """How a Fetch is answered."""

    body: Values | None
    """None if the recorded response is the answer as it is."""
    exchanges: list[RecordedExchange]
    has_news: bool = True
    """Whether it has records or errors; else it waits as long as the client asks for."""
    unknown: list[str] = field(default_factory=list)


class Sessions:
    """Sessions, each with its partitions and offsets."""

    def __init__(self) -> None:
        self._open: dict[int, Offsets] = {}

    def __contains__(self, number: int) -> bool:
        return number in self._open

    def of(self, asked: Values, names: Mapping[str, str]) -> tuple[Offsets | None, bool]:
        """Return the partitions that a request asks for, with offsets, and whether these are all of a new or of no
        session; None of a session that is not known."""
        number, epoch = asked.get("session_id", 0), asked.get("session_epoch", FINAL_EPOCH)
        offsets = dict(_offsets(asked, names))
        if epoch in (0, FINAL_EPOCH):
            self._open.pop(number, None)
            return offsets, True
        known = self._open.get(number)
        if known is None:
            return None, False
        for topic in asked.get("forgotten_topics_data") or ():
            for partition in topic.get("partitions") or ():
                known.pop((_name(topic, names), partition), None)
        known.update(offsets)
        return known, False

    def open(self, number: int, offsets: Offsets) -> None:
        """Begin a session."""
        self._open[number] = offsets
        if len(self._open) > MOST_SESSIONS:
            del self._open[next(iter(self._open))]

    def unused(self) -> int:
        """Return a number for a new session."""
        return max(self._open, default=0) % 0x7FFF_FFFF + 1


class FetchAnswers:
    """All that was recorded of Fetch, and the sessions of clients."""

    def __init__(self, exchanges: list[RecordedExchange], names: Mapping[str, str], topics: set[str]) -> None:
        """`names` are those of topics by id; `topics` all that are known."""
        self._names, self._topics = names, topics
        self._exchanges = exchanges
        self._asked: dict[int, Offsets] = {}
        """What recorded requests asked for, as far as their sessions are known, by number of exchange."""
        self._parts: dict[Place, list[FetchedPart]] = {}
        self._sessions = Sessions()
        self._used: set[int] = set()
        """Numbers of exchanges that were answered with."""
        self._reported: set[tuple[int, Place]] = set()
        """Errors that were answered with: the number of the exchange, and where."""
        recorded = Sessions()
        for each in exchanges:
            offsets, is_new = recorded.of(each.asked, names)
            if offsets is not None:
                self._asked[each.number] = dict(offsets)
                if is_new and each.answered.get("session_id"):
                    recorded.open(each.answered["session_id"], dict(offsets))
            for place, values in _answered_parts(each.answered, names):
                batches = list(batches_of(values.get("records") or b""))
                self._parts.setdefault(place, []).append(FetchedPart(each, values, batches))

    def restart(self) -> None:
        """Answer from the beginning again."""
        self._used.clear()
        self._reported.clear()
        self._sessions = Sessions()

    def answer(self, version: int, asked: Values, body: bytes) -> FetchAnswer:
        """Answer a request; `body` are the bytes of its body."""
        offsets, is_new = self._sessions.of(asked, self._names)
        same = self._same(version, body, offsets)
        if same is not None:
            self._used.add(same.number)
            if is_new and offsets is not None and same.answered.get("session_id"):
                self._sessions.open(same.answered["session_id"], dict(offsets))
            return FetchAnswer(None, [same])
        if offsets is None:
            return FetchAnswer({"error_code": int(ErrorCode.FETCH_SESSION_ID_NOT_FOUND), "responses": []}, [])
        answer = self._made(version, offsets, with_all=is_new)
        assert answer.body is not None
        if asked.get("session_epoch", FINAL_EPOCH) == FINAL_EPOCH:
            return answer
        if is_new:
            number = self._sessions.unused()
            self._sessions.open(number, dict(offsets))
            answer.body["session_id"] = number
        else:
            answer.body["session_id"] = asked["session_id"]
        return answer

    def _same(self, version: int, body: bytes, offsets: Offsets | None) -> RecordedExchange | None:
        """Return the next recorded exchange in which the same was asked for."""
        for each in self._exchanges:
            if each.number in self._used or each.version != version or each.body != body:
                continue
            session = each.answered.get("session_id", 0)
            is_new = each.asked.get("session_epoch") == 0
            if self._asked.get(each.number) == offsets and not (is_new and session in self._sessions):
                return each
        return None

    def _made(self, version: int, offsets: Offsets, *, with_all: bool) -> FetchAnswer:
        """Make a response of what was recorded of each partition."""
        answer = FetchAnswer({}, [], has_news=False)
        topics: dict[str, list[Values]] = {}
        for place, offset in offsets.items():
            part = self._part(place, offset)
            if part is None:
                values = self._nothing(place, offset)
                if values.get("error_code"):
                    answer.unknown.append("-".join(map(str, place)))
            else:
                values = {**part.values, "partition_index": place[1]}
                values["records"] = _from(part, offset)
                answer.exchanges.append(part.exchange)
                if part.batches and max(each.magic for each in part.batches) > _newest_magic(version):
                    values |= {"records": b"", "error_code": int(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)}
            has_news = bool(values.get("records") or values.get("error_code"))
            answer.has_news |= has_news
            if with_all or has_news:
                topics.setdefault(place[0], []).append(values)
        ids = {name: topic_id for topic_id, name in self._names.items()}
        responses = [
            {"topic": name, "topic_id": ids.get(name, name), "partitions": parts} for name, parts in topics.items()
        ]
        answer.body = {"responses": responses}
        return answer

    def _part(self, place: Place, offset: int) -> FetchedPart | None:
        """Return the recorded part with the first record from an offset on, or the next error."""
        best: FetchedPart | None = None
        lowest = 0
        for part in self._parts.get(place, ()):
            if part.values.get("error_code"):
                reported = part.exchange.number, place
                if best is None and reported not in self._reported:
                    self._reported.add(reported)
                    return part
                continue
            last = next((each.last for each in part.batches if each.last >= offset), None)
            if last is not None and (best is None or last < lowest):
                best, lowest = part, last
        return best

    def _nothing(self, place: Place, offset: int) -> Values:
        """Return what a partition without further records has: as it was recorded last."""
        values: Values = {"partition_index": place[1], "records": b""}
        known = [part.values for part in self._parts.get(place, ()) if not part.values.get("error_code")]
        if known:
            return {**known[-1], **values, "aborted_transactions": None}
        if place[0] not in self._topics:
            is_id = place[0] not in self._names.values() and len(place[0]) == len(ZERO_UUID)
            code = ErrorCode.UNKNOWN_TOPIC_ID if is_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return values | {"error_code": int(code), "high_watermark": -1}
        return values | {"high_watermark": offset, "last_stable_offset": offset, "log_start_offset": 0}


def batches_of(records: bytes) -> Iterator[OffsetSpan]:
    """Yield the batches, or the messages of old formats, that are whole."""
    at = 0
    while at + _HEAD.size <= len(records):
        base, size, _, magic = _HEAD.unpack_from(records, at)
        end = at + _SIZED + size
        if size < _HEAD.size - _SIZED or end > len(records):
            return
        last = base
        if magic >= 2 and end >= at + _LAST_DELTA_AT + _LAST_DELTA.size:
            last += _LAST_DELTA.unpack_from(records, at + _LAST_DELTA_AT)[0]
        yield OffsetSpan(at, last, magic)
        at = end


def _from(part: FetchedPart, offset: int) -> bytes:
    """Return records from the batch on that has an offset."""
    records: bytes = part.values.get("records") or b""
    first = next((each.start for each in part.batches if each.last >= offset), len(records))
    return records[first:]


def _newest_magic(version: int) -> int:
    return 0 if version < _FIRST_MAGIC_1 else 1 if version < _FIRST_MAGIC_2 else 2


def _offsets(asked: Values, names: Mapping[str, str]) -> Iterator[tuple[Place, int]]:
    for topic in asked.get("topics") or ():
        for each in topic.get("partitions") or ():
            yield (_name(topic, names), each["partition"]), each["fetch_offset"]


def _answered_parts(answered: Values, names: Mapping[str, str]) -> Iterator[tuple[Place, Values]]:
    for topic in answered.get("responses") or ():
        for each in topic.get("partitions") or ():
            yield (_name(topic, names), each["partition_index"]), each


def _name(topic: Mapping[str, Any], names: Mapping[str, str]) -> str:
    topic_id = topic.get("topic_id")
    return str(topic.get("topic") or names.get(str(topic_id), topic_id))
