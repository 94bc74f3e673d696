"""Yes-or-no questions about messages, as filters ask them of many rows at once. `bulk.message_answers` answers them."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from dissector.core.arrays import Bool, Int64
from dissector.exchange.field_paths import Path
from dissector.exchange.model import ExchangeMessage

NumberTest = Callable[[Int64], Bool]
"""Which numbers of a column pass."""


class MessageQuestion(Protocol):
    """Can be answered for one message. It is known by its identity."""

    def reads(self, side: str, body: str) -> Mapping[Path, NumberTest | None] | None:
        """The fields on which the answer for a message depends, by their paths from ``header`` or ``body`` on. If all
        have a test, the answer is whether any number passes that of its field. None if more than that is read."""

    def answer(self, side: str, message: ExchangeMessage) -> bool:
        """The answer for a decoded message."""


class Answers(NamedTuple):
    """Of the messages of some rows, `(n,)`."""

    known: Bool
    holds: Bool


class AnswersQuestions(Protocol):
    """Answers for the rows of one capture."""

    def of(self, question: MessageQuestion, side: str, rows: Int64) -> Answers:
        """The answers for the messages of rows, ascending, of one side: ``request`` or ``response``."""
