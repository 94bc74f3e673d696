"""Numbers that stand alone in bodies, such as `acks` or `replica_state.replica_id`, of many messages at once.

Invariant: a number is the one that the decoded body has, or is not there: the message needs a careful look, or has no
such field.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

import numpy as np

from dissector.bulk.body_columns import BodyColumns
from dissector.core.arrays import Bool, Int64
from dissector.protocol.codec.json_program import is_value
from dissector.protocol.kernel.shredding import Arena
from dissector.protocol.message import PREFIX

_INTEGERS: Final = ("int8", "int16", "int32", "int64")


class OfBodies(NamedTuple):
    """A number of some messages, `(n,)`."""

    values: Int64
    is_there: Bool

    @classmethod
    def none(cls, count: int) -> Self:
        return cls(np.zeros(count, np.int64), np.zeros(count, np.bool_))


class BodyNumbers:
    """Of the messages of one capture."""

    def __init__(self, bodies: BodyColumns) -> None:
        self._bodies = bodies

    def of(self, rows: Int64, names: Sequence[str], *, is_request: bool) -> dict[str, OfBodies]:
        """The fields with these names, in structures with dots, of the requests of rows of the index, ascending, or of
        their responses."""
        found = {name: OfBodies.none(len(rows)) for name in names}
        arena = Arena()  # for this call: what it grew to would stay
        for messages in self._bodies.messages(rows, is_request=is_request, in_columns=True):
            program = messages.program
            columns = [
                (number, found[name])
                for number, column in enumerate(program.columns)
                if (name := ".".join(column.path[1:])) in found and is_value(column, *_INTEGERS)
            ]
            if not columns:
                continue
            wanted = program.wanted(values=[number for number, _ in columns])
            for part in arena.shred(messages.frames, program, wanted, PREFIX):
                for number, numbers in columns:
                    values, _, in_row = part.column(number)
                    at = messages.at[part.first + in_row.astype(np.int64)]
                    numbers.values[at], numbers.is_there[at] = values, True
        return found
