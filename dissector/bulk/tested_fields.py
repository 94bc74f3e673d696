"""Finds messages by tests of the numbers in them, many messages at once, in columns.

Invariant: a message that was read passes if the decoded body has numbers that pass one of the tests; others need a
careful look.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from dissector.bulk.body_columns import BodyColumns, Messages
from dissector.core.arrays import Bool, Int64, UInt64
from dissector.protocol.codec.program import Program, Wanted
from dissector.protocol.kernel.shredding import Arena, Shredded
from dissector.protocol.message_layout import PREFIX


class ColumnTest(Protocol):
    """A test of a field, or of several of one structure, whose values come side by side."""

    def __call__(self, *values: Int64) -> Bool: ...


RecordsTest = Callable[[UInt64, Int64], Bool]
"""A test of `records` fields in memory: of their addresses and sizes, none of them empty."""


class Test(NamedTuple):
    """A test of columns of a program: of their values, or of what is in a `records` field."""

    question: int
    """The number of what it is a test for."""
    columns: tuple[int, ...]
    test: ColumnTest | None = None
    of_records: RecordsTest | None = None


class TestedMessages(NamedTuple):
    """Of messages, `(n,)`: which ones were read, and by question which ones pass one of its tests, `(questions, n)`."""

    is_read: Bool
    passes: Bool


class TestedFields:
    """Of the messages of one capture."""

    def __init__(self, bodies: BodyColumns) -> None:
        self._bodies = bodies

    def of(
        self, rows: Int64, tests: Callable[[int, Program], Sequence[Test]], *, questions: int, is_request: bool,
        joins: bool,
    ) -> TestedMessages:  # fmt: skip
        """Test the requests of rows of the index, ascending, or their responses. `tests` returns those of some
        `questions` for an API's messages with a program; it `joins` frames in pieces if some are of records."""
        found = TestedMessages(np.zeros(len(rows), np.bool_), np.zeros((questions, len(rows)), np.bool_))
        known: dict[int, tuple[Program, Sequence[Test], Wanted]] = {}
        arena = Arena()  # for this call: what it grew to would stay
        for messages in self._bodies.messages(rows, is_request=is_request, in_columns=True, joins=joins):
            if id(messages.program) not in known:
                made = tests(messages.api_key, messages.program)
                known[id(messages.program)] = messages.program, made, _wanted(messages.program, made)
            _, some, wanted = known[id(messages.program)]
            for part in arena.shred(messages.frames, messages.program, wanted, PREFIX):
                at = messages.at[part.first : part.stop]
                found.is_read[at] = part.errors == 0
                for each in some:
                    found.passes[each.question, at[_passing(part, messages, each)]] = True
        return found


def _wanted(program: Program, tests: Sequence[Test]) -> Wanted:
    """What is wanted for tests: of columns whose zeros pass none, the other numbers."""
    columns = {column for each in tests for column in each.columns}
    nothing = np.zeros(1, np.int64)
    with_zeros = {column for each in tests for column in each.columns
                  if len(each.columns) > 1 or (each.test is not None and each.test(nothing)[0])}  # fmt: skip
    return program.wanted(values=with_zeros, nonzero=columns - with_zeros)


def _passing(part: Shredded, messages: Messages, test: Test) -> Int64:
    """The messages of a part that pass, by their places in it."""
    columns = [part.column(number) for number in test.columns]
    rows = columns[0].rows.astype(np.int64)
    if test.test is not None:
        return rows[test.test(*(column.values for column in columns))]
    assert test.of_records is not None
    some = np.flatnonzero(columns[0].values > 0)
    starts = messages.frames.addresses[part.first + rows[some]] + columns[0].positions[some].astype(np.uint64)
    return rows[some[test.of_records(starts, columns[0].values[some])]]
