"""The conditions of a filter, evaluated on columns of the index (no, open or yes) or on one exchange (false or true).

Invariant, a property test: where columns say yes or no, the exchange says the same.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from dissector.core.arrays import Bool, UInt8
from dissector.exchange.field_paths import SIDES, Path, found, holds
from dissector.exchange.index_rows import IndexRows, RowValues
from dissector.exchange.message_question import MessageQuestion, NumberTest
from dissector.exchange.message_subjects import ERROR, MessageSubject
from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.exchange.row_field import RowField
from dissector.exchange.row_fields import EXCHANGE
from dissector.filter.column_evaluation import NO, OPEN, YES, evaluate_column, has_any
from dissector.filter.message_fields import BODY, HEADER
from dissector.filter.predicates import Intervals, Predicate
from dissector.index.fetch_sessions import is_incremental
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.records.record import ExchangeRecord

_OF_RECORDS: Final = ("topic", "partition")
"""Row fields that each record has by itself."""


class RecordSubject(Protocol):
    """A record that a filter is applied to, and the exchange that carries it."""

    @property
    def record(self) -> ExchangeRecord:
        """The record."""

    @property
    def exchange(self) -> Exchange:
        """Its exchange, decoded when it is asked for."""


class Condition(Protocol):
    """Part of a filter."""

    @property
    def is_per_record(self) -> bool:
        """Whether records of one exchange may differ in it."""

    def evaluate_records(self, rows: IndexRows) -> UInt8:
        """Return for each row whether none of its records matches, all of them do, or each has to be asked."""

    def holds_for(self, subject: RecordSubject, start_ns: int) -> bool:
        """Return whether it holds for one record of a capture that began at `start_ns`."""

    @property
    def is_indexed(self) -> bool:
        """Whether columns of the index decide it, except for a few rows."""

    @property
    def reads_findings(self) -> bool:
        """Whether it is about findings."""

    def evaluate(self, rows: IndexRows) -> UInt8:
        """Return `NO`, `YES`, or `OPEN` (the index can't decide) for each row, `(n,)`."""

    def holds(self, exchange: Exchange, start_ns: int) -> bool:
        """Return whether it holds for an exchange of a capture that began at `start_ns`."""


class _OfExchange:
    """A condition that holds for all records of an exchange or for none."""

    @property
    def is_per_record(self) -> bool:
        return False

    def evaluate(self, rows: IndexRows) -> UInt8:
        raise NotImplementedError

    def holds(self, exchange: Exchange, start_ns: int) -> bool:
        raise NotImplementedError

    def evaluate_records(self, rows: IndexRows) -> UInt8:
        """As `Condition` says."""
        return self.evaluate(rows)

    def holds_for(self, subject: RecordSubject, start_ns: int) -> bool:
        """As `Condition` says."""
        return self.holds(subject.exchange, start_ns)


@dataclass(frozen=True)
class _Composite:
    """A condition made of other conditions."""

    parts: tuple[Condition, ...]

    @property
    def is_indexed(self) -> bool:
        return all(part.is_indexed for part in self.parts)

    @property
    def reads_findings(self) -> bool:
        return any(part.reads_findings for part in self.parts)

    @property
    def is_per_record(self) -> bool:
        return any(part.is_per_record for part in self.parts)


@dataclass(frozen=True)
class Joined(_Composite):
    """Conditions of which every one must hold, or else any. Those that the index decides come first."""

    every: bool

    def evaluate(self, rows: IndexRows) -> UInt8:
        return self._joined(lambda part: part.evaluate(rows))

    def evaluate_records(self, rows: IndexRows) -> UInt8:
        return self._joined(lambda part: part.evaluate_records(rows))

    def _joined(self, evaluate: Callable[[Condition], UInt8]) -> UInt8:
        final = NO if self.every else YES
        results = evaluate(self.parts[0])
        for part in self.parts[1:]:
            if (results == final).all():
                break
            join = np.minimum if self.every else np.maximum
            results = join(results, evaluate(part))
        return results

    def holds_for(self, subject: RecordSubject, start_ns: int) -> bool:
        results = (part.holds_for(subject, start_ns) for part in self.parts)
        return all(results) if self.every else any(results)

    def holds(self, exchange: Exchange, start_ns: int) -> bool:
        results = (part.holds(exchange, start_ns) for part in self.parts)
        return all(results) if self.every else any(results)


@dataclass(frozen=True)
class Negated(_Composite):
    """One condition that must not hold."""

    @property
    def condition(self) -> Condition:
        """The condition."""
        [condition] = self.parts
        return condition

    def evaluate(self, rows: IndexRows) -> UInt8:
        return np.uint8(YES) - self.condition.evaluate(rows)

    def holds(self, exchange: Exchange, start_ns: int) -> bool:
        return not self.condition.holds(exchange, start_ns)

    def evaluate_records(self, rows: IndexRows) -> UInt8:
        return np.uint8(YES) - self.condition.evaluate_records(rows)

    def holds_for(self, subject: RecordSubject, start_ns: int) -> bool:
        return not self.condition.holds_for(subject, start_ns)


@dataclass(frozen=True)
class RowFieldCondition(_OfExchange):
    """A predicate on a row field; without a predicate, whether the row has the field."""

    field: RowField
    predicate: Predicate | None
    is_relative: bool = False
    """Whether values are times since the start of the capture, in nanoseconds."""

    @property
    def is_indexed(self) -> bool:
        return self.field.is_indexed

    @property
    def reads_findings(self) -> bool:
        return self.field.from_summary is not None

    def evaluate(self, rows: IndexRows) -> UInt8:
        if self.field.from_summary is not None:
            return evaluate_column(self.field.from_summary(rows), self.predicate)
        results = np.full(len(rows), NO if self.field.is_indexed else OPEN, np.uint8)
        for read in self.field.from_index:
            column = read(rows)
            if self.is_relative:
                column = RowValues(column.values - rows.start_ns, column.present, column.unclear)
            results = np.maximum(results, evaluate_column(column, self.predicate))
        return results

    def holds(self, exchange: Exchange, start_ns: int) -> bool:
        values = self.field.values(exchange)
        if self.is_relative:
            values = [value - start_ns for value in values if isinstance(value, int)]
        return any(self.predicate is None or self.predicate(value) for value in values)


@dataclass(frozen=True, eq=False)
class SubjectCondition(_OfExchange):
    """A predicate on a row field that stands for fields of messages. `error` exists with an error other than NONE."""

    field: RowField
    subject: MessageSubject
    predicate: Predicate | None
    last_session: list[Any] = dataclasses.field(default_factory=lambda: [(), False], repr=False)
    """The last values of a fetch session, and whether any matches: most Fetches leave the session as it is."""

    is_indexed = False
    reads_findings = False

    def evaluate(self, rows: IndexRows) -> UInt8:
        examined = self.field.from_summary and evaluate_column(self.field.from_summary(rows), self.predicate)
        results = np.zeros(len(rows), np.uint8)
        for side in SIDES:
            keys = [place.api_key for place in self.subject.places if place.side == side and place.api_key is not None]
            may = _may_have(rows, side, keys)
            if examined is not None:
                results[may & (examined == YES)] = YES
                may &= examined == OPEN
            results = np.maximum(results, _by_messages(rows, self, side, may))
        if self.subject.more is not None:
            unclear = (results == NO) & _may_have(rows, SIDES[0], [ApiKey.FETCH])
            results = np.maximum(results, np.minimum(_by_messages(rows, _CONTINUES_SESSION, SIDES[0], unclear), OPEN))
        return results

    def holds(self, exchange: Exchange, _start_ns: int) -> bool:
        if self._is_any(self.subject.in_messages(exchange)):
            return True
        more = self.subject.of_session(exchange)
        last, result = self.last_session
        if more and last is not more:
            result = self._is_any(more)
            self.last_session[:] = more, result
        return bool(more and result)

    @property
    def is_per_record(self) -> bool:
        """Whether it is about topics or partitions: a record has its own."""
        return self.field.name in _OF_RECORDS

    def evaluate_records(self, rows: IndexRows) -> UInt8:
        """As `Condition` says."""
        results = self.evaluate(rows)
        return np.where(results == YES, np.uint8(OPEN), results) if self.is_per_record else results

    def holds_for(self, subject: RecordSubject, start_ns: int) -> bool:
        """As `Condition` says."""
        if not self.is_per_record:
            return self.holds(subject.exchange, start_ns)
        return self._is_any([getattr(subject.record, self.field.name)])

    def _is_any(self, values: Iterable[object]) -> bool:
        if self.predicate is None:
            nothing = (None, ErrorCode.NONE) if self.subject is ERROR else (None,)
            return any(value not in nothing for value in values)
        return any(map(self.predicate, values))

    def reads(self, _side: str, body: str) -> Mapping[Path, NumberTest | None]:
        """As `MessageQuestion` says."""
        test = _number_test(self.predicate) if self.subject.values is None else None
        return dict.fromkeys(self.subject.reads(body), test)

    def answer(self, _side: str, message: ExchangeMessage) -> bool:
        """As `MessageQuestion` says."""
        return self._is_any(self.subject.in_message(message))


@dataclass(frozen=True)
class FieldTest:
    """A predicate on the values at one path of a message; without a predicate, whether there is a value."""

    path: Path
    opened: bool
    """Whether the path leads into an embedded format."""
    predicate: Predicate | None


@dataclass(frozen=True, eq=False)
class MessageCondition(_OfExchange):
    """A field of messages.

    `tests` are by side and message, those of headers by side and side. `api_keys` are the APIs of each side that have
    the field; None among them stands for headers and for entries of Kafka's own files."""

    tests: Mapping[tuple[str, str], tuple[FieldTest, ...]]
    api_keys: Mapping[str, frozenset[int | None]]

    is_indexed = False
    reads_findings = False

    def evaluate(self, rows: IndexRows) -> UInt8:
        results = np.zeros(len(rows), np.uint8)
        for side, keys in self.api_keys.items():
            in_header = (side, side) in self.tests
            may = _may_have(rows, side, None if in_header else [key for key in keys if key is not None])
            results = np.maximum(results, _by_messages(rows, self, side, may))
        return results

    def holds(self, exchange: Exchange, _start_ns: int) -> bool:
        for side, message in zip(SIDES, (exchange.request, exchange.response), strict=True):
            if message is None:
                continue
            if exchange.is_stored:
                if self._holds_in(message, (side, exchange.fields.kind)):
                    return True
            elif exchange.fields.kind == EXCHANGE and self.answer(side, message):
                return True
        return False

    def reads(self, side: str, body: str) -> Mapping[Path, NumberTest | None] | None:
        """As `MessageQuestion` says."""
        of_header, of_body = self.tests.get((side, side), ()), self.tests.get((side, body), ())
        if any(test.opened for test in of_body):
            return None
        return {test.path: _number_test(test.predicate) for test in of_header} | {
            (BODY, *test.path): _number_test(test.predicate) for test in of_body
        }

    def answer(self, side: str, message: ExchangeMessage) -> bool:
        """As `MessageQuestion` says."""
        return self._holds_in(message, (side, side)) or self._holds_in(message, (side, message.layout.body or ""))

    def _holds_in(self, message: ExchangeMessage, key: tuple[str, str]) -> bool:
        tests = self.tests.get(key, ())
        if not tests:
            return False
        decoded = message.decoded_body if any(test.opened for test in tests) else {}
        for test in tests:
            values: object = decoded if test.opened else message.known_body
            if test.path[0] == HEADER and key[0] == key[1]:
                values = {HEADER: message.header}
            if test.predicate is None:
                if holds(values, test.path):
                    return True
            elif any(map(test.predicate, found(values, test.path))):
                return True
        return False


class _ContinuesSession:
    """Whether a Fetch is incremental: then it is about partitions that it does not name."""

    def reads(self, _side: str, _body: str) -> Mapping[Path, NumberTest | None]:
        """As `MessageQuestion` says."""
        return {(BODY, "session_epoch"): lambda epochs: epochs > 0}

    def answer(self, _side: str, message: ExchangeMessage) -> bool:
        """As `MessageQuestion` says."""
        return is_incremental(message.body)


_CONTINUES_SESSION: Final = _ContinuesSession()


def _number_test(predicate: Predicate | None) -> NumberTest | None:
    return predicate.of_column if isinstance(predicate, Intervals) else None


def _by_messages(rows: IndexRows, question: MessageQuestion, side: str, may: Bool) -> UInt8:
    """Answer a question about the messages of a side, where it may hold, as far as the rows are read for that."""
    results = np.where(may, np.uint8(OPEN), np.uint8(NO))
    if rows.reads_messages:
        at = np.flatnonzero(may)
        known, holds = rows.answers(question, side, at)
        results[at[known]] = np.where(holds[known], np.uint8(YES), np.uint8(NO))
    return results


def _may_have(rows: IndexRows, side: str, api_keys: Iterable[int] | None) -> Bool:
    """Return which rows may have a message of a side of one of these APIs, `(n,)`: also those of an unknown API."""
    present = rows.has_request if side == "request" else rows.has_response
    if api_keys is None:
        return present
    known = present & has_any(rows.api_keys, list(api_keys))
    return known if side == "request" else known | rows.is_orphan
