"""Runs the detectors of one message over rows, by columns of the fields that they read.

The tests of all detectors see the columns of one reading of the messages. What passes none is done. Of the rest,
exchanges that are equal in the fields that a detector reads are looked at once, and an exchange is decoded once for all
detectors that look at it.

Invariants:
  * the findings are those of a decoding of each row, masked as everywhere: a property test. Messages that need a
    careful look (`BodyColumns`) are decoded;
  * they depend on their row alone, not on the order in which rows are examined.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from dissector.bulk.body_columns import BodyColumns, Messages
from dissector.bulk.field_keys import FieldKeys
from dissector.bulk.message_answers import INTEGERS
from dissector.core.arrays import Bool, Int64
from dissector.core.finding import Finding
from dissector.core.store import Store
from dissector.exchange.decoder import ExchangeDecoder
from dissector.exchange.message_question import NumberTest
from dissector.findings import registry
from dissector.findings.framework.detector import MessageDetector
from dissector.findings.framework.open_findings import FindingStore
from dissector.findings.framework.read_fields import REQUEST, SIDES, DeclaredFields, ReadField, ReadFields
from dissector.index.exchange_table import NO_FRAME, RowKind
from dissector.index.indexer import Indexer
from dissector.protocol.codec.program import ColumnPlan, Program, Wanted
from dissector.protocol.kernel.shredding import Arena
from dissector.protocol.message_layout import PREFIX

MOST_PAIRS: Final = 1 << 12
"""Different pairs of messages whose findings are kept for a detector, as far as it reads them."""
NO_PAIR: Final = -1
"""Of a row that must be decoded by itself."""
Findings = tuple[Finding, ...]


class MessageExamination:
    """Of one capture, which may still grow. What a checkpoint has of it are its arguments."""

    def __init__(self, index: Indexer, store: Store, decoder: ExchangeDecoder, findings: FindingStore) -> None:
        self._arguments = index, store, decoder, findings
        self._index = index
        self._decoder = decoder
        self._findings = findings
        self._bodies = BodyColumns(index, store, show_secrets=decoder.shows_secrets)
        self._rules = [_Rule(each(), self._bodies) for each in registry.DETECTORS if issubclass(each, MessageDetector)]
        self._tests = _TestedColumns(self._rules)
        self._arena = Arena()
        self._only: Bool | None = None
        """Which rows are examined; None for all of them."""

    def __getstate__(self) -> tuple[object, ...]:
        return self._arguments

    def __setstate__(self, arguments: tuple[Indexer, Store, ExchangeDecoder, FindingStore]) -> None:
        MessageExamination.__init__(self, *arguments)

    def limit_to(self, rows: Int64) -> None:
        """Examine only these rows of the index, which is complete."""
        self._only = np.zeros(len(self._index.table), np.bool_)
        self._only[rows] = True

    def examine(self, rows: Int64) -> None:
        """Find what these rows of the index show, each once."""
        if not self._rules:
            return
        table, rows = self._index.table, np.sort(rows)
        if self._only is not None:
            rows = rows[self._only[rows]]
        rows = rows[(table.kind.values[rows] == RowKind.EXCHANGE) & (table.request.values[rows] != NO_FRAME)]
        looked_at = [_LookedAt.of(rule, rows[which], self._has_response(rows[which]))
                     for rule, which in zip(self._rules, self._suspects(rows), strict=True)]  # fmt: skip
        found = self._decoded(looked_at)
        for number, (rule, each) in enumerate(zip(self._rules, looked_at, strict=True)):
            rule.learn(each, found.get(number, {}))
            for some, findings in each.findings(rule, found.get(number, {})):
                self._findings.report_equal(some, findings)

    def _has_response(self, rows: Int64) -> Bool:
        there: Bool = self._index.table.response.values[rows] != NO_FRAME
        return there

    def _suspects(self, rows: Int64) -> Bool:
        """Which rows each rule has to look at, `(rules, n)`."""
        api_keys, has_response = self._index.table.api_key.values[rows], self._has_response(rows)
        suspects = np.zeros((len(self._rules), len(rows)), np.bool_)
        for side in SIDES:
            may = np.stack([rule.is_of_api(api_keys) & rule.looks_at(side) for rule in self._rules])
            may &= has_response | (side == REQUEST)
            tested = np.flatnonzero(may[[bool(rule.tests) for rule in self._rules]].any(axis=0))
            for messages in self._bodies.messages(rows[tested], is_request=side == REQUEST, in_columns=True):
                self._test(messages, side, tested, may)
            suspects |= may
        return suspects

    def _test(self, messages: Messages, side: str, rows: Int64, may: Bool) -> None:
        """Clear in `may` the messages that pass no test. `rows` are the places of the messages there."""
        wanted, tests = self._tests.of(messages, side)
        if not tests:
            return
        for part in self._arena.shred(messages.frames, messages.program, wanted, PREFIX):
            at = rows[messages.at[part.first : part.stop]]
            is_unread = part.errors != 0
            for rule, columns in tests:
                passes = is_unread.copy()
                for number, test in columns:
                    column = part.column(number)
                    passes[column.rows[test(column.values)]] = True
                may[rule, at] &= passes

    def _decoded(self, looked_at: "Sequence[_LookedAt]") -> dict[int, dict[int, Findings]]:
        """What each rule finds, by its number and by row."""
        by_row: dict[int, list[int]] = {}
        for number, each in enumerate(looked_at):
            for row in each.decoded.tolist():
                by_row.setdefault(row, []).append(number)
        found: dict[int, dict[int, Findings]] = {}
        rows = np.array(sorted(by_row), np.int64)
        for row, exchange in zip(rows.tolist(), self._decoder.exchanges(rows), strict=True):
            for number in by_row[row]:
                rule = self._rules[number]
                fields = ReadFields(exchange, rule.fields)
                found.setdefault(number, {})[row] = tuple(rule.detector.find(fields))
        return found


class _Rule:
    """A detector, and what it has found for messages that are equal in what it reads."""

    def __init__(self, detector: MessageDetector, bodies: BodyColumns) -> None:
        self.detector = detector
        self.fields = DeclaredFields(detector.explanation.code, detector.reads)
        tests = [(self.fields.field(name), test) for name, test in detector.reads.items() if test is not None]
        self.tests: list[tuple[ReadField, NumberTest]] = tests
        self._apis = np.array(sorted(detector.apis), np.int64)
        self._bodies = bodies
        self.known: dict[int, Findings] = {}
        """By pair."""
        self._keys: dict[str, FieldKeys] = {}
        self.forget()

    def forget(self) -> None:
        """Forget all pairs."""
        self.known.clear()
        self._keys = {
            side: FieldKeys(self._bodies, partial(self._is_read, side), is_request=side == REQUEST)
            for side in SIDES if self.fields.of(side)
        }  # fmt: skip

    def _is_read(self, side: str, _api_key: int, column: ColumnPlan) -> bool:
        return any(each.covers(column.path) for each in self.fields.of(side))

    def looks_at(self, side: str) -> bool:
        """Whether a message of this side may make an exchange suspect."""
        return any(each.side == side for each, _ in self.tests) if self.tests else bool(self.fields.of(side))

    def is_of_api(self, api_keys: Int64) -> Bool:
        """Which exchanges, by the keys of their APIs, it looks at."""
        return np.isin(api_keys, self._apis) if len(self._apis) else np.ones(len(api_keys), np.bool_)

    def pairs(self, rows: Int64, has_response: Bool) -> Int64:
        """Numbers for what it reads of rows, `(n,)`; `NO_PAIR` for those that must be decoded by themselves."""
        pairs = np.zeros(len(rows), np.int64)
        for side, keys in self._keys.items():
            there = np.ones(len(rows), np.bool_) if side == REQUEST else has_response
            numbers = np.zeros(len(rows), np.int64)
            numbers[there] = keys.numbers(rows[there])
            is_careful = (pairs == NO_PAIR) | (there & (numbers == 0))
            pairs = np.where(is_careful, NO_PAIR, pairs << 32 | numbers)
        return pairs

    def learn(self, looked_at: "_LookedAt", found: dict[int, Findings]) -> None:
        """Remember what was found for new pairs."""
        self.known.update((pair, found[row]) for pair, row in looked_at.new.items())


class _LookedAt(NamedTuple):
    """The rows that a rule looks at, ascending."""

    rows: Int64
    pairs: Int64
    new: dict[int, int]
    """The row that is decoded for each pair that is not known."""

    @classmethod
    def of(cls, rule: _Rule, rows: Int64, has_response: Bool) -> "_LookedAt":
        """Those of a rule."""
        if len(rule.known) > MOST_PAIRS:
            rule.forget()
        pairs = rule.pairs(rows, has_response)
        different, first = np.unique(pairs, return_index=True)
        new = {
            pair: row for pair, row in zip(different.tolist(), rows[first].tolist(), strict=True)
            if pair != NO_PAIR and pair not in rule.known
        }  # fmt: skip
        return cls(rows, pairs, new)

    @property
    def decoded(self) -> Int64:
        """The rows that are decoded."""
        return np.concatenate([self.rows[self.pairs == NO_PAIR], np.array(list(self.new.values()), np.int64)])

    def findings(self, rule: _Rule, found: dict[int, Findings]) -> Iterator[tuple[Int64, Findings]]:
        """Rows with findings, those that are equal together."""
        order = np.argsort(self.pairs, kind="stable")
        edges = np.flatnonzero(np.diff(self.pairs[order])) + 1
        for some in np.split(order, edges) if len(order) else ():
            pair, rows = int(self.pairs[some[0]]), self.rows[some]
            for equal in rows[:, None] if pair == NO_PAIR else (rows,):
                if findings := found[int(equal[0])] if pair == NO_PAIR else rule.known[pair]:
                    yield equal, findings


class _TestedColumns:
    """The columns that the tests of all rules see."""

    def __init__(self, rules: Sequence[_Rule]) -> None:
        self._rules = rules
        self._known: dict[tuple[int, str], tuple[Program, Wanted, _Tests]] = {}
        """By the id of a program, which is kept so that no other gets it."""

    def of(self, messages: Messages, side: str) -> "tuple[Wanted, _Tests]":
        """What is wanted of messages, and the tests of each rule that has some."""
        key = id(messages.program), side
        if key not in self._known:
            tests = [(number, _tests(rule, messages, side)) for number, rule in enumerate(self._rules)]
            known = [(number, columns) for number, columns in tests if columns is not None]
            wanted = messages.program.wanted(values={column for _, columns in known for column, _ in columns})
            self._known[key] = messages.program, wanted, known
        return self._known[key][1:]


_Tests = list[tuple[int, list[tuple[int, NumberTest]]]]
"""Numbers of rules, each with its columns and their tests."""


def _tests(rule: _Rule, messages: Messages, side: str) -> list[tuple[int, NumberTest]] | None:
    """The tested columns of messages, none for a version without the fields; None if the rule tests none of the side.
    Raises `ValueError` for a test of what is no number."""
    tests = [(field, test) for field, test in rule.tests if field.side == side]
    if not tests or not rule.is_of_api(np.array([messages.api_key]))[0]:
        return None
    found: list[tuple[int, NumberTest]] = []
    for field, test in tests:
        columns = [each for each in enumerate(messages.program.columns) if field.is_at(each[1].path)]
        numbers = [number for number, column in columns if column.type in INTEGERS]
        if columns and not numbers:
            raise ValueError(f"{'.'.join(columns[0][1].path)} is no number: it can't be tested")
        found += ((number, test) for number in numbers)
    return found
