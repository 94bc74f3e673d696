"""Finds the heartbeats with an epoch that change nothing, which are nearly all that a member sends, by columns.

Invariant: an exchange that is found has an error, or is steady by `is_steady` when it is decoded (a property test).
"""

from typing import Final

import numpy as np

from dissector.bulk.body_columns import BodyColumns
from dissector.core.arrays import Bool, Int64
from dissector.groups.group_event import EPOCH, SUBSCRIPTIONS
from dissector.protocol.codec.program import Program, Wanted
from dissector.protocol.kernel.shredding import Arena
from dissector.protocol.message import PREFIX

NO_EPOCH: Final = 0
"""Of a message that must be decoded, or that says more than its epoch. A member with this epoch joins."""


class SteadyHeartbeats:
    """Those of one capture."""

    def __init__(self, bodies: BodyColumns) -> None:
        self._bodies = bodies
        self._arena = Arena()
        self._wanted: dict[int, tuple[Program, Wanted, int, list[int]]] = {}
        """By the id of a program, with the columns of the epoch and of subscriptions."""

    def __getstate__(self) -> BodyColumns:
        """For a checkpoint: the id of a program is that of this process only."""
        return self._bodies

    def __setstate__(self, bodies: BodyColumns) -> None:
        SteadyHeartbeats.__init__(self, bodies)

    def find(self, rows: Int64) -> Bool:
        """Return which rows of the index, exchanges of `EPOCH_APIS`, surely change nothing if they have no error."""
        asked = self._epochs(rows, is_request=True)
        found: Bool = asked > NO_EPOCH
        found[found] = self._epochs(rows[found], is_request=False) == asked[found]
        return found

    def _epochs(self, rows: Int64, *, is_request: bool) -> Int64:
        """The epochs in the messages of rows, `(n,)`; `NO_EPOCH` where one has a subscription or is not plain."""
        found = np.full(len(rows), NO_EPOCH, np.int64)
        for messages in self._bodies.messages(rows, is_request=is_request, in_columns=True):
            program = messages.program
            known = self._wanted.get(id(program))
            _, wanted, epoch, subscriptions = known or self._wanted.setdefault(id(program), _columns(program))
            for part in self._arena.shred(messages.frames, program, wanted, PREFIX):
                epochs = np.full(part.stop - part.first, NO_EPOCH, np.int64)
                column = part.column(epoch)
                epochs[column.rows] = column.values
                for number in subscriptions:
                    column = part.column(number)
                    epochs[column.rows[column.values > 0]] = NO_EPOCH
                found[messages.at[part.first : part.stop]] = epochs
        return found


def _columns(program: Program) -> tuple[Program, Wanted, int, list[int]]:
    fields = {column.path[1:]: number for number, column in enumerate(program.columns)
              if column.path[0] == "body" and not column.above}  # fmt: skip
    subscriptions = [fields[name,] for name in SUBSCRIPTIONS if (name,) in fields]
    epoch = fields[EPOCH,]
    return program, program.wanted([epoch, *subscriptions]), epoch, subscriptions
