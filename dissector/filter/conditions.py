"""A filter as it is asked: of columns of the index, with answers of three values, and of one exchange, with yes or no.

Invariant: where columns answer yes or no, the exchange answers the same: a property test.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dissector.core.arrays import UInt8
from dissector.exchange.field_paths import SIDES, Path, found, holds
from dissector.exchange.index_rows import IndexRows, RowValues
from dissector.exchange.message_subjects import ERROR, MessageSubject
from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.exchange.row_fields import EXCHANGE, RowField
from dissector.filter.column_answers import NO, OPEN, YES, answer, has_any
from dissector.filter.message_fields import HEADER
from dissector.filter.predicates import Predicate
from dissector.protocol.schema.error_codes import ErrorCode


class Condition(Protocol):
    """Part of a filter."""

    @property
    def is_of_index(self) -> bool:
        """Whether columns of the index answer it, but for the odd row."""

    @property
    def asks_findings(self) -> bool:
        """Whether it is about what was found."""

    @property
    def reads_row_summaries(self) -> bool:
        """Whether it reads the findings or errors of single rows, which columns have once these are examined."""

    def answers(self, rows: IndexRows) -> UInt8:
        """Of every row: no, yes, or open: the index can't say."""

    def holds(self, exchange: Exchange, start_ns: int) -> bool:
        """Of an exchange of a capture that began then."""


@dataclass(frozen=True)
class Joined:
    """Conditions of which every one has to hold, or else any. What the index answers stands first."""

    parts: tuple[Condition, ...]
    every: bool

    @property
    def is_of_index(self) -> bool:
        return all(part.is_of_index for part in self.parts)

    @property
    def asks_findings(self) -> bool:
        return any(part.asks_findings for part in self.parts)

    @property
    def reads_row_summaries(self) -> bool:
        return any(part.reads_row_summaries for part in self.parts)

    def answers(self, rows: IndexRows) -> UInt8:
        final = NO if self.every else YES
        answers = self.parts[0].answers(rows)
        for part in self.parts[1:]:
            if (answers == final).all():
                break
            join = np.minimum if self.every else np.maximum
            answers = join(answers, part.answers(rows))
        return answers

    def holds(self, exchange: Exchange, start_ns: int) -> bool:
        results = (part.holds(exchange, start_ns) for part in self.parts)
        return all(results) if self.every else any(results)


@dataclass(frozen=True)
class Negated:
    """A condition that must not hold."""

    of: Condition

    @property
    def is_of_index(self) -> bool:
        return self.of.is_of_index

    @property
    def asks_findings(self) -> bool:
        return self.of.asks_findings

    @property
    def reads_row_summaries(self) -> bool:
        return self.of.reads_row_summaries

    def answers(self, rows: IndexRows) -> UInt8:
        return np.uint8(YES) - self.of.answers(rows)

    def holds(self, exchange: Exchange, start_ns: int) -> bool:
        return not self.of.holds(exchange, start_ns)


@dataclass(frozen=True)
class OfRow:
    """A row field; without a predicate, whether the row has it."""

    field: RowField
    predicate: Predicate | None
    is_relative: bool = False
    """Whether the predicate is about times since the capture's start, in nanoseconds."""

    @property
    def is_of_index(self) -> bool:
        return self.field.is_indexed

    @property
    def asks_findings(self) -> bool:
        return self.field.from_summary is not None

    @property
    def reads_row_summaries(self) -> bool:
        return self.field.from_summary is not None

    def answers(self, rows: IndexRows) -> UInt8:
        if self.field.from_summary is not None:
            return answer(self.field.from_summary(rows), self.predicate)
        answers = np.full(len(rows), NO if self.field.is_indexed else OPEN, np.uint8)
        for read in self.field.from_index:
            column = read(rows)
            if self.is_relative:
                column = RowValues(column.values - rows.start_ns, column.present, column.unclear)
            answers = np.maximum(answers, answer(column, self.predicate))
        return answers

    def holds(self, exchange: Exchange, start_ns: int) -> bool:
        values = self.field.values(exchange)
        if self.is_relative:
            values = [value - start_ns for value in values if isinstance(value, int)]
        return any(self.predicate is None or self.predicate(value) for value in values)


@dataclass(frozen=True)
class OfSubject:
    """A row field that stands for fields of messages. `error` exists if there is an error other than NONE."""

    field: RowField
    subject: MessageSubject
    predicate: Predicate | None

    is_of_index = False
    asks_findings = False

    @property
    def reads_row_summaries(self) -> bool:
        return self.field.from_summary is not None

    def answers(self, rows: IndexRows) -> UInt8:
        may = np.zeros(len(rows), np.bool_)
        for side in SIDES:
            keys = [place.api_key for place in self.subject.places if place.side == side and place.api_key is not None]
            may |= _may_have(rows, side, keys)
        if self.field.from_summary is None:
            return np.where(may, np.uint8(OPEN), np.uint8(NO))
        return np.where(may, answer(self.field.from_summary(rows), self.predicate), np.uint8(NO))

    def holds(self, exchange: Exchange, _start_ns: int) -> bool:
        if self.predicate is None:
            nothing = (None, ErrorCode.NONE) if self.subject is ERROR else (None,)
            return any(value not in nothing for value in self.subject.of(exchange))
        return any(map(self.predicate, self.subject.of(exchange)))


@dataclass(frozen=True)
class FieldTest:
    """What is looked for at one path of a message."""

    path: Path
    opened: bool
    predicate: Predicate | None


@dataclass(frozen=True)
class OfBody:
    """A field of messages: `looks` by side and message, headers by the side's name. `api_keys` are those of each side
    that have it; None for all, and for entries of Kafka's own files."""

    looks: Mapping[tuple[str, str], tuple[FieldTest, ...]]
    api_keys: Mapping[str, frozenset[int | None]]

    is_of_index = False
    asks_findings = False
    reads_row_summaries = False

    def answers(self, rows: IndexRows) -> UInt8:
        answers = np.zeros(len(rows), np.uint8)
        for side, keys in self.api_keys.items():
            of_any = (side, side) in self.looks
            answers[_may_have(rows, side, None if of_any else [key for key in keys if key is not None])] = OPEN
        return answers

    def holds(self, exchange: Exchange, _start_ns: int) -> bool:
        for side, message in zip(SIDES, (exchange.request, exchange.response), strict=True):
            if message is None:
                continue
            if exchange.is_stored:
                if self._in(message, (side, exchange.fields.kind)):
                    return True
            elif exchange.fields.kind == EXCHANGE and (
                self._in(message, (side, side)) or self._in(message, (side, message.layout.body or ""))
            ):
                return True
        return False

    def _in(self, message: ExchangeMessage, which: tuple[str, str]) -> bool:
        looks = self.looks.get(which, ())
        if not looks:
            return False
        opened = message.decoded_body if any(look.opened for look in looks) else {}
        for look in looks:
            values: object = opened if look.opened else message.body
            if look.path[0] == HEADER and which[0] == which[1]:
                values = {HEADER: message.header}
            if look.predicate is None:
                if holds(values, look.path):
                    return True
            elif any(map(look.predicate, found(values, look.path))):
                return True
        return False


def _may_have(rows: IndexRows, side: str, api_keys: Iterable[int] | None) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which rows have a message of that side of one of these APIs; responses of an unknown API may."""
    there = rows.has_request if side == "request" else rows.has_response
    if api_keys is None:
        return there
    known = there & has_any(rows.api_keys, list(api_keys))
    return known if side == "request" else known | rows.is_orphan
