"""Numbers messages by their values in some fields: what depends on these fields alone is computed once for a number.

Invariants:
  * plain messages (`BodyColumns`) of one layout that are equal in the chosen fields have one number, and others have
    others. Of `outlines` of fields less than their values counts (`Want.OUTLINE`). 0 is for messages that need a
    careful look, and for what comes when there are too many numbers;
  * numbers stay as they are for the life of the object.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from dissector.bulk.body_columns import BodyColumns, Messages
from dissector.core.arrays import Int64
from dissector.protocol.codec.program import ColumnPlan, Program, Wanted
from dissector.protocol.kernel.shredding import Arena, Shredded
from dissector.protocol.message_layout import PREFIX

MOST_KEYS: Final = 1 << 17
MOST_KEY_BYTES: Final = 1 << 25
Choose = Callable[[int, ColumnPlan], bool]
"""Whether a column of messages of an API is wanted."""
Visit = Callable[[Messages, Shredded], None]
"""Called with messages, and some of them in columns."""


def no_column(_api_key: int, _column: ColumnPlan) -> bool:
    """Choose none."""
    return False


class FieldKeys:
    """Of the requests of one capture, or of its responses. `keys` and `outlines` choose the fields; of `nonzero`
    columns the values that are not zero, of `values` columns all, are there for whoever visits the messages.
    `in_columns` takes responses with the metadata log, too: for keys that are shown to nobody."""

    def __init__(
        self,
        bodies: BodyColumns,
        keys: Choose,
        nonzero: Choose = no_column,
        values: Choose = no_column,
        *,
        is_request: bool,
        outlines: Choose = no_column,
        in_columns: bool = False,
    ) -> None:
        self._bodies = bodies
        self._keys = keys
        self._outlines = outlines
        self._nonzero = nonzero
        self._values = values
        self._is_request = is_request
        self._in_columns = in_columns
        self._arena = Arena()
        self._wanted: dict[int, Wanted] = {}
        """By program."""
        self._programs: list[Program] = []
        self._numbers: dict[tuple[int, bytes], int] = {}
        self._room = MOST_KEY_BYTES

    def numbers(self, rows: Int64, visit: Visit | None = None) -> Int64:
        """The numbers of the messages of rows, `(n,)`, from 1."""
        found = np.zeros(len(rows), np.int64)
        for messages in self._bodies.messages(rows, is_request=self._is_request, in_columns=self._in_columns):
            wanted = self._wanted_of(messages)
            for part in self._arena.shred(messages.frames, messages.program, wanted, PREFIX):
                keyed = part.key_numbers()
                known = np.array([self._number(messages.program, key) for key in keyed.keys] + [0], np.int64)
                found[messages.at[part.first : part.stop]] = known[keyed.numbers]
                if visit is not None:
                    visit(messages, part)
        return found

    def _number(self, program: Program, key: bytes) -> int:
        whole = id(program), key
        number = self._numbers.get(whole)
        if number is None:
            if len(self._numbers) == MOST_KEYS or len(key) > self._room:
                return 0
            self._room -= len(key)
            number = self._numbers[whole] = len(self._numbers) + 1
        return number

    def _wanted_of(self, messages: Messages) -> Wanted:
        program, key = messages.program, messages.api_key
        found = self._wanted.get(id(program))
        if found is None:
            columns = list(enumerate(program.columns))
            chosen = [number for number, column in columns if self._keys(key, column)]
            outlines = [number for number, column in columns if self._outlines(key, column)]
            nonzero = [number for number, column in columns if self._nonzero(key, column)]
            values = [number for number, column in columns if self._values(key, column)]
            found = self._wanted[id(program)] = program.wanted(values, chosen, nonzero, outlines)
            self._programs.append(program)  # so that no other program gets its id
        return found
