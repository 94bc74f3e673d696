"""Elements of lists in bodies, such as the `assignments` of a SyncGroup request, of many messages at once.

Invariant: they are those that the decoded bodies have, in their order. A message that needs a careful look has none.
"""

from typing import NamedTuple

import numpy as np

from dissector.bulk.body_columns import BodyColumns
from dissector.bulk.body_texts import texts_of
from dissector.core.arrays import Int64
from dissector.core.columns import ValueNumbers
from dissector.protocol.codec.json_program import is_value
from dissector.protocol.kernel.shredding import Arena
from dissector.protocol.message import PREFIX


class ElementNames(NamedTuple):
    """Where elements are in a body, and what is read of them."""

    array: str
    text: str
    """A field that is text."""
    data: str
    """A field that has bytes."""


class OfElements(NamedTuple):
    """Elements, `(n,)`."""

    row: Int64
    """The place of its message among those that were asked for."""
    text: Int64
    """The number of its text; `NO_TEXT` for null."""
    size: Int64
    """How many bytes it has; -1 for null."""


class BodyElements:
    """Of the messages of one capture."""

    def __init__(self, bodies: BodyColumns) -> None:
        self._bodies = bodies

    def of(self, rows: Int64, names: ElementNames, texts: ValueNumbers[str], *, is_request: bool) -> OfElements:
        """The elements in requests of rows of the index, ascending, or in their responses. `texts` numbers texts."""
        parts: list[Int64] = [np.zeros((len(OfElements._fields), 0), np.int64)]
        arena = Arena()  # for this call: what it grew to would stay
        for messages in self._bodies.messages(rows, is_request=is_request, in_columns=True):
            program = messages.program
            columns = {
                column.path: number
                for number, column in enumerate(program.columns) if is_value(column, "string", "bytes")
            }  # fmt: skip
            text, data = (columns.get(("body", names.array, name)) for name in (names.text, names.data))
            if text is None or data is None:
                continue
            for part in arena.shred(messages.frames, program, program.wanted(values=[text, data]), PREFIX):
                in_row = part.column(text).rows.astype(np.int64)
                numbers = texts_of(part, messages, text, {}, texts)
                found = np.stack([messages.at[part.first + in_row], numbers, part.column(data).values])
                parts.append(found[:, part.errors[in_row] == 0])
        return OfElements(*np.concatenate(parts, axis=1))
