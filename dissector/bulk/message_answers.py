"""Yes-or-no questions about the messages of many rows, answered from columns of their fields.

Numbers are compared as whole columns. Any other question is put to one decoded message of all those that have equal
values in the fields on which the answer depends.

Invariant: an answer is the one that the decoded message gives (a property test). Messages that need a careful look
have none.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from dissector.bulk.body_columns import BodyColumns, Messages
from dissector.core.arrays import Int64, UInt8
from dissector.exchange.decoder import ExchangeDecoder
from dissector.exchange.field_paths import Path
from dissector.exchange.message_question import Answers, MessageQuestion, NumberTest
from dissector.protocol.codec.program import ColumnPlan, Part, Program, Wanted
from dissector.protocol.kernel.shredding import Arena, KeyNumbers
from dissector.protocol.message_layout import PREFIX

FEW: Final = 64
"""Messages that may always be decoded for one call."""
ROWS_PER_MESSAGE: Final = 16
"""Of so many rows one message may be, so that a call takes a bounded time, and decoding pays."""
MOST_QUESTIONS: Final = 32
MOST_ANSWERS: Final = 1 << 16
MOST_KEY_BYTES: Final = 1 << 25
INTEGERS: Final = frozenset(("int8", "int16", "uint16", "int32", "uint32", "int64"))
_NO, _YES, _UNKNOWN = 0, 1, 2


class _Plan(NamedTuple):
    """How messages of one layout are read. Without `tests`, by keys."""

    program: Program
    wanted: Wanted
    tests: tuple[tuple[int, NumberTest], ...] | None


@dataclass
class _Asked:
    """One question about the messages of one side."""

    question: MessageQuestion
    side: str
    plans: dict[int, _Plan | None] = field(default_factory=dict)
    answers: dict[tuple[int, bytes], int] = field(default_factory=dict)
    """By program and key."""
    key_bytes: int = 0

    def plan(self, messages: Messages) -> _Plan | None:
        """The plan for messages; None if the question reads more than plain fields of these."""
        program = messages.program
        if id(program) not in self.plans:
            self.plans[id(program)] = self._made(program, messages.layout.body or "")
        return self.plans[id(program)]

    def _made(self, program: Program, body: str) -> _Plan | None:
        reads = self.question.reads(self.side, body)
        if reads is None:
            return None
        columns = [(number, column) for number, column in enumerate(program.columns) if decides(column, reads)]
        if any(column.type == "records" for _, column in columns):
            return None
        tests = [
            (number, test) for number, column in columns
            if (test := reads.get(column.path)) is not None and _is_plain_number(program, column)
        ]  # fmt: skip
        values = [number for number, column in columns if column.path in reads and column.part is Part.VALUE]
        if all(reads.values()) and len(tests) == len(values):
            return _Plan(program, program.wanted(values=values), tuple(tests))
        return _Plan(program, program.wanted(keys=[number for number, _ in columns]), None)

    def keep(self, program: Program, key: bytes, answer: int) -> None:
        """Remember an answer."""
        if len(self.answers) >= MOST_ANSWERS or self.key_bytes + len(key) > MOST_KEY_BYTES:
            self.answers.clear()
            self.key_bytes = 0
        self.answers[id(program), key] = answer
        self.key_bytes += len(key)


class MessageAnswers:
    """The answers to the latest questions about one capture."""

    def __init__(self, bodies: BodyColumns, decoder: ExchangeDecoder, topic_names: Mapping[str, str]) -> None:
        self._bodies = bodies
        self._decoder = decoder
        self._topic_names = topic_names
        self._names = -1
        """How many names of topics there were when answers were found."""
        self._arena = Arena()
        self._asked: dict[tuple[MessageQuestion, str], _Asked] = {}

    def of(self, question: MessageQuestion, side: str, rows: Int64) -> Answers:
        """The answers for the messages of rows, ascending, of one side."""
        asked = self._begun(question, side)
        answers = np.full(len(rows), _UNKNOWN, np.uint8)
        is_request = side == "request"
        for messages in self._bodies.messages(rows, is_request=is_request):
            plan = asked.plan(messages)
            if plan is None:
                continue
            for part in self._arena.shred(messages.frames, plan.program, plan.wanted, PREFIX):
                at = messages.at[part.first : part.stop]
                if plan.tests is None:
                    keyed = part.key_numbers()
                    answers[at] = self._by_key(asked, plan.program, keyed, rows[at])[keyed.numbers]
                    continue
                answers[at] = np.where(part.errors == 0, _NO, _UNKNOWN)
                for number, test in plan.tests:
                    column = part.column(number)
                    answers[at[column.rows[test(column.values)]]] = _YES
        return Answers(answers != _UNKNOWN, answers == _YES)

    def _begun(self, question: MessageQuestion, side: str) -> _Asked:
        self._decoder.update_conversation_state()
        if len(self._topic_names) != self._names or len(self._asked) > MOST_QUESTIONS:
            self._names = len(self._topic_names)
            self._asked.clear()
        return self._asked.setdefault((question, side), _Asked(question, side))

    def _by_key(self, asked: _Asked, program: Program, keyed: KeyNumbers, rows: Int64) -> UInt8:
        """The answer of each key; in the place behind them, which is -1 too, that of a message without one."""
        known = [asked.answers.get((id(program), key), _UNKNOWN) for key in keyed.keys]
        answers = np.array([*known, _UNKNOWN], np.uint8)
        new = np.flatnonzero(answers[:-1] == _UNKNOWN)
        most = max(FEW, len(rows) // ROWS_PER_MESSAGE)
        if len(new) > most:  # those of most messages come first
            counts = np.bincount(keyed.numbers[keyed.numbers >= 0], minlength=len(keyed.keys))
            new = new[np.argsort(-counts[new], kind="stable")[:most]]
        new = new[np.argsort(rows[keyed.rows[new]])]
        for number, exchange in zip(new.tolist(), self._decoder.exchanges(rows[keyed.rows[new]]), strict=True):
            message = exchange.request if asked.side == "request" else exchange.response
            assert message is not None, "a plain message has a frame"
            answers[number] = _YES if asked.question.answer(asked.side, message) else _NO
            asked.keep(program, keyed.keys[number], int(answers[number]))
        return answers


def decides(column: ColumnPlan, reads: Collection[Path]) -> bool:
    """Whether an answer that depends on some fields depends on a column: of them, or of what is around them."""
    path = column.path
    return column.part is not Part.UNKNOWN_TAGS and any(each[: len(path)] == path for each in reads)


def _is_plain_number(program: Program, column: ColumnPlan) -> bool:
    """Whether a column has all values of a number: a tagged field that is not there has its default."""
    is_number = column.part is Part.VALUE and column.type in INTEGERS
    return is_number and all(program.columns[above].part is Part.COUNT for above in column.above)
