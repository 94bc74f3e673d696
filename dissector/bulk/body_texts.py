"""Texts that stand alone in bodies, such as `group_id` or `member_id`, of many messages at once, as numbers.

Invariant: a text is the one that the decoded body has, or is not there: the message needs a careful look, or has no
such field, or null.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from dissector.bulk.body_columns import BodyColumns, Messages
from dissector.bulk.record_columns import topics
from dissector.core.arrays import Int64
from dissector.core.columns import ValueNumbers
from dissector.protocol.codec.json_program import is_value
from dissector.protocol.kernel.shredding import Arena, Shredded
from dissector.protocol.message import PREFIX

NO_TEXT: Final = -1


class BodyTexts:
    """Of the messages of one capture."""

    def __init__(self, bodies: BodyColumns) -> None:
        self._bodies = bodies

    def of(
        self, rows: Int64, names: Sequence[str], texts: ValueNumbers[str], *, is_request: bool
    ) -> dict[str, Int64]:  # fmt: skip
        """The numbers of the fields with these names, of the requests of rows of the index, ascending, or of their
        responses, `(n,)` each: `NO_TEXT` where there is none. `texts` numbers them."""
        found = {name: np.full(len(rows), NO_TEXT) for name in names}
        arena = Arena()  # for this call: what it grew to would stay
        for messages in self._bodies.messages(rows, is_request=is_request, in_columns=True):
            program = messages.program
            columns = [
                (number, found[name])
                for number, column in enumerate(program.columns)
                if (name := ".".join(column.path[1:])) in found and is_value(column, "string")
            ]
            if not columns:
                continue
            wanted = program.wanted(values=[number for number, _ in columns])
            for part in arena.shred(messages.frames, program, wanted, PREFIX):
                for number, numbers in columns:
                    at = messages.at[part.first + part.column(number).rows.astype(np.int64)]
                    numbers[at] = texts_of(part, messages, number, {}, texts)
        return found


def texts_of(
    part: Shredded, messages: Messages, column: int, names: Mapping[str, str], texts: ValueNumbers[str]
) -> Int64:
    """Return the numbers of a column's texts, `NO_TEXT` where they are null; of ids those of the `names` that they
    stand for, where these are known."""
    sizes = part.column(column).values
    are_ids = messages.program.columns[column].type == "uuid"
    if not are_ids and (sizes < 0).all():
        return np.full(len(sizes), NO_TEXT)
    is_null = np.zeros(len(sizes), np.bool_) if are_ids else sizes < 0
    which, found = topics(part, column, messages.frames.addresses, names, are_ids=are_ids)
    numbers = np.array([texts.of(each) for each in found], np.int64)[which]
    return np.where(is_null, NO_TEXT, numbers)
