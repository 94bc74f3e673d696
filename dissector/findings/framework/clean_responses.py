"""Finds the responses without errors and without throttling, which are most of a capture, in columns.

Invariant: no response that is found has an error or was throttled when it is decoded (a property test).
"""

from typing import Final

import numpy as np

from dissector.bulk.body_columns import BodyColumns
from dissector.core.arrays import Bool, Int64
from dissector.exchange.info_column import ERROR_CODES
from dissector.protocol.codec.program import Part, Program, Wanted
from dissector.protocol.kernel.shredding import Arena
from dissector.protocol.message import PREFIX

THROTTLE_TIME: Final = "throttle_time_ms"


class CleanResponses:
    """Those of one capture."""

    def __init__(self, bodies: BodyColumns) -> None:
        self._bodies = bodies
        self._arena = Arena()
        self._wanted: dict[int, tuple[Program, Wanted, list[int]]] = {}
        """By the id of a program, with the columns that are to be zero."""

    def __getstate__(self) -> BodyColumns:
        """For a checkpoint: the id of a program is that of this process only."""
        return self._bodies

    def __setstate__(self, bodies: BodyColumns) -> None:
        CleanResponses.__init__(self, bodies)

    def find(self, rows: Int64) -> Bool:
        """Return which rows of the index surely have such a response."""
        found = np.zeros(len(rows), np.bool_)
        for messages in self._bodies.messages(rows, is_request=False, in_columns=True):
            program = messages.program
            known = self._wanted.get(id(program))
            _, wanted, columns = known or self._wanted.setdefault(id(program), _zero_columns(program))
            for part in self._arena.shred(messages.frames, program, wanted, PREFIX):
                is_clean = part.errors == 0
                for number in columns:
                    is_clean[part.column(number).rows] = False
                found[messages.at[part.first : part.stop]] = is_clean
        return found


def _zero_columns(program: Program) -> tuple[Program, Wanted, list[int]]:
    columns = [
        number for number, column in enumerate(program.columns)
        if column.part is Part.VALUE and column.path[0] == "body"
        and (column.name in ERROR_CODES or column.path == ("body", THROTTLE_TIME))
    ]  # fmt: skip
    return program, program.wanted(nonzero=columns), columns
