"""The shapes of messages: where each field stands in its frame, whatever its value.

Invariant: plain messages (`BodyColumns`) of equal shape have equal fields at equal places, of equal sizes. A message
that needs a careful look has no shape.
"""

from itertools import pairwise
from typing import Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.exchange.body_columns import BodyColumns
from dissector.protocol.codec.plan import SCALARS
from dissector.protocol.codec.program import Part, Program
from dissector.protocol.kernel.shredding import Arena, Shredded
from dissector.protocol.message import PREFIX

Shape = tuple[int, int, bytes]
_FIXED: Final = frozenset(SCALARS)


class MessageShapes:
    """Of one capture. Shapes can be compared as long as this lives."""

    def __init__(self, bodies: BodyColumns) -> None:
        self._bodies = bodies
        self._arena = Arena()
        self._programs: list[Program] = []
        """So that no other program gets the id of one of them."""

    def of(self, rows: Int64, *, is_request: bool) -> list[Shape | None]:
        """The shapes of the requests of rows, or of their responses."""
        shapes: list[Shape | None] = [None] * len(rows)
        for messages in self._bodies.messages(rows, is_request=is_request):
            program = messages.program
            if all(program is not each for each in self._programs):
                self._programs.append(program)
            columns = [number for number, column in enumerate(program.columns) if column.type not in _FIXED]
            unknown = [number for number in columns if program.columns[number].part is Part.UNKNOWN_TAGS]
            for part in self._arena.shred(messages.frames, program, program.wanted(values=columns), PREFIX):
                fits = part.errors == 0
                for number in unknown:
                    tags = part.column(number)
                    fits[tags.rows[tags.values > 0]] = False
                at = messages.at[part.first : part.stop].tolist()
                sizes = messages.frames.sizes[part.first : part.stop].tolist()
                for place, size, shape, is_plain in zip(at, sizes, _shapes(part, columns), fits.tolist(), strict=True):
                    if is_plain:
                        shapes[place] = id(program), size, shape
        return shapes


def _shapes(part: Shredded, columns: list[int]) -> list[bytes]:
    """What each row has in some columns, with its place."""
    found = [part.column(number) for number in columns]
    lengths = [len(each.rows) for each in found]
    rows = np.concatenate([np.zeros(0, np.int64), *(each.rows for each in found)])
    order = np.argsort(rows, kind="stable")
    values = np.stack((
        np.repeat(np.array(columns, np.int64), lengths),
        np.concatenate([np.zeros(0, np.int64), *(each.values for each in found)]),
        np.concatenate([np.zeros(0, np.int64), *(each.positions for each in found)]),
    ), axis=1)[order]  # fmt: skip
    edges = np.searchsorted(rows[order], np.arange(part.stop - part.first + 1)).tolist()
    return [values[start:stop].tobytes() for start, stop in pairwise(edges)]
